"""What each token may take of a server, so that one client can use up its own share and nobody else's."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION_ID = b"mcp-session-id"


class Quota(msgspec.Struct, frozen=True):
    """Of one token: requests a second (0 for any number; twice as many may come at once), and sessions of each kind."""

    requests: float = 100.0
    sessions: int = 64


class RateLimits:
    """Requests by client: a bucket each, which holds two seconds' worth and fills steadily."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most, self._clock = rate, max(1.0, 2 * rate), clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self.refused = 0

    def wait(self, client: str) -> float:
        """0 if the client may go on, which is counted; else for how many seconds it may not."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, since = self._buckets.get(client, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        allowed = left >= 1
        self._buckets[client] = (left - allowed, now)
        self.refused += not allowed
        return 0.0 if allowed else (1 - left) / self._rate


class McpSessions:
    """The MCP transport with so many sessions a client: the one it has not used for longest ends for a new one.

    It sees a session begin and end by the answers' own headers, and ends one as its client would.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self._open: dict[str, OrderedDict[bytes, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        mine = self._open.setdefault(scope["kbgym.client"].name, OrderedDict())
        named = next((value for name, value in scope["headers"] if name == SESSION_ID), None)
        if named is None and len(mine) >= self._most:
            await self._end(scope, mine.popitem(last=False)[0])

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                given = next((value for name, value in message["headers"] if name.lower() == SESSION_ID), named)
                if scope["method"] == "DELETE":
                    mine.pop(given or b"", None)
                elif given is not None and (named is None or named in mine):
                    mine[given] = None
                    mine.move_to_end(given)
            elif message["type"] == "http.response.start" and message["status"] == 404 and named is not None:
                mine.pop(named, None)
            await send(message)

        await self._app(scope, receive, sending)

    async def _end(self, scope: Scope, session: bytes) -> None:
        kept = [pair for pair in scope["headers"] if pair[0] not in (SESSION_ID, b"content-length", b"content-type")]
        ending = {**scope, "method": "DELETE", "headers": [*kept, (SESSION_ID, session)], "state": {}}

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(message: Message) -> None:
            """Nobody waits for this answer."""

        await self._app(ending, nothing, unheard)
