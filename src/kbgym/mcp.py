"""MCP as far as a server of tools needs it: one JSON message in, at most one out, whatever carries them.

The official package takes a second to load, and agents begin their first turn without the tools of a server that is
slower than that; so where a server is started for an agent, this answers. It knows no tool, no store and no transport.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from kbgym.canonical import decode
from kbgym.gym.tools import Tool

# Newest first. A client that asks for another is offered the newest, and decides.
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MOST_MESSAGE = 1 << 20  # bytes; the longest text a tool takes is far shorter

_LOOKS, _DESTROYS = ("search", "read", "answer", "how_sure"), ("edit", "delete", "unlink")


class ToolResult(msgspec.Struct, frozen=True):
    """What a call comes to: a text for the model, and whether it says that something was wrong."""

    text: str
    wrong: bool = False


class Texts(Protocol):
    """What a server offers to be read: prompts by name, resources by address, each with what it is.

    An address with braces is a template.
    """

    def prompts(self) -> Mapping[str, str]: ...

    def prompt(self, name: str) -> str | None: ...

    def resources(self) -> Mapping[str, str]: ...

    async def resource(self, uri: str) -> str | None: ...


class Toolbox(Protocol):
    """What a server offers."""

    instructions: str

    @property
    def texts(self) -> Texts | None: ...

    def tools(self) -> tuple[Tool, ...]: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult: ...


def tool_listed(tool: Tool) -> dict[str, Any]:
    """A tool as MCP lists it."""
    hints = {"readOnlyHint": tool.name in _LOOKS, "destructiveHint": tool.name in _DESTROYS}
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.schema, "annotations": hints}


async def answered(data: bytes, toolbox: Toolbox, version: str = "") -> bytes | None:
    """The reply to a message; None where none is due."""
    try:
        message = decode(data)
    except msgspec.DecodeError:
        return _error(None, -32700, "this is no JSON.")
    if not isinstance(message, dict):
        return _error(None, -32600, "a message is one JSON object.")
    id, method = message.get("id"), message.get("method")
    if not isinstance(method, str):
        # A reply to something nobody asked here needs no answer.
        return None if "result" in message or "error" in message else _error(None, -32600, "there is no method in it.")
    if not isinstance(id, str | int) or isinstance(id, bool):
        return None if "id" not in message else _error(None, -32600, "an id is a text or a number.")
    given = message.get("params") or {}
    if not isinstance(given, dict):
        return _error(id, -32602, "params is a JSON object.")
    match method:
        case "initialize":
            return _result(id, _welcome(given.get("protocolVersion"), toolbox, version))
        case "ping":
            return _result(id, {})
        case "tools/list":
            return _result(id, {"tools": [tool_listed(tool) for tool in toolbox.tools()]})
        case "tools/call":
            name, arguments = given.get("name"), given.get("arguments") or {}
            if not isinstance(name, str) or not isinstance(arguments, dict):
                return _error(id, -32602, "a call has a name and, as an object, arguments.")
            result = await toolbox.call(name, arguments)
            content = [{"type": "text", "text": result.text}]
            return _result(id, {"content": content, "isError": result.wrong})
    if toolbox.texts is not None and method.startswith(("prompts/", "resources/")):
        return await _text(id, method, given, toolbox.texts)
    return _error(id, -32601, "there is no such method here.")


async def _text(id: str | int, method: str, given: dict[str, Any], texts: Texts) -> bytes:
    name, uri = str(given.get("name")), str(given.get("uri"))
    match method:
        case "prompts/list":
            return _result(id, {"prompts": prompts_listed(texts.prompts())})
        case "prompts/get" if (text := texts.prompt(name)) is not None:
            said = {"role": "user", "content": {"type": "text", "text": text}}
            return _result(id, {"description": texts.prompts()[name], "messages": [said]})
        case "resources/list":
            return _result(id, {"resources": resources_listed(texts.resources())})
        case "resources/templates/list":
            return _result(id, {"resourceTemplates": templates_listed(texts.resources())})
        case "resources/read" if (text := await texts.resource(uri)) is not None:
            return _result(id, {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]})
        case "prompts/get":
            return _error(id, -32602, "there is no such prompt here.")
        case "resources/read":
            return _error(id, -32002, "there is nothing at this address.")
    return _error(id, -32601, "there is no such method here.")


def prompts_listed(prompts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "description": what} for name, what in prompts.items()]


def resources_listed(resources: Mapping[str, str]) -> list[dict[str, str]]:
    return [_listed("uri", uri, what) for uri, what in resources.items() if "{" not in uri]


def templates_listed(resources: Mapping[str, str]) -> list[dict[str, str]]:
    return [_listed("uriTemplate", uri, what) for uri, what in resources.items() if "{" in uri]


def _listed(field: str, uri: str, what: str) -> dict[str, str]:
    name = uri.partition("://")[2].partition("/")[0]
    return {field: uri, "name": name, "description": what, "mimeType": "application/json"}


def _welcome(asked: Any, toolbox: Toolbox, version: str) -> dict[str, Any]:
    more: dict[str, Any] = {"prompts": {}, "resources": {}} if toolbox.texts is not None else {}
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}, **more},
        "serverInfo": {"name": "kbgym", "version": version or "0"},
        "instructions": toolbox.instructions,
    }


def _result(id: str | int, result: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "result": result})


def _error(id: str | int | None, code: int, message: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
