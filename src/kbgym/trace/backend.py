"""The interface of backends, which keep a store and its history in a folder or a database.

A `StoreBackend` holds initial documents and a trace; an `EventWriter` appends transactions to the trace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

from kbgym.canonical import atomic_dir, encode
from kbgym.errors import BadInput, Failed
from kbgym.progress import ProgressCallback
from kbgym.store import Store
from kbgym.trace import is_url, plugin_for, shown
from kbgym.trace.events import Committed, Event, Genesis
from kbgym.trace.folder import ARM, RECORDS, TRACE, StoreLines, open_folder
from kbgym.trace.log import TraceReading
from kbgym.trace.replay import Watcher
from kbgym.worlds.world import Document

if TYPE_CHECKING:
    from kbgym.trace.live import LiveStore


class ConnectionLost(Failed):
    """The connection was lost and the transaction was not committed; the state it is based on must be reloaded."""


class EventWriter(Protocol):
    """A writer that appends whole transactions to a trace."""

    def commit(self, events: Sequence[Event]) -> None:
        """Append a transaction, durable on return. Raise BadInput if others committed events that were not read yet."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class StoreBackend(Protocol):
    """A store with its history, read once, which returns the store at any iteration."""

    @property
    def name(self) -> str:
        """Return the name for messages, without passwords."""

    @property
    def folder(self) -> Path | None:
        """Return the folder, which also holds a run's world and exams; None for a database."""

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

    def live_store(self) -> type[LiveStore]:
        """Return the class of live stores, which excludes other writers in a turn."""

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


class Copied(msgspec.Struct, frozen=True):
    """Counts of a copied store."""

    documents: int
    links: int
    events: int
    iteration: int
    hash: str


def copy_store(source: str, target: str, tick: ProgressCallback | None = None) -> Copied:
    """Copy a store, up to an iteration if `source` names one. Raise BadInput if the target is not empty."""
    note = tick or (lambda done, total, what: None)
    if not is_url(target) and Path(target).is_dir() and any(Path(target).iterdir()):
        raise BadInput(f"{target} is not empty; a store is never written over.")
    place = open_backend(source)
    note(0, 3, "reading")
    store = place.store()  # what a replay would not repeat is not copied
    lines = place.lines()
    if place.at is not None:
        commits = ((n, event) for n, event in enumerate(lines.events, 1) if isinstance(event, Committed))
        end = next((n for n, event in commits if event.iteration == place.at), min(1, len(lines.events)))
        lines = msgspec.structs.replace(lines, trace=lines.trace[:end], events=lines.events[:end])
    note(1, 3, "writing")
    written = write(lines, target, note)
    note(3, 3, "done")
    if written.initial.fingerprint != place.initial.fingerprint:
        raise BadInput(f"{source} changed while it was copied to {target}; remove the copy and try again.")
    copied = Copied(len(store), store.links, len(lines.events), written.iteration, store.fingerprint)
    for opened in (place, written):
        opened.close()
    return copied


def write(lines: StoreLines, target: str, tick: ProgressCallback | None = None) -> StoreBackend:
    """Write a new store of these lines atomically."""
    if is_url(target):
        return plugin_for(target).create(target, lines, tick)
    with atomic_dir(Path(target)) as folder:
        _write(folder / lines.kind, lines.initial)
        if lines.trace:
            _write(folder / TRACE, lines.trace)
        if lines.arm is not None:
            (folder / ARM).write_text(lines.arm, encoding="utf-8")
    return open_backend(target)


def _write(path: Path, lines: list[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{line}\n" for line in lines)


def save_store(store: Store, target: str | Path, arm: str | None = None) -> None:
    """Write a store without history; `arm` is the text of `arm.json`."""
    lines = [encode(record).decode() for record in store]
    write(StoreLines(RECORDS, lines, [], (), arm), str(target)).close()


__all__ = ["ConnectionLost", "EventWriter", "StoreBackend", "is_url", "open_backend", "shown", "store_at"]
