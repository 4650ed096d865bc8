"""A store on disk: a folder with initial documents and a trace. Opening it is replaying it.

A store folder has `records.jsonl` (documents with links and provenance), a world or a run has `documents.jsonl`
(sentences, no links yet); `trace.jsonl` beside them is optional. `FOLDER@57` is the store after iteration 57.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import read_lines, read_value, whole_folder, write_lines
from kbgym.errors import BadInput
from kbgym.store import Record, Store
from kbgym.trace.events import SCHEMA, Committed, Event, Genesis, Imported, RolledBack
from kbgym.trace.log import Reading, Writer, has_begun, read_trace
from kbgym.trace.replay import Watcher, effective, replay, rolled_back
from kbgym.worlds.world import Document, Source

RECORDS = "records.jsonl"
TRACE = "trace.jsonl"
ARM = "arm.json"


class StoreFolder:
    """Initial documents and a trace, read once; any state of the store on request."""

    def __init__(self, folder: Path, at: int | None = None) -> None:
        self.folder = folder
        self.at = at
        self.trace = folder / TRACE
        self.initial = Store(read_records(folder))
        self.reading: Reading | None = read_trace(self.trace) if has_begun(self.trace) else None

    @property
    def name(self) -> str:
        return str(self.folder)

    @property
    def events(self) -> tuple[Event, ...]:
        return self.reading.events if self.reading else ()

    @property
    def genesis(self) -> Genesis | None:
        first = self.events[0] if self.events else None
        return first if isinstance(first, Genesis) else None

    @property
    def iteration(self) -> int:
        return self.reading.iteration if self.reading else 0

    @property
    def position(self) -> int:
        last = self.events[-1] if self.events else None
        return last.position if isinstance(last, Committed) else 0

    @property
    def arm(self) -> str:
        """A baseline's store says which arm it is, and with that how it is searched."""
        file = self.folder / ARM
        return str(read_value(file, dict[str, Any]).get("arm", "flat")) if file.is_file() else "flat"

    def store(self, at: int | None = None, watch: Watcher | None = None) -> Store:
        """The store after an iteration: the one asked for, else the one named in `FOLDER@N`, else the last."""
        return replay(self.initial.copy, self.events, self.at if at is None else at, watch)

    def start(self, embedder: str, settings: dict[str, Any]) -> Writer:
        """Begin a trace over the initial documents."""
        writer = Writer(self.trace, None)
        writer.commit([Genesis(SCHEMA, len(self.initial), self.initial.fingerprint, embedder, settings)])
        return writer

    def resume(self) -> Writer:
        """Go on with the trace that is there."""
        return Writer(self.trace, self.reading)

    def rollback(self, to: int, reason: str = "") -> Store:
        """Return to an earlier iteration by adding to the history."""
        store, events = returning(self.name, self.initial, self.events, to, reason)
        with self.resume() as writer:
            writer.commit(events)
        self.reading = read_trace(self.trace)
        return store

    def verify(self) -> None:
        """There is nothing beside the trace but snapshots, which `snapshots.py` compares."""

    def close(self) -> None:
        """Nothing is held open."""

    def originals(self) -> dict[str, Document]:
        return originals(self.folder, self.events)

    def sources(self, origins: Collection[str]) -> dict[str, Source]:
        return sources(self.folder, origins)


def returning(
    name: str, initial: Store, events: tuple[Event, ...], to: int, reason: str
) -> tuple[Store, tuple[Event, ...]]:
    """The store an iteration ended with, and the transaction that returns to it."""
    last = events[-1] if events else None
    if not isinstance(last, Committed):
        raise BadInput(f"{name} has no history to roll back.")
    store = rolled_back(replay(initial.copy, events), replay(initial.copy, events, to).copy())
    iteration = last.iteration + 1
    position = next((e.position for e in events if isinstance(e, Committed) and e.iteration == to), 0)
    commit = Committed(iteration, position, store.fingerprint, len(store), store.links)
    return store, (RolledBack(iteration, to, reason), commit)


def open_folder(place: str | Path) -> StoreFolder:
    """A store, run or world folder, optionally at an iteration: `FOLDER` or `FOLDER@N`."""
    text = str(place)
    match = re.fullmatch(r"(.+)@([0-9]{1,18})", text)
    if match and not Path(text).exists():
        return StoreFolder(Path(match[1]), int(match[2]))
    return StoreFolder(Path(text))


def read_records(folder: Path) -> Iterable[Record]:
    file = initial_file(folder)
    if file.name == RECORDS:
        return read_lines(file, Record)
    return (d.record for d in read_lines(file, Sentence))


def initial_file(folder: Path) -> Path:
    """The file with what a store began with: records, or a world's sentences."""
    found = folder / RECORDS if (folder / RECORDS).is_file() else world_documents(folder)
    if found is None:
        raise BadInput(f"{folder} is no store: it has no records.jsonl, documents.jsonl or world/documents.jsonl.")
    return found


def world_documents(folder: Path) -> Path | None:
    """The file with the sentences a store began with, if the folder has one."""
    places = (folder / "documents.jsonl", folder / "world" / "documents.jsonl")
    return next((place for place in places if place.is_file()), None)


class Sentence(msgspec.Struct):
    """What of a world's document an initial store keeps."""

    id: str
    text: str
    links: tuple[str, ...] = ()

    @property
    def record(self) -> Record:
        return Record(self.id, self.text, self.links, origin=self.id)


def sources(folder: Path, origins: Collection[str]) -> dict[str, Source]:
    """Where in the user's files the given original documents stand, as far as the world and later imports know."""
    if not origins:
        return {}
    return {id: d.source for id, d in originals(folder).items() if id in origins and d.source is not None}


def originals(folder: Path, events: Iterable[Event] | None = None) -> dict[str, Document]:
    """The user's sentences a store stands for: those it began with, as later imports changed them."""
    place = world_documents(folder)
    known = read_lines(place, Document) if place else ()
    if events is None:
        events = read_trace(folder / TRACE).events if has_begun(folder / TRACE) else ()
    return imported(known, events)


def imported(documents: Iterable[Document], events: Iterable[Event]) -> dict[str, Document]:
    """Documents by id, as the imports of a trace changed them."""
    known = {document.id: document for document in documents}
    for event in effective(tuple(events)):
        if isinstance(event, Imported):
            for id in event.removed:
                known.pop(id, None)
            known.update((document.id, document) for document in (*event.edited, *event.restored, *event.added))
            for id, source in event.moved.items():
                known[id] = msgspec.structs.replace(known[id], source=source)
            for id, links in event.relinked.items():
                known[id] = msgspec.structs.replace(known[id], links=links)
    return known


def save_store(store: Store, out: Path) -> None:
    """Write a store as a folder of its own, without history."""
    with whole_folder(out) as folder:
        write_lines(folder / "records.jsonl", store)
