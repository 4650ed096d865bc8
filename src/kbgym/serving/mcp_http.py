"""MCP over streamable HTTP: a JSON reply to every POST, and sessions that belong to the token that began them.

The server sends no requests or notifications of its own, so there is no event stream to GET. A request without a
session is answered too.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kbgym.mcp import Malformed, Toolbox, parse_message, reply
from kbgym.serving.clients import PerClient
from kbgym.serving.middleware import read_json, refuse

SESSION = "mcp-session-id"


class McpEndpoint:
    """The route `/mcp`. A client that exceeds `max_sessions` loses its own least recently used session."""

    def __init__(self, toolbox_of: Callable[[Request], Toolbox], version: str, max_sessions: int) -> None:
        self._toolbox_of, self._version = toolbox_of, version
        self.sessions: PerClient[None] = PerClient(max_sessions)

    def routes(self) -> list[Route]:
        return [Route("/mcp", self.post, methods=["POST"]), Route("/mcp", self.delete, methods=["DELETE"])]

    async def post(self, request: Request) -> Response:
        """Reply to a message; `initialize` begins a session."""
        body = await read_json(request)
        sessions, session = self.sessions[request.scope["kbgym.client"].name], request.headers.get(SESSION)
        if session is not None and session not in sessions:
            return refuse(404, "there is no such MCP session; begin a new one.")
        try:
            message = parse_message(body)
        except Malformed as error:
            return Response(error.reply, 400, media_type="application/json")
        if message is None:
            return Response(status_code=202)
        if session is None and message.method == "initialize":
            session = secrets.token_urlsafe(16)
        if session is not None:
            sessions[session] = None  # marks it as the most recently used
        replied = await reply(message, self._toolbox_of(request), self._version)
        return Response(replied, headers={SESSION: session} if session else None, media_type="application/json")

    async def delete(self, request: Request) -> Response:
        """End a session."""
        sessions, session = self.sessions[request.scope["kbgym.client"].name], request.headers.get(SESSION, "")
        if session not in sessions:
            return refuse(404, "there is no such MCP session.")
        del sessions[session]
        return Response()
