"""Checks of a run's snapshots against its trace, and recovery of the intact part of a damaged trace."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

import msgspec

from kbgym.canonical import encode, read_file, read_lines, write_whole
from kbgym.errors import BadInput, Damaged
from kbgym.store import Record, Store
from kbgym.trace.events import Committed, Event, Genesis
from kbgym.trace.log import START, CommitMarker, HeadFile, head_of, read_head, read_trace, verified


class SnapshotCheck:
    """A replay watcher that compares the store with the snapshots."""

    def __init__(self, folder: Path | None) -> None:
        files = sorted((folder / "snapshots").glob("*.jsonl")) if folder else []
        self._files = {int(file.stem): file for file in files if file.stem.isascii() and file.stem.isdecimal()}
        self.checked = 0

    def __call__(self, event: Event, store: Store) -> None:
        if isinstance(event, Genesis | Committed):
            iteration = event.iteration if isinstance(event, Committed) else 0
            if iteration in self._files:
                _compare(self._files[iteration], store)
                self.checked += 1


def _compare(file: Path, store: Store) -> None:
    for number, (there, here) in enumerate(zip_longest(read_lines(file, Record), store), 1):
        if there is None or here is None or encode(there) != encode(here):
            id = (here or there or Record("", "")).id
            raise Damaged(f"{file}, line {number}: document {id} is not what the trace says it was.")


class Recovered(msgspec.Struct, frozen=True):
    """The outcome of a recovery. `lost` is the number of later iterations that the head recorded."""

    iteration: int
    size: int
    lost: int | None
    damaged: str


def recover(trace: Path) -> Recovered | None:
    """Cut a trace to its last whole transaction, keeping the damaged files; return None if it is not damaged."""
    try:
        read_trace(trace)
    except Damaged:
        pass
    else:
        return None
    with _held(trace):
        data = read_file(trace) if trace.exists() else b""
        whole = _whole(trace, data)
        kept = _beside(trace)
        try:
            head = read_head(trace)
        except Damaged:
            head = None
        for file in (trace, head_of(trace)):
            if os.path.lexists(file):
                os.replace(file, kept / file.name)
        if whole.size:
            with write_whole(trace) as scratch:
                scratch.write_bytes(data[: whole.size])
            made = HeadFile(trace)
            made.write(whole)
            made.close()
    lost = max(0, head.iteration - whole.iteration) if head else None
    return Recovered(whole.iteration, whole.size, lost, str(kept))


@contextmanager
def _held(trace: Path) -> Iterator[None]:
    """Hold the writer's lock, so that no writer is active."""
    if not trace.exists():
        yield
        return
    with trace.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"{trace} is being written by another process; stop it first.") from None
        yield


def _whole(trace: Path, data: bytes) -> CommitMarker:
    """Return the end of the last complete transaction with a valid hash chain."""
    found = CommitMarker(0, 0, START)
    chain, position = START, 0
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            event, chain = verified(trace, number, line, chain)
        except Damaged:
            break
        if (number == 1) != isinstance(event, Genesis):
            break
        position += len(line) + 1
        if isinstance(event, Committed | Genesis):
            iteration = event.iteration if isinstance(event, Committed) else 0
            found = CommitMarker(iteration, position, chain)
    return found


def _beside(trace: Path) -> Path:
    """Create a folder for the damaged files, with a copy of the files derived from the trace."""
    number = 1
    while (kept := trace.parent / f"damaged-{number}").exists():
        number += 1
    kept.mkdir()
    measures = trace.parent / "prequential.jsonl"
    if measures.is_file():
        shutil.copy2(measures, kept)
    return kept
