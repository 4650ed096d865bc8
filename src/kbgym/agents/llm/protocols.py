"""The chat protocols of OpenAI (and vLLM, Ollama, llama.cpp, OpenRouter, LM Studio) and of Anthropic.

Each request asks for exactly one call. Anthropic forces a tool call and gets cache breakpoints at the end of the stable
prefix. For OpenAI's protocol there are two ways: tool calls with a forced choice, or, where a server does not enforce
that, a JSON schema of the same calls. The way is learned during the run, and so are settings a model refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from kbgym.agents.llm.endpoint import Endpoint
from kbgym.agents.llm.redact import Address, Redactor
from kbgym.agents.llm.values import Call, Message, Reply, Request, Sent, object_schema
from kbgym.canonical import decode, encode

Way = Literal["tools", "schema"]
# Number and share of prose replies beyond which a server does not enforce a forced tool choice.
_PROSE, _SHARE = 3, 0.2
_CACHE = {"type": "ephemeral"}
# A thought before a call of a schema, by the longest text of each part.
_NOTES = {"known": 300, "missing": 120}


def _count(value: Any, *path: str) -> int:
    """Return the number at a path of a response; 0 if it states none."""
    for name in path:
        value = (value or {}).get(name)
    return int(value or 0)


class OpenAI(Endpoint):
    """OpenAI's protocol. `is_local` is True for every server but OpenAI's, which has newer names of settings."""

    path = "/chat/completions"
    effort_name = "reasoning_effort"

    def __init__(self, address: Address, key: str, timeout: float, redact: Redactor, is_local: bool) -> None:
        super().__init__(address, {"Authorization": f"Bearer {key or 'none'}"}, timeout, redact)
        names = ("max_completion_tokens", "max_tokens")
        self._limit_names = names[::-1] if is_local else names
        self.way: Way = "tools"
        self._calls = self._prose = 0

    def _leave_out(self, setting: str) -> None:
        super()._leave_out(setting)
        if setting == "tools":
            self.way = "schema"
        elif setting == "response_format":
            self.way = "tools"

    def _sent(self, request: Request) -> Sent:
        way: Way = "schema" if request.thought and "response_format" not in self.refused else self.way
        return msgspec.structs.replace(super()._sent(request), way=way)

    def _body(self, request: Request, sent: Sent) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            "messages": chat_messages(request, sent.way),
            "temperature": request.temperature,
            self.effort_name: request.effort,
        }
        if sent.way == "tools":
            body |= {"tools": list(request.tools), "tool_choice": "required", "parallel_tool_calls": False}
        else:
            body["response_format"] = _schema_format(request)
        if limit := next((name for name in self._limit_names if name not in self.refused), None):
            body[limit] = request.max_tokens
        return body

    def _read(self, wire: Any, request: Request, sent: Sent) -> Reply:
        choice = wire["choices"][0]
        said = choice["message"]
        content = said.get("content") or said.get("refusal") or ""
        if isinstance(content, list):
            content = "".join(str(part.get("text", "")) for part in content)
        calls = tuple(_openai_call(call) for call in said.get("tool_calls") or ())
        if sent.way == "schema" and not calls and (written := _written_call(content)):
            calls, content = (written,), ""
        self._learn(sent.way, bool(calls))
        used = wire.get("usage")
        # If a server reports no usage, estimate it for --max-tokens: four characters per token.
        size = len(request.system) + sum(len(message.text) + 40 for message in request.messages)
        return Reply(
            text=content,
            calls=calls,
            finish=choice.get("finish_reason") or "",
            prompt=_count(used, "prompt_tokens") or size // 4,
            cached=_count(used, "prompt_tokens_details", "cached_tokens"),
            completion=_count(used, "completion_tokens") if used else len(encode(wire)) // 4,
            reasoning=_count(used, "completion_tokens_details", "reasoning_tokens"),
        )

    def _learn(self, way: Way, has_call: bool) -> None:
        """Go over to the schema once too many replies have no call, unless the server has refused one of the ways."""
        if way == "tools":
            self._calls += has_call
            self._prose += not has_call
            is_fixed = {"tools", "response_format"} & set(self.refused)
            if not is_fixed and self._prose >= _PROSE and self._prose > _SHARE * (self._calls + self._prose):
                self.way = "schema"


def _openai_call(called: Any) -> Call:
    function = called.get("function") or {}
    arguments = function.get("arguments") or {}
    written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return Call(function.get("name") or "", written, called.get("id") or "")


def chat_messages(request: Request, way: Way) -> list[dict[str, Any]]:
    """Return a request's messages in OpenAI's format."""
    system = _schema_system(request) if way == "schema" else request.system
    shown = [_openai_message(message, way) for message in request.messages]
    if request.tail:
        shown[-1] |= {"content": f"{shown[-1]['content']}\n\n{request.tail}"}
    return [{"role": "system", "content": system}, *shown]


def _openai_message(message: Message, way: Way) -> dict[str, Any]:
    call = message.call
    if call is not None and way == "schema":
        written = msgspec.json.encode({"call": {"tool": call.name, "arguments": msgspec.Raw(call.arguments.encode())}})
        return {"role": "assistant", "content": written.decode()}
    if message.role == "tool" and way == "schema":
        return {"role": "user", "content": message.text}
    return message.as_chat()


# -- one call as a JSON schema -----------------------------------------------------------------------------------------


class _Written(msgspec.Struct):
    tool: str
    arguments: dict[str, Any] = {}


class _Envelope(msgspec.Struct):
    call: _Written


def _written_call(content: str) -> Call | None:
    """Return the call that a schema reply holds, or None. A thought before it is dropped."""
    try:
        written = decode(content.strip(), _Envelope).call
    except msgspec.DecodeError:
        return None
    return Call(written.tool, msgspec.json.encode(written.arguments).decode())


def _schema_format(request: Request) -> dict[str, Any]:
    """Return a response format that admits one call of one of the request's tools, optionally after notes."""
    functions = [tool["function"] for tool in request.tools]
    allowed = [one for one in functions if one["name"] in request.choices] or functions
    calls = [object_schema({"tool": {"const": one["name"]}, "arguments": one["parameters"]}) for one in allowed]
    # Before the first call nothing is known: small models then fill the notes with inventions and search for these.
    has_notes = request.thought and len(request.messages) > 1
    notes = {name: {"type": "string", "maxLength": most} for name, most in _NOTES.items() if has_notes}
    schema = object_schema({**notes, "call": {"anyOf": calls}})
    return {"type": "json_schema", "json_schema": {"name": "one_call", "schema": schema}}


def _schema_system(request: Request) -> str:
    """Return the system prompt with the tools written out, since they are not sent as tools."""
    lines = [request.system, "", "# Tools", ""]
    for tool in request.tools:
        function = tool["function"]
        arguments = msgspec.json.encode(function["parameters"]["properties"], order="sorted").decode()
        lines.append(f"- `{function['name']}`: {function['description']} Arguments: {arguments}")
    notes = "".join(f'"{name}": "...", ' for name in _NOTES if request.thought)
    call = f'{{{notes}"call": {{"tool": NAME, "arguments": {{...}}}}}}'
    return "\n".join([*lines, "", f"Reply with one JSON object and nothing else: {call}."])


# -- Anthropic ---------------------------------------------------------------------------------------------------------


class Anthropic(Endpoint):
    """Anthropic's protocol."""

    path = "/v1/messages"
    effort_name = "output_config"

    def __init__(self, address: Address, key: str, timeout: float, redact: Redactor) -> None:
        super().__init__(address, {"x-api-key": key, "anthropic-version": "2023-06-01"}, timeout, redact)

    def _settings(self, named: tuple[str, ...]) -> Iterable[str]:
        names = (self.effort_name if name == "effort" else name for name in named)
        return (name for name in names if name not in ("max_tokens", "tools"))

    def _body(self, request: Request, sent: Sent) -> dict[str, Any]:
        tools = [tool["function"] for tool in request.tools]
        return {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": _CACHE}],
            "messages": _anthropic_messages(request),
            "tools": [
                {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]}
                for one in tools
            ],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "temperature": request.temperature,
            self.effort_name: {"effort": request.effort} if request.effort else None,
        }

    def _read(self, wire: Any, request: Request, sent: Sent) -> Reply:
        blocks, used = wire["content"], wire.get("usage")
        called = [block for block in blocks if block["type"] == "tool_use"]
        cached, written = _count(used, "cache_read_input_tokens"), _count(used, "cache_creation_input_tokens")
        return Reply(
            text="".join(block.get("text") or "" for block in blocks if block["type"] == "text"),
            calls=tuple(
                Call(block["name"], msgspec.json.encode(block.get("input") or {}).decode(), block.get("id") or "")
                for block in called
            ),
            finish="length" if wire.get("stop_reason") == "max_tokens" else wire.get("stop_reason") or "",
            prompt=_count(used, "input_tokens") + cached + written,
            cached=cached,
            cache_writes=written,
            completion=_count(used, "output_tokens"),
            reasoning=_count(used, "output_tokens_details", "thinking_tokens"),
        )


def _anthropic_messages(request: Request) -> list[dict[str, Any]]:
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
