"""What stands before every HTTP request: who may ask, how much may be sent, and how long one may take to send it.

Host and Origin are checked because a browser can be made to talk to loopback; there is no CORS, so no page of another
site can read an answer. The body is read whole, within a limit and a time, before anything looks at it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbgym.serve.tokens import Client, Tokens

MOST_BODY = 1 << 20
BODY_SECONDS = 10.0
HEAD_SECONDS = 10.0
MOST_CONNECTIONS = 2_000
OPEN = ("/health", "/openapi.json")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


def refuse(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers)


class Guard:
    """ASGI middleware. `tokens` None means everybody is `anybody`: only ever on loopback."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens | None,
        anybody: Client,
        hosts: frozenset[str] | None,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self.app, self.tokens, self.anybody, self.hosts = app, tokens, anybody, hosts
        self.body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._check_place(headers) or self._check_token(scope, headers)
        if refusal is None:
            body = await self._body(headers, receive)
            if isinstance(body, Response):
                refusal = body
            else:
                await self.app(scope, _replayed(body, receive), send)
                return
        await refusal(scope, receive, send)

    def _check_place(self, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if self.hosts is not None and _name(host) not in self.hosts:
            return refuse(403, "this Host is not served here; use the address the server was started with.")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return refuse(403, "requests of other sites' pages are not answered.")
        return None

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        scope["kbgym.client"] = self.anybody
        if self.tokens is None or scope["path"] in OPEN:
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        client = self.tokens.client(token.strip()) if kind.lower() == "bearer" else None
        if client is None:
            wanted = {"WWW-Authenticate": "Bearer", "Connection": "close"}
            return refuse(401, "a token is needed: Authorization: Bearer TOKEN.", wanted)
        scope["kbgym.client"] = client
        if scope["path"] == "/mcp":
            scope["user"] = _user(client)
        return None

    async def _body(self, headers: Headers, receive: Receive) -> bytes | Response:
        close = {"Connection": "close"}
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            return refuse(413, f"a body has at most {MOST_BODY:,} bytes.", close)
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return refuse(400, "the body ended early.", close)
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > MOST_BODY:
                        return refuse(413, f"a body has at most {MOST_BODY:,} bytes.", close)
                    if not message.get("more_body"):
                        return b"".join(chunks)
        except TimeoutError:
            return refuse(408, f"the body did not arrive within {self.body_seconds:g} seconds.", close)


def _name(host: str) -> str:
    """A Host header without its port."""
    return host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0].lower()


def _replayed(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def _user(client: Client) -> Any:
    """The client as the MCP package knows one: a session belongs to the credential that began it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=client.name, scopes=[client.role]))


def patient(seconds: float = HEAD_SECONDS) -> type[asyncio.Protocol]:
    """uvicorn's HTTP protocol, with a limit on how long a request's head may take and on how many may be connected."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if len(self.connections) > MOST_CONNECTIONS:
                transport.close()
                return
            self._late = self.loop.call_later(seconds, transport.close)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            busy = self.cycle is not None and not self.cycle.response_complete
            if busy and self._late is not None:
                self._late.cancel()
                self._late = None
            elif not busy and self._late is None:
                self._late = self.loop.call_later(seconds, self.transport.close)

        def connection_lost(self, error: Exception | None) -> None:
            if self._late is not None:
                self._late.cancel()
            super().connection_lost(error)

    return Patient
