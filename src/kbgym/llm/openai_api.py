"""Any server that speaks OpenAI's chat protocol: OpenAI, vLLM, Ollama, llama.cpp, OpenRouter, LM Studio.

One call a reply is asked for in one of two ways: tool calls with a forced choice, or, where a server does not enforce
that, a JSON schema of the same calls. The way is learned as it goes, and so are settings a model refuses.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kbgym.canonical import decode
from kbgym.errors import Missing
from kbgym.llm.call_mode import Way, Ways, schema_format, schema_system, written_call
from kbgym.llm.errors import RefusedSetting, Rejected, Transient
from kbgym.llm.faults import Unreadable
from kbgym.llm.redact import Address, Redactor
from kbgym.llm.transport import LARGEST, Wire, openai_sender
from kbgym.llm.values import Call, Message, Reply, Request, Sent


class OpenAI:
    """One endpoint. `kind` is `openai` (its newer names of settings) or `local` (everybody else's)."""

    def __init__(
        self, kind: Literal["openai", "local"], address: Address, key: str, timeout: float, redact: Redactor
    ) -> None:
        try:
            import openai
        except ImportError:
            raise Missing("this agent needs the openai package: pip install 'kbgym[llm]'.") from None

        def connect() -> openai.AsyncOpenAI:
            return openai.AsyncOpenAI(
                api_key=key,
                base_url=address.url,
                default_headers=address.headers,
                default_query=address.query,
                timeout=timeout,
                max_retries=0,
            )

        where = address.url or "https://api.openai.com/v1"
        sender = openai_sender(connect, "/chat/completions", openai.APIStatusError)
        self._wire = Wire(sender, timeout, redact, where)
        self._redact = redact
        names = ("max_completion_tokens", "max_tokens")
        self._limit_names = names if kind == "openai" else names[::-1]
        self.where = where
        self.ways = Ways()
        self.refused: list[str] = []

    async def send(self, request: Request) -> Reply:
        """One reply. A setting the server refuses is left out from then on."""
        while True:
            way = self.ways.now
            body = self._body(request, way)
            try:
                return self._read(await self._wire.post(body), request, way)
            except RefusedSetting as refusal:
                self._learn(refusal, body)
            except Unreadable as unreadable:
                return Reply(text=str(unreadable), finish="unreadable", sent=self._sent(request, way, ""))

    async def close(self) -> None:
        await self._wire.close()

    def _learn(self, refusal: RefusedSetting, body: dict[str, Any]) -> None:
        setting = next((name for name in refusal.named if name in body), None)
        if setting is None:
            raise Rejected(str(refusal)) from None
        if setting not in self.refused:
            self.refused.append(setting)
        if setting == "tools":
            self.ways.only("schema")
        if setting == "response_format":
            self.ways.only("tools")

    def _body(self, request: Request, way: Way) -> dict[str, Any]:
        system = schema_system(request) if way == "schema" else request.system
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": "system", "content": system}, *_messages(request, way)],
            "temperature": request.temperature,
            "reasoning_effort": request.effort,
        }
        if way == "tools":
            body |= {"tools": list(request.tools), "tool_choice": "required", "parallel_tool_calls": False}
        else:
            body["response_format"] = schema_format(request)
        if limit := next((name for name in self._limit_names if name not in self.refused), None):
            body[limit] = request.max_tokens
        return {name: value for name, value in body.items() if value is not None and name not in self.refused}

    def _sent(self, request: Request, way: Way, served: str) -> Sent:
        return Sent(
            model=request.model,
            served=served,
            way=way,
            temperature=None if "temperature" in self.refused else request.temperature,
            effort=None if "reasoning_effort" in self.refused else request.effort,
            max_tokens=request.max_tokens,
            refused=tuple(self.refused),
        )

    def _read(self, text: str, request: Request, way: Way) -> Reply:
        if len(text) > LARGEST:
            return Reply(text=text[:1000], finish="length", sent=self._sent(request, way, ""))
        try:
            wire = decode(text, _Wire)
        except msgspec.MsgspecError:
            raise Transient("a reply that is no chat completion") from None
        choice = wire.choices[0] if wire.choices else None
        if choice is None or choice.message is None:
            raise Transient("a reply without choices")
        content = _text(choice.message.content) or choice.message.refusal or ""
        calls = tuple(_call(call) for call in choice.message.tool_calls or ())
        if way == "schema" and not calls and (written := written_call(content)):
            calls, content = (written,), ""
        self.ways.saw(way, bool(calls))
        used = wire.usage or _Used()
        return Reply(
            text=self._redact(content),
            calls=tuple(msgspec.structs.replace(call, arguments=self._redact(call.arguments)) for call in calls),
            finish=choice.finish_reason or "",
            # A server that reports no usage still counts against --max-tokens: four characters a token.
            prompt=used.prompt_tokens or _size(request) // 4,
            cached=(used.prompt_tokens_details or _Details()).cached_tokens or 0,
            completion=used.completion_tokens or (0 if wire.usage else len(text) // 4),
            reasoning=(used.completion_tokens_details or _Details()).reasoning_tokens or 0,
            sent=self._sent(request, way, (wire.model or "")[:100]),
        )


def _messages(request: Request, way: Way) -> list[dict[str, Any]]:
    shown = [_message(message, way) for message in request.messages]
    if request.tail:
        shown[-1] = shown[-1] | {"content": f"{shown[-1]['content']}\n\n{request.tail}"}
    return shown


def _message(message: Message, way: Way) -> dict[str, Any]:
    call = message.call
    if message.role == "tool":
        if way == "tools":
            return {"role": "tool", "tool_call_id": message.id, "content": message.text}
        return {"role": "user", "content": message.text}
    if call is None:
        return {"role": message.role, "content": message.text}
    if way == "schema":
        written = msgspec.json.encode({"call": {"tool": call.name, "arguments": msgspec.Raw(call.arguments.encode())}})
        return {"role": "assistant", "content": written.decode()}
    function = {"name": call.name, "arguments": call.arguments}
    return {
        "role": "assistant",
        "content": message.text or None,
        "tool_calls": [{"id": call.id, "type": "function", "function": function}],
    }


# -- what comes over the wire, read leniently: servers differ -------------------------------------------------------


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Called(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


class _Said(msgspec.Struct):
    content: str | list[Any] | None = None
    tool_calls: list[_Called] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Said | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Used(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Wire(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Used | None = None
    model: str | None = None


def _text(content: str | list[Any] | None) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""


def _call(called: _Called) -> Call:
    function = called.function or _Function()
    arguments = function.arguments
    written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return Call(function.name or "", written, called.id or "")


def _size(request: Request) -> int:
    return len(request.system) + sum(len(message.text) + 40 for message in request.messages)
