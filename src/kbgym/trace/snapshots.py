"""Snapshots of a run: `snapshots/<iteration>.jsonl`, one record a line. Derived files; a replay checks them.

They may be thrown away: nothing is ever read back from them.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from kbgym.canonical import encode, read_lines
from kbgym.errors import Damaged
from kbgym.store import Record, Store
from kbgym.trace.events import Committed, Event, Genesis


class SnapshotCheck:
    """A replay's watcher that compares the store with the snapshot of every iteration that has one."""

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
