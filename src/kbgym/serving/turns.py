"""Requests in turn: whoever asked little of late begins at once, of the others one at a time, the least served first.

A server has one event loop; a crowd that asks without a pause would have everybody else wait behind all of it. So a
client that asks much begins a request only when its turn comes, at most one in each round of the loop, and where
several such clients wait, after a pause, so that the loop is free when one comes that asks seldom. What waits for a
disk, a model or a slow reader holds up nobody: only beginnings are counted. It knows no tokens and no HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

NOBODY = ""  # those nobody knows, as one client: the newest comes first, since one that waited long has likely gone
MOST_UNKNOWN = 64  # of whom so many wait; for one more the oldest goes
HALF_LIFE = 2.0  # seconds after which a request counts for half
LITTLE = 0.8  # of what clients have asked on average
FEW = 9.0  # requests of late that are little, whatever others ask: three a second
AN_ACTION = 0.25  # of a request: what an action of a pass counts for that the server plays for a client
EASE = 1.0  # how long the loop is left free after a request, in times of what that took
LONGEST = 0.02  # seconds of a pause
_FADED = 2.0**-20


class Turns:
    """Who waits to begin, by client, and how much each has asked of late."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._had: dict[str, float] = {}  # in place of fading, what comes later counts for more
        self._sum = 0.0
        self._waiting: dict[str, deque[tuple[asyncio.Future[bool], float]]] = {}
        self._next: asyncio.Handle | None = None  # when the next one may begin

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def take(self, client: str, counts: float = 1.0) -> bool:
        """Whether it is this client's turn, once it is; False where too many of those nobody knows wait.

        One that was never here waits, as a crowd of such may come.
        """
        loop = asyncio.get_running_loop()
        if self._next is None:
            self._next = loop.call_soon(self._go_on, self._clock())
            self._count(client, counts)
            return True
        if client != NOBODY and client in self._had and self._is_little(self._had[client]):
            self._count(client, counts)
            return True
        turn: asyncio.Future[bool] = loop.create_future()
        queue = self._waiting.setdefault(client, deque())
        queue.append((turn, counts))
        if client == NOBODY and len(queue) > MOST_UNKNOWN and not (oldest := queue.popleft()[0]).done():
            oldest.set_result(False)
        return await turn

    def _is_little(self, had: float) -> bool:
        few: float = FEW * 2.0 ** ((self._clock() - self._start) / HALF_LIFE)
        return had <= max(few, LITTLE * self._sum / len(self._had))

    def _begin(self) -> None:
        """One of those who wait begins: of several clients, the one that has had least."""
        self._next = None
        while self._waiting:
            client = min(self._waiting, key=lambda one: self._had.get(one, 0.0))
            queue = self._waiting[client]
            turn, counts = queue.popleft() if client != NOBODY else queue.pop()
            if not queue:
                del self._waiting[client]
            if not turn.done():  # else whoever waited has gone
                turn.set_result(True)
                self._count(client, counts)
                self._next = asyncio.get_running_loop().call_soon(self._go_on, self._clock())
                return

    def _go_on(self, began: float) -> None:
        """What began has gone as far as it can at once: this comes behind it, in the next round of the loop."""
        pause = min(LONGEST, EASE * (self._clock() - began)) if len(self._waiting) > 1 else 0.0
        self._next = asyncio.get_running_loop().call_later(pause, self._begin) if self._waiting else None

    def _count(self, client: str, counts: float) -> None:
        halves = (self._clock() - self._start) / HALF_LIFE
        if halves > 50:
            faded = {one: had * 2.0**-halves for one, had in self._had.items()}
            self._had = {one: had for one, had in faded.items() if had > _FADED}
            self._sum = sum(self._had.values())
            self._start, halves = self._clock(), 0.0
        # Whoever comes new counts as having asked what others did: a crowd of such would go before all of them.
        mean = self._sum / len(self._had) if self._had else 0.0
        more = counts * 2.0**halves + (0.0 if client in self._had else mean)
        self._had[client] = self._had.get(client, 0.0) + more
        self._sum += more
