"""One pass over streamable HTTP: a loopback server that accepts one token and closes with the pass."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import Awaitable, Callable

from aiohttp import web

from kbgym.mcp import MOST_MESSAGE


class PassServer:
    """HTTP server that answers requests with the token, from `start` to `close`."""

    def __init__(self, token: str, answering: Callable[[bytes], Awaitable[bytes | None]]) -> None:
        self._token, self._answering = f"Bearer {token}".encode(), answering
        app = web.Application(client_max_size=MOST_MESSAGE)
        app.router.add_post("/mcp", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)  # zero would wait forever

    async def start(self) -> str:
        """Start the server and return its address."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/mcp"

    async def close(self) -> None:
        await self._runner.cleanup()

    def abandon(self) -> None:
        """Close the server in the background, for callers that cannot await."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and its sockets with it
            asyncio.get_running_loop().create_task(self.close())

    async def _answer(self, request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get("authorization", "").encode(), self._token):
            return web.Response(status=401)
        said = await self._answering(await request.read())
        return web.Response(status=202) if said is None else web.Response(body=said, content_type="application/json")
