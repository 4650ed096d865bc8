"""A store over MCP: the tools of a role, and nothing else. The official `mcp` package speaks the protocol.

Which client calls, and with which role, the transport says: over stdio it is fixed, over HTTP it is the token's. A
session that was asked a question has the tool `answer` too, and sees the store as it was when it was asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from kbgym.actions import Error, Invalid
from kbgym.characters import safe_text
from kbgym.errors import Failed
from kbgym.online.learning import Online
from kbgym.online.open_questions import Refusal
from kbgym.serve.acting import act
from kbgym.serve.sessions import Session
from kbgym.tools import Role, Tool, parse, tools_of
from kbgym.trace.live import LiveStore

Context = ServerRequestContext[Any, Any]


class Caller(msgspec.Struct, frozen=True):
    """Who calls: the role decides the tools, the session what a conflict is; `question` is the one being answered."""

    role: Role
    session: Session
    question: str | None = None


def tools_for(caller: Caller) -> tuple[Tool, ...]:
    """A role's tools; answering needs a question, and `done` ends a pass, which a session is not."""
    left_out = {"done"} if caller.question is not None else {"done", "answer"}
    return tuple(tool for tool in tools_of(caller.role) if tool.name not in left_out)


def make_server(
    live: LiveStore, online: Online | None, caller_of: Callable[[Context], Caller], version: str
) -> Server[Any]:
    """A server for one process; every request is answered for the caller it came from. Questions need `online`."""

    async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        caller = caller_of(context)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=tool.schema,
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.name in ("search", "read", "answer"),
                        destructive_hint=tool.name in ("edit", "delete", "unlink"),
                    ),
                )
                for tool in tools_for(caller)
            ]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = caller_of(context)
        name, arguments = params.name, params.arguments or {}
        listed = [tool.name for tool in tools_for(caller)]
        if name not in listed:
            return _text(f"Error: there is no tool {name[:40]!r} here; the tools are {', '.join(listed)}.", True)
        action = parse(name, arguments, caller.role)
        if isinstance(action, Invalid):
            return _text(f"Error: {action.reason}", True)
        try:
            if online is not None and caller.question is not None:
                if name == "answer":
                    await online.close(caller.question, caller.session.client, str(arguments["text"]))
                    return _text("Answer submitted.")
                step = await online.act(caller.question, caller.session.client, action)
                return _text(step.observation, isinstance(step.result, Error))
            reply = await act(live, caller.session, action, caller.role)
        except Refusal as refusal:
            return _text(f"Error: {refusal}", True)
        except Failed as failure:
            return _text(f"Error: {unfinished(failure)}", True)
        return _text(reply.step.observation, isinstance(reply.step.result, Error))

    return Server(
        "kbgym",
        version=version,
        instructions=(
            "A store of one-sentence documents and links between them. Search it, and read what you find: reading an "
            "index gives everything it links to. An id stands in brackets before its document."
        ),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def unfinished(failure: Failed) -> str:
    """What a client is told of a failure; the reason names files and machines, and goes to the log."""
    logging.getLogger("kbgym").error("%s", safe_text(str(failure)))
    return "this could not be finished and nothing was changed; the server's log says why."


def _text(text: str, error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=error)


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output until it hangs up."""
    async with stdio_server() as (receiving, sending):
        await server.run(receiving, sending, server.create_initialization_options())
