"""What the providers' protocols share: sending a request, and remembering which settings are refused.

Two ways to get exactly one call out of a model: forced tool calls, or a JSON schema of the same calls.

`Ways` decides which one to use by what a server does with the first. The schema's shape and its reading are here too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from kbgym.agents.llm.faults import Unreadable
from kbgym.agents.llm.redact import Address, Redactor
from kbgym.agents.llm.retry import RefusedSetting, Rejected
from kbgym.agents.llm.transport import Sender, Wire
from kbgym.agents.llm.values import Call, Reply, Request, Sent, object_schema
from kbgym.canonical import decode


def connecting(sdk: Callable[..., Any], address: Address, key: str, timeout: float) -> Callable[[], Any]:
    """Makes clients of an SDK; their own retries are off, see `retry.py`."""
    return lambda: sdk(
        api_key=key,
        base_url=address.url,
        default_headers=address.headers,
        default_query=address.query,
        timeout=timeout,
        max_retries=0,
    )


class Endpoint(ABC):
    """One endpoint of one protocol. `refused` are the settings it does not take: they are left out from then on."""

    effort_name: str  # what the protocol calls the setting

    def __init__(self, sender: Sender, timeout: float, redact: Redactor, where: str) -> None:
        self.where = where
        self.refused: list[str] = []
        self._wire = Wire(sender, timeout, redact, where)
        self._redact = redact

    async def send(self, request: Request) -> Reply:
        """One reply. A setting the server refuses is left out and the request made again."""
        while True:
            sent = self._sent(request)
            body = self._body(request, sent)
            body = {name: value for name, value in body.items() if value is not None and name not in self.refused}
            try:
                return self._read(await self._wire.post(body), request, sent)
            except RefusedSetting as refusal:
                setting = next((name for name in self._settings(refusal.named) if name in body), None)
                if setting is None:
                    raise Rejected(str(refusal)) from None
                self._leave_out(setting)
            except Unreadable as unreadable:
                return Reply(text=str(unreadable), finish="unreadable", sent=sent)

    async def close(self) -> None:
        await self._wire.close()

    def _sent(self, request: Request) -> Sent:
        return Sent(
            model=request.model,
            temperature=None if "temperature" in self.refused else request.temperature,
            effort=None if self.effort_name in self.refused else request.effort,
            max_tokens=request.max_tokens,
            refused=tuple(self.refused),
        )

    @abstractmethod
    def _body(self, request: Request, sent: Sent) -> dict[str, Any]:
        """The request in the protocol's words; what is None or refused is left out later."""

    @abstractmethod
    def _read(self, text: str, request: Request, sent: Sent) -> Reply:
        """The reply in ours."""

    def _settings(self, named: tuple[str, ...]) -> Iterable[str]:
        """The settings a refusal may be about, by the names they have in a body."""
        return named

    def _leave_out(self, setting: str) -> None:
        if setting not in self.refused:
            self.refused.append(setting)


def served(sent: Sent, model: str | None) -> Sent:
    """With the name of the model that answered, as the reply gives it."""
    return msgspec.structs.replace(sent, served=(model or "")[:100])


Way = Literal["tools", "schema"]

# How much prose, in spite of a forced tool choice, shows that a server does not enforce it.
_PROSE, _SHARE = 3, 0.2


class Ways:
    """Tool calls first; the schema once too many replies have no call, unless the server has refused schemas."""

    def __init__(self) -> None:
        self.now: Way = "tools"
        self._fixed = False
        self._calls = 0
        self._prose = 0

    def only(self, way: Way) -> None:
        self.now = way
        self._fixed = True

    def saw(self, way: Way, call: bool) -> None:
        """Count a reply: was there a call in it?"""
        if way != "tools":
            return
        self._calls += call
        self._prose += not call
        seen = self._calls + self._prose
        if not self._fixed and self._prose >= _PROSE and self._prose > _SHARE * seen:
            self.now = "schema"


class _Written(msgspec.Struct):
    tool: str
    arguments: dict[str, Any] = {}


class _Envelope(msgspec.Struct):
    call: _Written


def written_call(content: str) -> Call | None:
    """The call a schema reply holds, if it holds one."""
    try:
        written = decode(content.strip(), _Envelope).call
    except msgspec.DecodeError:
        return None
    return Call(written.tool, msgspec.json.encode(written.arguments).decode())


def schema_format(request: Request) -> dict[str, Any]:
    """A response format that admits one call of one of the request's tools and nothing else."""
    functions = (tool["function"] for tool in request.tools)
    calls = [object_schema({"tool": {"const": one["name"]}, "arguments": one["parameters"]}) for one in functions]
    schema = object_schema({"call": {"anyOf": calls}})
    return {"type": "json_schema", "json_schema": {"name": "one_call", "schema": schema}}


def schema_system(request: Request) -> str:
    """The system prompt with the tools written out, since they are not sent as tools."""
    lines = [request.system, "", "# Tools", ""]
    for tool in request.tools:
        function = tool["function"]
        arguments = msgspec.json.encode(function["parameters"]["properties"], order="sorted").decode()
        lines.append(f"- `{function['name']}`: {function['description']} Arguments: {arguments}")
    lines += ["", 'Reply with one JSON object and nothing else: {"call": {"tool": NAME, "arguments": {...}}}.']
    return "\n".join(lines)
