"""The folder backend: initial documents and a trace to replay.

A store folder has `records.jsonl` (documents with links and provenance), a world or a run has `documents.jsonl`
(sentences without links); `trace.jsonl` beside them is optional. `FOLDER@57` is the store after iteration 57.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import read_lines, read_value
from kbgym.errors import BadInput
from kbgym.store import Record, Store
from kbgym.trace.events import SCHEMA, Committed, Event, Genesis, Imported, RolledBack, committed
from kbgym.trace.log import TraceReading, TraceWriter, has_begun, read_trace
from kbgym.trace.replay import Watcher, effective, replay
from kbgym.worlds.world import Document

RECORDS = "records.jsonl"
TRACE = "trace.jsonl"
ARM = "arm.json"


class StoreLines(msgspec.Struct, frozen=True):
    """A store as the lines of its files; `kind` is the name of the initial file, `arm` the text of `arm.json`."""

    kind: str
    initial: list[str]
    trace: list[str]
    events: tuple[Event, ...]
    arm: str | None = None


class StoreFolder:
    """Initial documents and a trace, read once. A `StoreBackend`."""

    def __init__(self, folder: Path, at: int | None = None) -> None:
        self.folder, self.name, self.at = folder, str(folder), at
        self.trace = folder / TRACE
        self.initial = Store(read_records(folder))
        self.reading: TraceReading | None = read_trace(self.trace) if has_begun(self.trace) else None

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the events of the trace; empty if nothing was traced."""
        return self.reading.events if self.reading else ()

    @property
    def genesis(self) -> Genesis | None:
        """Return the first event, which describes the initial store and the settings."""
        return next((event for event in self.events[:1] if isinstance(event, Genesis)), None)

    @property
    def iteration(self) -> int:
        """Return the last committed iteration."""
        return self.reading.end.iteration if self.reading else 0

    @property
    def position(self) -> int:
        """Return the number of training questions taught so far."""
        last = self.events[-1] if self.events else None
        return last.position if isinstance(last, Committed) else 0

    @property
    def arm(self) -> str:
        """Return the baseline that built the store; empty if unknown."""
        return arm_of(self.folder)

    def store(self, at: int | None = None, watch: Watcher | None = None) -> Store:
        """Return the store after an iteration, by default that of `FOLDER@N` or the last."""
        return replay(self.initial.copy, self.events, self.at if at is None else at, watch)

    def start(self, embedder: str, settings: dict[str, Any]) -> TraceWriter:
        """Begin a trace over the initial documents."""
        writer = TraceWriter(self.trace, None)
        writer.commit([Genesis(SCHEMA, len(self.initial), self.initial.fingerprint, embedder, settings)])
        return writer

    def resume(self) -> TraceWriter:
        """Continue the trace."""
        return TraceWriter(self.trace, self.reading)

    def rollback(self, to: int, reason: str = "") -> Store:
        """Return to an earlier iteration by adding to the history."""
        store, events = returning(self.name, self.initial, self.events, to, reason)
        with self.resume() as writer:
            writer.commit(events)
        self.reading = read_trace(self.trace)
        return store

    def lines(self) -> StoreLines:
        """Return the store as the lines of its files."""
        file, about = initial_file(self.folder), self.folder / ARM
        trace = self.trace.read_bytes()[: self.reading.end.size] if self.reading else b""
        arm = about.read_text(encoding="utf-8") if about.is_file() else None
        return StoreLines(file.name, _split(file.read_bytes()), _split(trace), self.events, arm)

    def verify(self) -> None:
        """Do nothing, since no data is stored beside the trace."""

    def close(self) -> None:
        """Do nothing, since no file stays open."""

    def originals(self, ids: Collection[str] | None = None) -> dict[str, Document]:
        """Return the user's sentences, all or those given, as changed by later imports."""
        place = world_documents(self.folder)
        return imported(read_lines(place, Document) if place else (), self.events, ids)


def _split(data: bytes) -> list[str]:
    return data.decode("utf-8").removesuffix("\n").split("\n") if data else []


def returning(
    name: str, initial: Store, events: tuple[Event, ...], to: int, reason: str
) -> tuple[Store, tuple[Event, ...]]:
    """Return the store after an iteration, and the transaction that returns to it."""
    last = events[-1] if events else None
    if not isinstance(last, Committed):
        raise BadInput(f"{name} has no history to roll back.")
    store = replay(initial.copy, events, to).copy().never_reissue(replay(initial.copy, events))
    iteration = last.iteration + 1
    return store, (RolledBack(iteration, to, reason), committed(iteration, position_at(events, to), store))


def position_at(events: Iterable[Event], iteration: int) -> int:
    """Return the number of training questions the store had been taught after an iteration."""
    return next((e.position for e in events if isinstance(e, Committed) and e.iteration == iteration), 0)


class ArmFile(msgspec.Struct, frozen=True):
    """`arm.json` of a baseline's store: its name, search and observations."""

    arm: str
    engine: str | None = None
    observations: str | None = None


def arm_file(folder: Path) -> ArmFile | None:
    file = folder / ARM
    return read_value(file, ArmFile) if file.is_file() else None


def arm_of(folder: Path) -> str:
    """Return the baseline that built a store; empty if unknown."""
    found = arm_file(folder)
    return found.arm if found is not None else ""


def open_folder(place: str | Path) -> StoreFolder:
    """Open a store, run or world folder, optionally at an iteration: `FOLDER` or `FOLDER@N`."""
    return StoreFolder(*folder_and_iteration(place))


def folder_and_iteration(place: str | Path) -> tuple[Path, int | None]:
    """Split `FOLDER@57`, unless a folder has exactly that name."""
    match = re.fullmatch(r"(.+)@(\d+)", str(place))
    if match and not Path(place).exists():
        return Path(match[1]), int(match[2])
    return Path(place), None


def read_records(folder: Path) -> Iterable[Record]:
    file = initial_file(folder)
    if file.name == RECORDS:
        return read_lines(file, Record)
    return (d.record for d in read_lines(file, InitialDocument))


def initial_file(folder: Path) -> Path:
    """Return the file of the initial documents: records, or a world's sentences."""
    found = folder / RECORDS if (folder / RECORDS).is_file() else world_documents(folder)
    if found is None:
        raise BadInput(f"{folder} is not a store: it has no records.jsonl, documents.jsonl or world/documents.jsonl.")
    return found


def world_documents(folder: Path) -> Path | None:
    """Return the file of a world's sentences, if the folder has one."""
    places = (folder / "documents.jsonl", folder / "world" / "documents.jsonl")
    return next((place for place in places if place.is_file()), None)


class InitialDocument(msgspec.Struct):
    """The part of a world's document that an initial store keeps."""

    id: str
    text: str
    links: tuple[str, ...] = ()

    @property
    def record(self) -> Record:
        return Record(self.id, self.text, self.links, origin=self.id)


def imported(
    documents: Iterable[Document], events: Iterable[Event], ids: Collection[str] | None = None
) -> dict[str, Document]:
    """Return documents by id, all or those given, as changed by the imports of a trace."""
    known = {document.id: document for document in documents if ids is None or document.id in ids}
    for event in effective(tuple(events)):
        if isinstance(event, Imported):
            for id in event.removed:
                known.pop(id, None)
            came = (*event.edited, *event.restored, *event.added)
            known.update((document.id, document) for document in came if ids is None or document.id in ids)
            changes: dict[str, Mapping[str, Any]] = {"source": event.moved, "links": event.relinked}
            for field, changed in changes.items():
                for id in changed.keys() & known.keys():
                    known[id] = msgspec.structs.replace(known[id], **{field: changed[id]})
    return known
