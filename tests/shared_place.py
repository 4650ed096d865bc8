"""A place that several live stores share, in memory: what a database does for them, without one.

It keeps the promises of `trace/place.py` and nothing else; that a real database keeps them is tested elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kbgym.errors import Failed
from kbgym.store import Record, Store
from kbgym.trace.events import SCHEMA, Committed, Event, Genesis
from kbgym.trace.replay import Watcher, replay

URL = "postgresql://nobody@nowhere/shared"


class SharedPlace:
    """The committed events and whose turn it is; `trouble` makes the next writes fail."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = list(records)
        self.events: tuple[Event, ...] = ()
        self.turn = threading.Lock()
        self.trouble: list[Exception] = []
        self.opened = 0

    def open(self, where: object = URL) -> OpenedPlace:
        self.opened += 1
        if self.trouble and str(self.trouble[0]) == "unreachable":
            raise self.trouble.pop(0)
        return OpenedPlace(self)

    def store_at(self, where: object, iteration: int) -> Store:
        return OpenedPlace(self).store(iteration)


class OpenedPlace:
    """The place as it was when it was opened."""

    name, folder, at, arm, reading = URL, None, None, "", None

    def __init__(self, place: SharedPlace) -> None:
        self.place, self.events = place, place.events
        self.initial = Store(place.records)

    @property
    def genesis(self) -> Genesis | None:
        return self.events[0] if self.events else None  # type: ignore[return-value]

    @property
    def iteration(self) -> int:
        return self.events[-1].iteration if len(self.events) > 1 else 0  # type: ignore[union-attr]

    @property
    def position(self) -> int:
        return self.events[-1].position if len(self.events) > 1 else 0  # type: ignore[union-attr]

    def store(self, at: int | None = None, watch: Watcher | None = None) -> Store:
        return replay(self.initial.copy, self.events, at, watch)

    def start(self, embedder: str, settings: dict[str, Any]) -> SharedWriter:
        begun = Genesis(SCHEMA, len(self.initial), self.initial.fingerprint, embedder, settings)
        self.place.events = (begun,)
        return SharedWriter(self)

    def resume(self) -> SharedWriter:
        return SharedWriter(self)

    def close(self) -> None: ...


class SharedWriter:
    """One process's way to the place. A commit counts when the turn ends well."""

    def __init__(self, opened: OpenedPlace) -> None:
        self.place, self.known = opened.place, len(opened.events)
        self.waiting: list[Event] = []
        self.closed = False

    def commit(self, events: Sequence[Event], made: Store | None = None) -> None:
        assert self.place.turn.locked() and isinstance(events[-1], Committed)
        self.waiting += events

    def new_events(self) -> tuple[Event, ...]:
        found, self.known = self.place.events[self.known :], len(self.place.events)
        return found

    @contextmanager
    def locked(self) -> Iterator[tuple[Event, ...]]:
        with self.place.turn:
            self.waiting = []
            yield self.new_events()
            if self.place.trouble and self.waiting:
                raise self.place.trouble.pop(0)
            self.place.events = (*self.place.events, *self.waiting)
            self.known = len(self.place.events)

    def resync(self, place: OpenedPlace) -> None:
        self.known = len(place.events)

    def close(self) -> None:
        self.closed = True


def full_disk() -> Failed:
    return Failed("no space left")
