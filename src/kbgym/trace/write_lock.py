"""The write lock of a shared store for an event loop, in which a thread waits for the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import Any

from kbgym.trace.backend import ConnectionLost, SharedWriter, StoreBackend
from kbgym.trace.events import Event

LONG_AGO = 0.05  # seconds after which others may have written too many events to apply under the lock


class WriteLock:
    """A lock with one turn at a time. `follow` applies new events, `read_anew` reloads a store the server has lost."""

    def __init__(
        self,
        writer: SharedWriter,
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
        """Keep the events of others, which are returned only once, even if the caller was cancelled."""
        self.arrived.extend(read())
        self._looked = time.monotonic()

    def resync(self, place: StoreBackend) -> None:
        """Continue from the state of a newly opened backend."""
        self._writer.resync(place)
        self.arrived.clear()

    async def refresh(self) -> None:
        try:
            await self._run(self._arrive, self._writer.new_events)
            await self._follow()
        except ConnectionLost:
            self._read_anew()

    async def take(self) -> None:
        """Take the lock and apply the commits of others."""
        try:
            await self._take()
        except ConnectionLost:
            self._read_anew()
            await self._take()

    async def _take(self) -> None:
        held = self._writer.locked()
        try:
            if time.monotonic() - self._looked > LONG_AGO:  # before the lock is taken
                await asyncio.shield(self._run(self._arrive, self._writer.new_events))
                await self._follow()
            await asyncio.shield(self._run(self._arrive, held.__enter__))
            await self._follow()
            self.held = held
        except BaseException as error:
            # The thread takes the turn even if the caller was cancelled, so release it.
            self._thread.submit(_leave, held, error)
            raise

    async def end(self, events: Sequence[Event]) -> None:
        """End the turn; its commits are durable on return."""
        held, self.held = self.held, None
        assert held is not None
        if events:
            self._writer.commit(events)
        await self._run(held.__exit__, None, None, None)


def _leave(held: AbstractContextManager[Any], error: BaseException) -> None:
    """End a turn without writing."""
    with suppress(BaseException):
        held.__exit__(type(error), error, error.__traceback__)
