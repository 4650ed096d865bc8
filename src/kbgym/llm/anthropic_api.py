"""Anthropic's messages API: tool calls with a forced choice, and cache marks at the end of what will not change.

The last stable block is marked for the provider's prompt cache; what changes from turn to turn comes after it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kbgym.canonical import decode
from kbgym.errors import Missing
from kbgym.llm.errors import RefusedSetting, Rejected, Transient
from kbgym.llm.faults import Unreadable
from kbgym.llm.redact import Address, Redactor
from kbgym.llm.transport import ThroughSDK, Wire
from kbgym.llm.values import Call, Message, Reply, Request, Sent

_CACHE = {"type": "ephemeral"}


class Anthropic:
    """One endpoint of Anthropic's protocol."""

    def __init__(self, address: Address, key: str, timeout: float, redact: Redactor) -> None:
        try:
            import anthropic
        except ImportError:
            raise Missing("this agent needs the anthropic package: pip install 'kbgym[llm]'.") from None

        def connect() -> anthropic.AsyncAnthropic:
            return anthropic.AsyncAnthropic(
                api_key=key,
                base_url=address.url,
                default_headers=address.headers,
                default_query=address.query,
                timeout=timeout,
                max_retries=0,
            )

        self.where = address.url or "https://api.anthropic.com"
        self._wire = Wire(ThroughSDK(connect, "/v1/messages", anthropic.APIStatusError), timeout, redact, self.where)
        self._redact = redact
        self.refused: list[str] = []

    async def send(self, request: Request) -> Reply:
        """One reply. A setting the model refuses is left out from then on."""
        while True:
            body = self._body(request)
            try:
                return self._read(await self._wire.post(body), request)
            except RefusedSetting as refusal:
                names = ("output_config" if name == "effort" else name for name in refusal.named)
                setting = next((name for name in names if name in body and name not in ("max_tokens", "tools")), None)
                if setting is None:
                    raise Rejected(str(refusal)) from None
                if setting not in self.refused:
                    self.refused.append(setting)
            except Unreadable as unreadable:
                return Reply(text=str(unreadable), finish="unreadable", sent=self._sent(request, ""))

    async def close(self) -> None:
        await self._wire.close()

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": _CACHE}],
            "messages": _messages(request),
            "tools": [_tool(tool["function"]) for tool in request.tools],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "temperature": request.temperature,
            "output_config": {"effort": request.effort} if request.effort else None,
        }
        return {name: value for name, value in body.items() if value is not None and name not in self.refused}

    def _sent(self, request: Request, served: str) -> Sent:
        return Sent(
            model=request.model,
            served=served,
            temperature=None if "temperature" in self.refused else request.temperature,
            effort=None if "output_config" in self.refused else request.effort,
            max_tokens=request.max_tokens,
            refused=tuple(self.refused),
        )

    def _read(self, text: str, request: Request) -> Reply:
        try:
            wire = decode(text, _Wire)
        except msgspec.MsgspecError:
            raise Transient("a reply that is no message") from None
        if wire.content is None:
            raise Transient("a reply without content")
        used = wire.usage or _Used()
        cached, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
        details = used.output_tokens_details or {}
        return Reply(
            text=self._redact("".join(block.text or "" for block in wire.content if block.type == "text")),
            calls=tuple(
                Call(block.name or "", self._redact(msgspec.json.encode(block.input or {}).decode()), block.id or "")
                for block in wire.content
                if block.type == "tool_use"
            ),
            finish="length" if wire.stop_reason == "max_tokens" else wire.stop_reason or "",
            prompt=(used.input_tokens or 0) + cached + written,
            cached=cached,
            cache_writes=written,
            completion=used.output_tokens or 0,
            reasoning=int(details.get("thinking_tokens") or details.get("reasoning_tokens") or 0),
            sent=self._sent(request, (wire.model or "")[:100]),
        )


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


def _messages(request: Request) -> list[dict[str, Any]]:
    """The turns, with a cache mark on the last block that will still be there next time, and the tail after it."""
    shown: list[dict[str, Any]] = []
    for message in request.messages:
        block, role = _block(message)
        if shown and shown[-1]["role"] == role:
            shown[-1]["content"].append(block)
        else:
            shown.append({"role": role, "content": [block]})
    if shown:
        shown[-1]["content"][-1]["cache_control"] = _CACHE
        if request.tail:
            shown[-1]["content"].append({"type": "text", "text": request.tail})
    return shown


def _block(message: Message) -> tuple[dict[str, Any], str]:
    if message.role == "tool":
        return {"type": "tool_result", "tool_use_id": message.id, "content": message.text}, "user"
    if message.call is not None:
        arguments = decode(message.call.arguments)
        return {"type": "tool_use", "id": message.call.id, "name": message.call.name, "input": arguments}, "assistant"
    return {"type": "text", "text": message.text}, message.role


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    name: str | None = None
    id: str | None = None
    input: dict[str, Any] | None = None


class _Used(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: dict[str, Any] | None = None


class _Wire(msgspec.Struct):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: _Used | None = None
    model: str | None = None
