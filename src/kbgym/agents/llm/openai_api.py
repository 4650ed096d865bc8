"""Client of any server with OpenAI's chat protocol: OpenAI, vLLM, Ollama, llama.cpp, OpenRouter, LM Studio.

Each request asks for one call in one of two ways: tool calls with a forced choice, or, where a server does not enforce
that, a JSON schema of the same calls. The way is learned during the run, and so are settings a model refuses.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kbgym.agents.llm.endpoint import (
    LARGEST,
    Connection,
    Endpoint,
    Way,
    Ways,
    schema_format,
    schema_system,
    served,
    written_call,
)
from kbgym.agents.llm.redact import Address, Redactor
from kbgym.agents.llm.retry import Transient
from kbgym.agents.llm.values import Call, Message, Reply, Request, Sent, assistant_call
from kbgym.canonical import decode

URL = "https://api.openai.com/v1"


class OpenAI(Endpoint):
    """One endpoint. `kind` is `openai` (newer names of settings) or `local` (every other server)."""

    effort_name = "reasoning_effort"

    def __init__(
        self, kind: Literal["openai", "local"], address: Address, key: str, timeout: float, redact: Redactor
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        super().__init__(Connection(address, "/chat/completions", headers, timeout, redact), redact)
        names = ("max_completion_tokens", "max_tokens")
        self._limit_names = names if kind == "openai" else names[::-1]
        self.ways = Ways()

    def _leave_out(self, setting: str) -> None:
        super()._leave_out(setting)
        if setting == "tools":
            self.ways.only("schema")
        if setting == "response_format":
            self.ways.only("tools")

    def _sent(self, request: Request) -> Sent:
        way: Way = "schema" if request.thought and "response_format" not in self.refused else self.ways.now
        return msgspec.structs.replace(super()._sent(request), way=way)

    def _body(self, request: Request, sent: Sent) -> dict[str, Any]:
        system = schema_system(request) if sent.way == "schema" else request.system
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": "system", "content": system}, *_messages(request, sent.way)],
            "temperature": request.temperature,
            self.effort_name: request.effort,
        }
        if sent.way == "tools":
            body |= {"tools": list(request.tools), "tool_choice": "required", "parallel_tool_calls": False}
        else:
            body["response_format"] = schema_format(request)
        if limit := next((name for name in self._limit_names if name not in self.refused), None):
            body[limit] = request.max_tokens
        return body

    def _read(self, text: str, request: Request, sent: Sent) -> Reply:
        if len(text) > LARGEST:
            return Reply(text=text[:1000], finish="length", sent=sent)
        try:
            wire = decode(text, _Wire)
        except msgspec.MsgspecError:
            raise Transient("a reply that is no chat completion") from None
        choice = wire.choices[0] if wire.choices else None
        if choice is None or choice.message is None:
            raise Transient("a reply without choices")
        content = _text(choice.message.content) or choice.message.refusal or ""
        calls = tuple(_call(call) for call in choice.message.tool_calls or ())
        if sent.way == "schema" and not calls and (written := written_call(content)):
            calls, content = (written,), ""
        self.ways.count(sent.way, bool(calls))
        used = wire.usage or _Used()
        return Reply(
            text=self._redact(content),
            calls=tuple(msgspec.structs.replace(call, arguments=self._redact(call.arguments)) for call in calls),
            finish=choice.finish_reason or "",
            # If a server reports no usage, estimate it for --max-tokens: four characters per token.
            prompt=used.prompt_tokens or _size(request) // 4,
            cached=(used.prompt_tokens_details or _Details()).cached_tokens or 0,
            completion=used.completion_tokens or (0 if wire.usage else len(text) // 4),
            reasoning=(used.completion_tokens_details or _Details()).reasoning_tokens or 0,
            sent=served(sent, wire.model),
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
    return assistant_call(call, message.text)


# -- lenient parsing of responses, which differ between servers --------------------------------------------------------


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
