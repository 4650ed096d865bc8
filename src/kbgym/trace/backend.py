"""The seam between a store's history and the backend that keeps it: a folder or a database.

A `StoreBackend` holds initial documents and a trace; an `EventWriter` appends transactions to the trace. Where the
backend is shared, other processes append too, and a writer takes the write lock:

    with writer.turn() as news:           # other writers wait; their commits since the last turn are handed over
        follow(news)
        ...                               # act
        writer.commit(events)
    # durable here, or an error was raised

A folder has one writer and no news, and the same lines work.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Protocol

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
    """The connection broke and the transaction was certainly not committed: what it was built on must be read again."""


class EventWriter(Protocol):
    """Adds whole transactions to a trace."""

    @property
    def shared(self) -> bool:
        """Whether others may write at the same time."""

    def commit(self, events: Sequence[Event]) -> None:
        """Add a transaction: durable on return, or at the end of the turn where one is held.

        Without a turn, it is refused where others committed since the last news.
        """

    def news(self) -> tuple[Event, ...]:
        """What others committed since the last news, in order."""

    def enqueue(self) -> tuple[Event, ...]:
        """Before a turn: wait until it is nearly this writer's; gives the news, to be followed meanwhile."""

    def dequeue(self) -> None:
        """Whoever lined up takes no turn."""

    def turn(self) -> AbstractContextManager[tuple[Event, ...]]:
        """Hold up every other writer, for one commit; gives the news. An error inside undoes the commit."""

    def resync(self, place: StoreBackend) -> None:
        """After a failure: continue from what a place that was just opened has read, not from the last news."""

    def close(self) -> None: ...

    def __enter__(self) -> EventWriter: ...

    def __exit__(self, *_: object) -> None: ...


class StoreBackend(Protocol):
    """A store with its history, read once; any state of it on request."""

    @property
    def name(self) -> str:
        """What messages call it; never a password."""

    @property
    def folder(self) -> Path | None:
        """The folder, where it is one: a run's world, exams and snapshots are there."""

    @property
    def at(self) -> int | None:
        """The iteration asked for, by `STORE@N`."""

    @property
    def arm(self) -> str:
        """Which arm made it; empty where nothing says so."""

    @property
    def initial(self) -> Store: ...

    @property
    def reading(self) -> TraceReading | None:
        """The trace; none before the first transaction."""

    @property
    def events(self) -> tuple[Event, ...]: ...

    @property
    def genesis(self) -> Genesis | None: ...

    @property
    def iteration(self) -> int: ...

    @property
    def position(self) -> int:
        """How many training questions it has been taught."""

    def store(self, at: int | None = None, watch: Watcher | None = None) -> Store: ...

    def start(self, embedder: str, settings: dict[str, Any]) -> EventWriter: ...

    def resume(self) -> EventWriter: ...

    def verify(self) -> None:
        """See that whatever is kept beside the trace says the same as the trace."""

    def rollback(self, to: int, reason: str = "") -> Store: ...

    def originals(self, ids: Collection[str] | None = None) -> dict[str, Document]:
        """The user's sentences it stands for, as later imports changed them; all of them, or these."""

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


def backend_plugin(url: str) -> BackendPlugin:
    """Return the backend of a URL's scheme."""
    found: BackendPlugin = plugin_for(url)
    return found


def open_backend(place: str | Path) -> StoreBackend:
    """A store wherever it is: a folder (`FOLDER`, `FOLDER@57`) or a database (`postgresql://...`)."""
    if is_url(place):
        return backend_plugin(str(place)).open(str(place))
    return open_folder(place)


def store_at(place: str | Path, iteration: int) -> Store:
    """The store after an iteration, looked up anew."""
    opened = open_backend(place)
    try:
        return opened.store(iteration)
    finally:
        opened.close()


__all__ = ["ConnectionLost", "EventWriter", "StoreBackend", "is_url", "open_backend", "shown", "store_at"]


def leave(held: AbstractContextManager[Any], error: BaseException) -> None:
    """End a turn with nothing written."""
    with suppress(BaseException):
        held.__exit__(type(error), error, error.__traceback__)
