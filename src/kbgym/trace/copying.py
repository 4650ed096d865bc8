"""Copies of stores with their history: the same initial lines, trace and hashes.

Other files of a run's folder (questions, exams, snapshots, tokens) are not copied.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from kbgym.canonical import atomic_dir, encode
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.store import Store
from kbgym.trace.backend import StoreBackend, is_url, open_backend
from kbgym.trace.events import Committed
from kbgym.trace.folder import ARM, RECORDS, TRACE, StoreLines
from kbgym.trace.url import plugin_for


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
    lines = _cut(place.lines(), place)
    note(1, 3, "writing")
    written = write(lines, target, note)
    note(3, 3, "done")
    if written.initial.fingerprint != place.initial.fingerprint:
        raise BadInput(f"{source} changed while it was copied to {target}; remove the copy and try again.")
    copied = Copied(len(store), store.links, len(lines.events), written.iteration, store.fingerprint)
    for opened in (place, written):
        opened.close()
    return copied


def _cut(lines: StoreLines, place: StoreBackend) -> StoreLines:
    """Return the lines up to the iteration of `STORE@N`."""
    if place.at is None:
        return lines
    numbered = ((number, event) for number, event in enumerate(lines.events, 1) if isinstance(event, Committed))
    end = next((number for number, event in numbered if event.iteration == place.at), min(1, len(lines.events)))
    return msgspec.structs.replace(lines, trace=lines.trace[:end], events=lines.events[:end])


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
