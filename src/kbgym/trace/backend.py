"""The interface of a store's history to the backend that keeps it: a folder or a database.

A `StoreBackend` holds initial documents and a trace; an `EventWriter` appends transactions to the trace. A folder has
one writer. In a database other processes write too, and a `SharedWriter` takes the write lock:

    with writer.locked() as news:           # excludes other writers; returns what they committed since the last turn
        follow(news)
        ...                               # act
        writer.commit(events)
    # durable here, or an error was raised
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Protocol, Self

from kbgym.errors import Failed
from kbgym.progress import ProgressCallback
from kbgym.store import Store
from kbgym.trace.events import Event, Genesis
from kbgym.trace.folder import StoreLines, open_folder
from kbgym.trace.log import TraceReading
from kbgym.trace.replay import Watcher
from kbgym.trace.url import is_url, plugin_for, shown
from kbgym.worlds.world import Document


class ConnectionLost(Failed):
    """The connection broke and the transaction was not committed; its basis must be read again."""


class EventWriter(Protocol):
    """Appends whole transactions to a trace."""

    @property
    def shared(self) -> bool:
        """True if others may write at the same time; it is a `SharedWriter` then."""

    def commit(self, events: Sequence[Event]) -> None:
        """Append a transaction: durable on return, or at the end of the turn if one is held.

        Without a turn, raise BadInput if others committed since the last news.
        """

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class SharedWriter(EventWriter, Protocol):
    """A writer among others."""

    def new_events(self) -> tuple[Event, ...]:
        """Return what others committed since the last news, in order."""

    def locked(self) -> AbstractContextManager[tuple[Event, ...]]:
        """Exclude other writers for one commit, and return the news. An error inside undoes the commit."""

    def resync(self, place: StoreBackend) -> None:
        """After a failure: continue from what a backend that was just opened has read."""


class StoreBackend(Protocol):
    """A store with its history, read once; it returns any state of it."""

    @property
    def name(self) -> str:
        """The name in messages, without passwords."""

    @property
    def folder(self) -> Path | None:
        """The folder, if it is one: it also holds a run's world, exams and snapshots."""

    @property
    def at(self) -> int | None:
        """The iteration of `STORE@N`."""

    @property
    def arm(self) -> str:
        """The baseline that made it; empty if unknown."""

    @property
    def initial(self) -> Store: ...

    @property
    def reading(self) -> TraceReading | None:
        """The trace; None before the first transaction."""

    @property
    def events(self) -> tuple[Event, ...]: ...

    @property
    def genesis(self) -> Genesis | None: ...

    @property
    def iteration(self) -> int: ...

    @property
    def position(self) -> int:
        """The number of training questions it was taught."""

    def store(self, at: int | None = None, watch: Watcher | None = None) -> Store: ...

    def start(self, embedder: str, settings: dict[str, Any]) -> EventWriter: ...

    def resume(self) -> EventWriter: ...

    def verify(self) -> None:
        """Raise Damaged if what is kept beside the trace contradicts it."""

    def rollback(self, to: int, reason: str = "") -> Store: ...

    def originals(self, ids: Collection[str] | None = None) -> dict[str, Document]:
        """Return the user's documents as later imports changed them; all of them, or these."""

    def lines(self) -> StoreLines:
        """Return the store as the lines of its files."""

    def close(self) -> None:
        """Close connections; writers stay open."""


class BackendPlugin(Protocol):
    """A backend by URL scheme, found by `kbgym.plugins` in the group `kbgym.backends`."""

    def open(self, url: str) -> StoreBackend: ...

    def create(self, url: str, lines: StoreLines, tick: ProgressCallback | None = None) -> StoreBackend:
        """Write a new store, all or nothing. Raise BadInput if there is one."""

    def display_name(self, url: str) -> str:
        """Return the URL without passwords."""


def open_backend(place: str | Path) -> StoreBackend:
    """Open a store in a folder (`FOLDER`, `FOLDER@57`) or a database (`postgresql://...`)."""
    if is_url(place):
        return plugin_for(str(place)).open(str(place))
    return open_folder(place)


def store_at(place: str | Path, iteration: int) -> Store:
    """Return the store after an iteration, opened anew."""
    with closing(open_backend(place)) as opened:
        return opened.store(iteration)


__all__ = ["ConnectionLost", "EventWriter", "StoreBackend", "is_url", "open_backend", "shown", "store_at"]
