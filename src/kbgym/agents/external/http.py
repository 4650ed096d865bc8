"""One pass over streamable HTTP: a server on loopback that knows one token, and ends with the pass.

Every connection, message and request is counted, so that an agent that floods it ends its own pass and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import Awaitable, Callable

import h11

from kbgym.mcp import MOST_MESSAGE

MOST_CONNECTIONS = 16
_CHUNK = 1 << 16
Answering = Callable[[bytes], Awaitable[bytes | None]]


class PassServer:
    """Answers whoever has the token, from when it is started until it is closed."""

    def __init__(self, token: str, answering: Answering) -> None:
        self._token, self._answering = f"Bearer {token}".encode(), answering
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Its address."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            with contextlib.suppress(h11.ProtocolError, OSError, asyncio.CancelledError):
                await self._converse(h11.Connection(h11.SERVER), reader, writer)
        finally:
            self._open.discard(task)
            writer.close()

    async def _converse(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        request: h11.Request | None = None
        body = b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(_CHUNK))
            elif isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MOST_MESSAGE:
                    return await self._say(connection, writer, 413, b"")
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                await self._say(connection, writer, *await self._answered(request, body))
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    return None
                connection.start_next_cycle()
            else:  # the other end is gone
                return None

    async def _answered(self, request: h11.Request, body: bytes) -> tuple[int, bytes]:
        headers = dict(request.headers)
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._token):
            return 401, b""
        if request.target.partition(b"?")[0] != b"/mcp":
            return 404, b""
        if request.method != b"POST":  # there is nothing to listen to between calls
            return 405, b""
        said = await self._answering(body)
        return (202, b"") if said is None else (200, said)

    async def _say(self, connection: h11.Connection, writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
        headers = [("content-length", str(len(body)))] + ([("content-type", "application/json")] if body else [])
        for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            writer.write(connection.send(event) or b"")
        await writer.drain()
