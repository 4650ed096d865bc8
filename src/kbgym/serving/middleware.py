"""What stands before every HTTP request: who may ask, how much may be sent, and how long one may take to send it.

Host and Origin are checked because a browser can be made to talk to loopback; there is no CORS, so no page of another
site can read an answer. The body is read whole, within a limit and a time, before anything looks at it.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbgym.sanitize import number_in
from kbgym.search.embedding_queue import wanted_by
from kbgym.serving.rate_limit import RateLimits
from kbgym.serving.tokens import Client, Tokens

MOST_BODY = 1 << 20
BODY_SECONDS = 10.0
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
        rates: RateLimits | None = None,
    ) -> None:
        self.app, self.tokens, self.anybody, self.hosts = app, tokens, anybody, hosts
        self.body_seconds, self.rates = body_seconds, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._check_place(headers) or self._check_token(scope, headers)
        wanted_by.set("" if refusal or self._is_open(scope) else scope["kbgym.client"].name)
        refusal = refusal or self._check_rate(scope)
        if refusal is None:
            # Without a token nobody is waited for.
            open = self.tokens is not None and self._is_open(scope)
            body = b"" if open else await self._body(headers, receive)
            if isinstance(body, Response):
                refusal = body
            else:
                await self.app(scope, _replayed(body, receive), send)
                return
        await refusal(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        """Whether it is asked without a token."""
        return self.tokens is None or scope["path"] in OPEN

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
        if self.tokens is None or self._is_open(scope):
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

    def _check_rate(self, scope: Scope) -> Response | None:
        """What is open to everybody is not counted: it costs next to nothing, and nobody is known by name there."""
        if self.rates is None or self._is_open(scope):
            return None
        wait = self.rates.wait(scope["kbgym.client"].name)
        if not wait:
            return None
        return refuse(429, "this token asks too often; wait and ask again.", {"Retry-After": str(math.ceil(wait))})

    async def _body(self, headers: Headers, receive: Receive) -> bytes | Response:
        close = {"Connection": "close"}
        length = number_in(headers.get("content-length", "0"))
        if length is None or length > MOST_BODY:
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


_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+)(?::[0-9]{1,5})?")


def _name(host: str) -> str:
    """A Host header without its port; empty where it is none."""
    found = _HOST.fullmatch(host)
    return found[1].lower() if found else ""


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
