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

from kbgym.canonical import read_lines, whole_folder, write_lines
from kbgym.errors import BadInput
from kbgym.store import Record, Store
from kbgym.trace.events import SCHEMA, Committed, Event, Genesis, Imported, RolledBack
from kbgym.trace.log import Reading, Writer, has_begun, read_trace
from kbgym.trace.replay import Watcher, effective, replay, rolled_back
from kbgym.worlds.world import Document, Source

TRACE = "trace.jsonl"


class StoreFolder:
    """Initial documents and a trace, read once; any state of the store on request."""

    def __init__(self, folder: Path, at: int | None = None) -> None:
        self.folder = folder
        self.at = at
        self.trace = folder / TRACE
        self.initial = Store(read_records(folder))
        self.reading: Reading | None = read_trace(self.trace) if has_begun(self.trace) else None

    @property
    def events(self) -> tuple[Event, ...]:
        return self.reading.events if self.reading else ()

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
        if self.reading is None or not any(isinstance(event, Committed) for event in self.events):
            raise BadInput(f"{self.folder} has no history to roll back.")
        store = rolled_back(self.store(self.reading.iteration), self.store(to))
        iteration = self.reading.iteration + 1
        position = next((e.position for e in self.events if isinstance(e, Committed) and e.iteration == to), 0)
        commit = Committed(iteration, position, store.fingerprint, len(store), store.links)
        with self.resume() as writer:
            writer.commit([RolledBack(iteration, to, reason), commit])
        self.reading = read_trace(self.trace)
        return store


def open_folder(place: str | Path) -> StoreFolder:
    """A store, run or world folder, optionally at an iteration: `FOLDER` or `FOLDER@N`."""
    text = str(place)
    match = re.fullmatch(r"(.+)@(\d+)", text)
    if match and not Path(text).exists():
        return StoreFolder(Path(match[1]), int(match[2]))
    return StoreFolder(Path(text))


def read_records(folder: Path) -> Iterable[Record]:
    if (folder / "records.jsonl").is_file():
        return read_lines(folder / "records.jsonl", Record)
    documents = world_documents(folder)
    if documents is not None:
        return (Record(d.id, d.text, d.links, origin=d.id) for d in read_lines(documents, _Sentence))
    raise BadInput(f"{folder} is no store: it has no records.jsonl, documents.jsonl or world/documents.jsonl.")


def world_documents(folder: Path) -> Path | None:
    """The file with the sentences a store began with, if the folder has one."""
    places = (folder / "documents.jsonl", folder / "world" / "documents.jsonl")
    return next((place for place in places if place.is_file()), None)


class _Sentence(msgspec.Struct):
    """What of a world's document an initial store keeps."""

    id: str
    text: str
    links: tuple[str, ...] = ()


def sources(folder: Path, origins: Collection[str]) -> dict[str, Source]:
    """Where in the user's files the given original documents stand, as far as the world and later imports know."""
    if not origins:
        return {}
    return {id: d.source for id, d in originals(folder).items() if id in origins and d.source is not None}


def originals(folder: Path, events: Iterable[Event] | None = None) -> dict[str, Document]:
    """The user's sentences a store stands for: those it began with, as later imports changed them."""
    place = world_documents(folder)
    known = {d.id: d for d in read_lines(place, Document)} if place else {}
    if events is None:
        events = read_trace(folder / TRACE).events if has_begun(folder / TRACE) else ()
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
