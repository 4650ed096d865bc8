"""The server side of the Model Context Protocol for tools: one JSON message in, at most one out.

Any transport carries the messages; the tools come from a `Toolbox`. Written by hand because the official
package takes a second to import, and agents start their first turn without the tools of a slow server.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from kbgym.canonical import decode
from kbgym.gym.tools import Tool

# Newest first. A client that requests another version is offered the newest and may decline.
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MOST_MESSAGE = 1 << 20  # bytes; the longest text a tool takes is far shorter
_INVALID_REQUEST = -32600

_READ_ONLY, _DESTRUCTIVE = ("search", "read", "answer", "how_sure"), ("edit", "delete", "unlink", "undo")


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a tool call: a text for the model, an error flag, and the same result as structured values."""

    text: str
    wrong: bool = False
    structured: Any = None


class Toolbox(Protocol):
    """The tools of a server."""

    instructions: str

    def tools(self) -> tuple[Tool, ...]: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult: ...


def _tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as `tools/list` describes it."""
    title = tool.name.replace("_", " ").capitalize()
    hints = {"readOnlyHint": tool.name in _READ_ONLY, "destructiveHint": tool.name in _DESTRUCTIVE}
    described = {"name": tool.name, "title": title, "description": tool.description, "inputSchema": tool.schema}
    return {**described, "annotations": {"title": title, **hints, "openWorldHint": False}}


class RpcRequest(msgspec.Struct, frozen=True):
    """A JSON-RPC request."""

    id: str | int
    method: str
    params: dict[str, Any]


class Malformed(Exception):
    """A message that is not JSON-RPC; `reply` is the error to send."""

    def __init__(self, code: int, message: str, id: str | int | None = None) -> None:
        super().__init__(message)
        self.reply = _error(id, code, message)


def parse_message(data: bytes) -> RpcRequest | None:
    """Return the request in a message, or None if the message needs no reply.

    Raises:
        Malformed: the message is not JSON-RPC.
    """
    try:
        message = decode(data)
    except msgspec.DecodeError:
        raise Malformed(-32700, "the message is not valid JSON.") from None
    if not isinstance(message, dict):
        raise Malformed(_INVALID_REQUEST, "the message is not a JSON object.")
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None and ("result" in message or "error" in message):
        return None
    if not isinstance(method, str):
        raise Malformed(_INVALID_REQUEST, "the message has no method.")
    if "id" not in message:
        return None
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise Malformed(_INVALID_REQUEST, "the id is neither a string nor a number.")
    if not isinstance(params, dict):
        raise Malformed(-32602, "params is not a JSON object.", id)
    return RpcRequest(id, method, params)


async def reply_to(data: bytes, toolbox: Toolbox) -> bytes | None:
    """Return the reply to a message, or None if it needs no reply."""
    try:
        request = parse_message(data)
    except Malformed as error:
        return error.reply
    return None if request is None else await reply(request, toolbox)


def progress_of(request: RpcRequest, seconds: int) -> bytes | None:
    """Return a notification that a call is still in progress, or None if the client asked for none."""
    meta = request.params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if not isinstance(token, str | int):
        return None
    params = {"progressToken": token, "progress": seconds, "message": f"Still working after {seconds} s."}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


async def reply(request: RpcRequest, toolbox: Toolbox, version: str = "") -> bytes:
    """Return the reply to a request."""
    id, given = request.id, request.params
    match request.method:
        case "initialize":
            asked = given.get("protocolVersion")
            offered = {
                "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "kbgym", "version": version or "0"},
                "instructions": toolbox.instructions,
            }
            return _result(id, offered)
        case "ping":
            return _result(id, {})
        case "tools/list":
            return _result(id, {"tools": [_tool(tool) for tool in toolbox.tools()]})
        case "tools/call":
            name, arguments = given.get("name"), given.get("arguments") or {}
            if not isinstance(name, str) or not isinstance(arguments, dict):
                return _error(id, -32602, "a call needs a name and an object of arguments.")
            result = await toolbox.call(name, arguments)
            replied: dict[str, Any] = {"content": [{"type": "text", "text": result.text}], "isError": result.wrong}
            if result.structured is not None:
                replied["structuredContent"] = result.structured
            return _result(id, replied)
    return _error(id, -32601, "unknown method.")


def _result(id: str | int, result: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "result": result})


def _error(id: str | int | None, code: int, message: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
