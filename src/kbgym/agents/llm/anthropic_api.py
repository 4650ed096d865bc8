"""Anthropic's messages API: tool calls with a forced choice, and cache breakpoints at the end of the stable prefix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kbgym.agents.llm.endpoint import Connection, Endpoint, served
from kbgym.agents.llm.redact import Address, Redactor
from kbgym.agents.llm.retry import Transient
from kbgym.agents.llm.values import Call, Message, Reply, Request, Sent
from kbgym.canonical import decode

URL = "https://api.anthropic.com"
_CACHE = {"type": "ephemeral"}


class Anthropic(Endpoint):
    """One endpoint of Anthropic's protocol."""

    effort_name = "output_config"

    def __init__(self, address: Address, key: str, timeout: float, redact: Redactor) -> None:
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        super().__init__(Connection(address, "/v1/messages", headers, timeout, redact), redact)

    def _settings(self, named: tuple[str, ...]) -> Iterable[str]:
        names = (self.effort_name if name == "effort" else name for name in named)
        return (name for name in names if name not in ("max_tokens", "tools"))

    def _body(self, request: Request, sent: Sent) -> dict[str, Any]:
        return {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": _CACHE}],
            "messages": _messages(request),
            "tools": [_tool(tool["function"]) for tool in request.tools],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "temperature": request.temperature,
            self.effort_name: {"effort": request.effort} if request.effort else None,
        }

    def _read(self, text: str, request: Request, sent: Sent) -> Reply:
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
            sent=served(sent, wire.model),
        )


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    return {"name": function["name"], "description": function["description"], "input_schema": function["parameters"]}


def _messages(request: Request) -> list[dict[str, Any]]:
    """Return the messages, with a cache breakpoint on the last block of the stable prefix, before the tail."""
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
