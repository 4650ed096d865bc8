"""The interface of backends, which keep a store and its history in a folder or a database.

A `StoreBackend` holds initial documents and a trace; an `EventWriter` appends transactions to the trace. A folder has
one writer. A database may have several, so a `SharedWriter` takes the write lock:

    with writer.locked() as news:           # excludes other writers; yields their events since the last turn
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
    """The connection was lost and the transaction was not committed; the state it is based on must be reloaded."""


class EventWriter(Protocol):
    """A writer that appends whole transactions to a trace."""

    @property
    def shared(self) -> bool:
        """Return True if others may write concurrently; the writer is then a `SharedWriter`."""

    def commit(self, events: Sequence[Event]) -> None:
        """Append a transaction, durable on return, or at the end of the turn if one is held.

        Without a turn, raise BadInput if others committed events that were not read yet.
        """

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class SharedWriter(EventWriter, Protocol):
    """A writer that shares its trace with others."""

    def new_events(self) -> tuple[Event, ...]:
        """Return the events that others committed since the last call, in order."""

    def locked(self) -> AbstractContextManager[tuple[Event, ...]]:
        """Exclude other writers for one commit, yielding their new events. An error inside undoes the commit."""

    def resync(self, place: StoreBackend) -> None:
        """Continue after a failure from the state of a newly opened backend."""


class StoreBackend(Protocol):
    """A store with its history, read once, which returns the store at any iteration."""

    @property
    def name(self) -> str:
        """Return the name for messages, without passwords."""

    @property
    def folder(self) -> Path | None:
        """Return the folder, which also holds a run's world, exams and snapshots; None for a database."""

    @property
    def at(self) -> int | None:
        """Return the iteration of `STORE@N`, or None."""

    @property
    def arm(self) -> str:
        """Return the baseline that built the store; empty if unknown."""

    @property
    def initial(self) -> Store: ...

    @property
    def reading(self) -> TraceReading | None:
        """Return the trace, or None before the first transaction."""

    @property
    def events(self) -> tuple[Event, ...]: ...

    @property
    def genesis(self) -> Genesis | None: ...

    @property
    def iteration(self) -> int: ...

    @property
    def position(self) -> int:
        """Return the number of training questions the store was taught."""

    def store(self, at: int | None = None, watch: Watcher | None = None) -> Store: ...

    def start(self, embedder: str, settings: dict[str, Any]) -> EventWriter: ...

    def resume(self) -> EventWriter: ...

    def verify(self) -> None:
        """Raise Damaged if data stored beside the trace contradicts it."""

    def rollback(self, to: int, reason: str = "") -> Store: ...

    def originals(self, ids: Collection[str] | None = None) -> dict[str, Document]:
        """Return the user's documents, all or those given, as changed by later imports."""

    def lines(self) -> StoreLines:
        """Return the store as the lines of its files."""

    def close(self) -> None:
        """Close connections; writers stay open."""


class BackendPlugin(Protocol):
    """A backend by URL scheme, found by `kbgym.plugins` in the group `kbgym.backends`."""

    def open(self, url: str) -> StoreBackend: ...

    def create(self, url: str, lines: StoreLines, tick: ProgressCallback | None = None) -> StoreBackend:
        """Write a new store atomically. Raise BadInput if one exists."""

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
