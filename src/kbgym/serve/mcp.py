"""A store over MCP at an HTTP server: the tools of a role, and nothing else. The official `mcp` package speaks here.

Which client calls, and with which role, its token says. A session that was asked a question has the tool `answer` too,
and sees the store as it was when it was asked. Over standard streams `stdio.py` does the same for one client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp import types
from mcp.server import Server, ServerRequestContext

from kbgym.mcp import tool_listed
from kbgym.online.learning import Online
from kbgym.serve.calling import Caller, call_tool
from kbgym.serve.stdio import INSTRUCTIONS
from kbgym.trace.live import LiveStore

Context = ServerRequestContext[Any, Any]


def make_server(
    live: LiveStore, online: Online | None, caller_of: Callable[[Context], Caller], version: str
) -> Server[Any]:
    """A server for one process; every request is answered for the caller it came from. Questions need `online`."""

    async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = [types.Tool.model_validate(tool_listed(tool)) for tool in caller_of(context).tools]
        return types.ListToolsResult(tools=tools)

    async def call(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = await call_tool(live, online, caller_of(context), params.name, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=result.text)], is_error=result.wrong)

    return Server("kbgym", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call)
