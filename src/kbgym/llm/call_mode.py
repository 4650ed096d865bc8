"""Two ways to get exactly one call out of a model: forced tool calls, or a JSON schema of the same calls.

`Ways` decides which one to use by what a server does with the first. The schema's shape and its reading are here too.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kbgym.canonical import decode
from kbgym.llm.values import Call, Request, object_schema

Way = Literal["tools", "schema"]

# How much prose, in spite of a forced tool choice, shows that a server does not enforce it.
_PROSE, _SHARE = 3, 0.2


class Ways:
    """Tool calls first; the schema once prose keeps coming back, unless the server has refused schemas."""

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
