"""The store being trained and its trace, in the hands of one process; others may be training the same store.

In a folder there is one trainer: events gather, and a commit makes them durable together. In a shared place every
action is a transaction of its own, in the order of all processes: whoever acts takes a turn, first follows what the
others did, and has committed when the turn ends. It knows nothing of lessons, golds or agents.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from kbgym.environment import Environment
from kbgym.errors import BadInput
from kbgym.store import Store
from kbgym.trace.events import Acted, Committed, Event, Imported, RolledBack
from kbgym.trace.place import Appender, Place, open_place
from kbgym.trace.replay import Watcher, catch_up


def join(url: str, initial: Store, embedder: str, settings: dict[str, Any]) -> Place:
    """A shared place to train at with others: it must hold these documents, and be begun with these settings or new."""
    place = open_place(url)
    if place.initial.fingerprint != initial.fingerprint:
        raise BadInput(f"{place.name} began with other documents than this world's.")
    if place.genesis is None:
        place.start(embedder, settings).close()
        place.close()
        place = open_place(url)
    begun = place.genesis.settings if place.genesis else {}
    # How many lessons one process has under way is its own affair.
    if other := [name for name in settings if name != "batch_size" and begun.get(name) != settings[name]]:
        values = "; ".join(f"{name} {begun.get(name)!r}, not {settings[name]!r}" for name in other)
        raise BadInput(f"{place.name} is being trained with {values}.")
    return place


class Bench:
    """`hear` is told of every event as it happens, whoever made it happen; `position` is how much has been taught."""

    def __init__(
        self,
        place: Place,
        environment: Environment,
        hear: Watcher,
        position: Callable[[], int],
        embedder: str,
        settings: dict[str, Any],
    ) -> None:
        """The environment has the store as the place has it, and `hear` has been told how it came to be."""
        self.environment = environment
        self.iteration = place.iteration
        self._place = place
        self._hear = hear
        self._position = position
        self._pending: list[Event] = []
        self._lock = asyncio.Lock()
        self._writer: Appender = place.resume() if place.events else place.start(embedder, settings)

    @property
    def shared(self) -> bool:
        return self._writer.shared

    @property
    def store(self) -> Store:
        return self.environment.store

    def record(self, event: Event) -> None:
        """Add to what the next commit makes durable."""
        self._pending.append(event)
        self._hear(event, self.store)

    def commit(self) -> None:
        """Everything recorded so far is durable when this returns; in a turn of a shared place, when the turn ends."""
        self.iteration += 1
        store = self.store
        commit = Committed(self.iteration, self._position(), store.fingerprint, len(store), store.links)
        events, self._pending = [*self._pending, commit], []
        self._writer.commit(events)
        self._hear(commit, store)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Whatever is done and recorded inside comes before or after what others do, never between."""
        if not self.shared:
            yield
            return
        async with self._lock:
            turn = self._writer.turn()
            # Others may hold the turn for a while: the passes under way here need not wait for it.
            news = await asyncio.to_thread(turn.__enter__)
            try:
                self._follow(news)
                yield
                if self._pending:
                    self.commit()
            except BaseException:
                await asyncio.to_thread(turn.__exit__, *sys.exc_info())
                raise
            await asyncio.to_thread(turn.__exit__, None, None, None)

    def _follow(self, events: Sequence[Event]) -> None:
        """Take on what others committed: the store, the search, and whoever listens."""
        if not events:
            return
        environment, before = self.environment, None
        if any(isinstance(event, RolledBack | Imported) for event in events):
            before = environment.store.copy()

        def watch(event: Event, store: Store) -> None:
            if before is None and isinstance(event, Acted):
                environment.follow(event.result)
            self._hear(event, store)

        now = catch_up(environment.store, events, self.iteration, lambda to: self._place.store(to), watch)
        if before is not None:
            environment.store = before
            environment.become(now)
        last = events[-1]
        if isinstance(last, Committed):
            self.iteration = last.iteration

    async def claim(self, name: str) -> bool:
        """Take a piece of work and follow what was done so far; what another has claimed is its own until it dies."""
        if not self.shared:
            return True
        async with self._lock:
            claimed = await asyncio.to_thread(self._writer.claim, name)
            self._follow(await asyncio.to_thread(self._writer.news))
            return claimed

    async def release(self, name: str) -> None:
        async with self._lock:
            await asyncio.to_thread(self._writer.release, name)

    def close(self) -> None:
        self._writer.close()
