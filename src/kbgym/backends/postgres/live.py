"""The live store of a database, which other processes may write to.

A turn holds the write lock of the database, for which a thread waits. It begins with the commits of others, and its own
transactions are written when it ends. Waiting tasks of this process share a turn of the database.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, cast

from kbgym.backends.postgres.writer import PostgresWriter
from kbgym.errors import KbgymError
from kbgym.gym.environment import texts_in
from kbgym.store import Store
from kbgym.trace.backend import ConnectionLost, StoreBackend, open_backend, store_at
from kbgym.trace.events import Acted, Committed, Event, Imported, RolledBack
from kbgym.trace.live import LiveStore
from kbgym.trace.replay import catch_up

LONG_AGO = 0.05  # seconds after which others may have written too many events to apply under the lock
Held = AbstractContextManager[tuple[Event, ...]]


class SharedLiveStore(LiveStore):
    """A live store whose turns exclude other processes. All events of a turn are durable when it ends."""

    shared = True

    def _open_writer(self, embedder: str, settings: dict[str, Any]) -> StoreBackend:
        self._held: Held | None = None  # the turn of the database
        self._arrived: list[Event] = []  # commits of others that are not applied yet
        self._looked = time.monotonic()
        place = open_backend(self.where)
        if self.writes and place.genesis is None:
            place.start(embedder, settings).close()
            place = open_backend(self.where)
        self._writer = place.resume()
        return place

    @property
    def _database(self) -> PostgresWriter:
        return cast(PostgresWriter, self._writer)

    def _settle(self, place: StoreBackend) -> None:
        super()._settle(place)
        self._database.resync(place)
        self._arrived.clear()

    # -- turns --------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def write(self) -> AsyncIterator[None]:
        """Exclude all other writers; the events recorded inside are durable when the turn ends, or it raises."""
        self._check_writable()
        await self._lock.acquire()
        try:
            await self._take_turn()
        except BaseException:
            self._lock.release()
            raise
        before, error = len(self._closed), None
        try:
            yield
        except BaseException as caught:
            error = caught
            raise
        finally:  # cancellation of the caller must not leave the turn half finished
            await asyncio.shield(asyncio.get_running_loop().create_task(self._end(before, error)))

    async def _refresh(self) -> None:
        self._check_state()
        if self._held is None:  # else others cannot have committed
            try:
                await self._run(self._arrive, self._database.new_events)
                await self._follow()
            except ConnectionLost:
                self._return()

    async def _take_turn(self) -> None:
        """Take the lock and apply the commits of others."""
        self._check_state()
        if self._held is None:
            try:
                await self._take()
            except ConnectionLost:
                self._return()
                await self._take()

    async def _take(self) -> None:
        held = self._database.locked()
        try:
            if time.monotonic() - self._looked > LONG_AGO:  # before the lock is taken
                await asyncio.shield(self._run(self._arrive, self._database.new_events))
                await self._follow()
            await asyncio.shield(self._run(self._arrive, held.__enter__))
            await self._follow()
            self._held = held
        except BaseException as error:
            # The thread takes the turn even if the caller was cancelled, so release it.
            self._thread.submit(_leave, held, error)
            raise

    def _run(self, work: Callable[..., Any], *given: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    def _arrive(self, read: Callable[[], Sequence[Event]]) -> None:
        """Keep the events of others, which are returned only once, even if the caller was cancelled."""
        self._arrived.extend(read())
        self._looked = time.monotonic()

    async def _follow(self) -> None:
        """Apply the commits of others to the store, its search and the listeners."""
        if not (events := tuple(self._arrived)):
            return
        earlier = partial(store_at, self.where)
        made = [event.action for event in events if isinstance(event, Acted)]
        await self.environment.engine.prepare([text for action in made for text in texts_in(action)])
        if any(isinstance(event, Imported | RolledBack) for event in events):
            self.sync_to(catch_up(self.store.copy(), events, self.iteration, earlier, self._replayed))
        else:
            catch_up(self.store, events, self.iteration, earlier, self._followed)
        if isinstance(last := events[-1], Committed):
            self.iteration, self._position = last.iteration, last.position
        del self._arrived[: len(events)]

    def _followed(self, event: Event, store: Store) -> None:
        if isinstance(event, Acted):
            self.environment.update_index(event.result)
        self._replayed(event, store)

    # -- committing ---------------------------------------------------------------------------------------------------

    def commit(self) -> asyncio.Future[None]:
        """End the open transaction; the future is done when it is durable."""
        if self._held is None:
            raise RuntimeError("a shared store is changed in a turn")
        return super().commit()

    def _write_soon(self) -> None:
        """Do nothing, since transactions are written when the turn ends."""

    async def _end(self, before: int, error: BaseException | None) -> None:
        """End a turn; waiting tasks of this process share this turn of the database."""
        held = self._held
        try:
            if error is None and self._open:
                self.commit()
            if error is not None and (self._open or len(self._closed) > before):
                await self._abandon(before, error)
                return
            mine = self._closed[-1][1] if len(self._closed) > before else None
        finally:
            self._lock.release()
        async with self._lock:
            if self._held is held:
                await self._write()
        if mine is not None:
            await mine

    async def _abandon(self, before: int, error: BaseException) -> None:
        """Undo a failed turn, keeping the changes of earlier ones in the same turn of the database."""
        self._open, undone = [], self._closed[before:]
        del self._closed[before:]
        await self._write()
        self._give_up(undone, KbgymError(str(error)))
        self._recover()

    async def _write(self) -> None:
        """End the turn of the database, if one is held, writing all transactions committed in it."""
        held, self._held = self._held, None
        if held is None:
            return
        done, self._closed = self._closed, []
        try:
            if events := [event for events, _ in done for event in events]:
                self._database.commit(events)
            await self._run(held.__exit__, None, None, None)
        except KbgymError as trouble:
            self._give_up(done, trouble)
            self._recover()
        else:
            self.flushes += bool(done)
            self._written(done)


def _leave(held: Held, error: BaseException) -> None:
    """End a turn without writing."""
    with suppress(BaseException):
        held.__exit__(type(error), error, error.__traceback__)
