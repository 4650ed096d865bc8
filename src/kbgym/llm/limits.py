"""How many requests may be under way at once: fewer after a 429, slowly more again while all goes well.

Additive increase, multiplicative decrease, as in TCP. It knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Limiter:
    """At most `limit` holders at once, `limit` moving between 1 and `most`; the shortest conversation goes first.

    Passes are chains of requests of unknown length. Keeping them level ends an exam sooner than finishing some early:
    a long chain that starts late would run on alone at the end.
    """

    def __init__(self, most: int) -> None:
        self.most = max(1, most)
        self.limit = float(self.most)
        self.active = 0
        self.cuts = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._came = 0

    @asynccontextmanager
    async def slot(self, advanced: int = 0) -> AsyncIterator[int]:
        """Hold one place. The value tells `throttled` when this request was let in."""
        await self._enter(advanced)
        try:
            yield self.cuts
        finally:
            self.active -= 1
            self._admit()

    def succeeded(self) -> None:
        self.limit = min(float(self.most), self.limit + 1 / self.limit)
        self._admit()

    def throttled(self, since: int) -> None:
        """Halve the limit, once for all the requests that were let in before the last cut."""
        if since == self.cuts:
            self.limit = max(1.0, self.limit / 2)
            self.cuts += 1

    async def _enter(self, advanced: int) -> None:
        if not self._waiting and self.active < int(self.limit):
            self.active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._came += 1
        heapq.heappush(self._waiting, (advanced, self._came, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.active -= 1
            self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self.active < int(self.limit):
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self.active += 1
                turn.set_result(None)
