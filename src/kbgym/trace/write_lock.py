"""The turns of one process at a store that others write too, taken from an event loop: a thread waits for the database.

It knows what the others committed and nobody has followed yet; how it is followed is its user's affair.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from kbgym.trace.backend import ConnectionLost, EventWriter, leave
from kbgym.trace.events import Event

LONG_AGO = 0.05  # seconds, in which others may have done so much that following it would hold them up


class WriteLock:
    """At most one turn at a time. `follow` is called whenever something may have arrived, `read_anew` where what was
    followed before is gone from the server."""

    def __init__(
        self,
        writer: EventWriter,
        thread: ThreadPoolExecutor,
        follow: Callable[[], Awaitable[None]],
        read_anew: Callable[[], None],
    ) -> None:
        self._writer, self._thread, self._follow, self._read_anew = writer, thread, follow, read_anew
        self.held: AbstractContextManager[tuple[Event, ...]] | None = None
        self.arrived: list[Event] = []
        self._looked = time.monotonic()

    def _run(self, work: Callable[..., Any], *given: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    def _arrive(self, read: Callable[[], Sequence[Event]]) -> None:
        """Read what others committed. It is told once, so it is kept even where nobody waits for it any more."""
        self.arrived.extend(read())
        self._looked = time.monotonic()

    async def news(self) -> None:
        try:
            await self._run(self._arrive, self._writer.news)
            await self._follow()
        except ConnectionLost:
            self._read_anew()

    async def take(self) -> None:
        """Hold up the others, having followed what they did."""
        try:
            await self._take()
        except ConnectionLost:
            self._read_anew()
            await self._take()

    async def _take(self) -> None:
        held = self._writer.turn()
        try:
            if time.monotonic() - self._looked > LONG_AGO:  # what was missed while thinking, before standing in the way
                await asyncio.shield(self._run(self._arrive, self._writer.news))
                await self._follow()
            if not await asyncio.shield(self._run(self._line_up, held)):
                await self._follow()  # most of it before the others are held up
                await asyncio.shield(self._run(self._arrive, held.__enter__))
            await self._follow()
            self.held = held
        except BaseException as error:
            # Also where nobody waits any more: the thread takes the turn in any case, and then gives it back.
            self._thread.submit(leave, held, error)
            self._thread.submit(self._writer.dequeue)
            raise

    def _line_up(self, held: AbstractContextManager[tuple[Event, ...]]) -> bool:
        """Whether the turn is taken: at once, where there is nothing to be followed first."""
        self._arrive(self._writer.enqueue)
        if self.arrived:
            return False
        self._arrive(held.__enter__)
        return True

    async def end(self, events: Sequence[Event]) -> None:
        """Let the others go on; durable on return is what was committed in the turn, if anything was."""
        held, self.held = self.held, None
        assert held is not None
        if events:
            self._writer.commit(events)
        await self._run(held.__exit__, None, None, None)
