"""Export a store as JSON lines or CSV, atomically."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kbgym.canonical import atomic_dir, encode, write_whole
from kbgym.errors import BadInput
from kbgym.sanitize import safe_cell
from kbgym.store.record import Record
from kbgym.store.store import Store

_FIELDS = ("text", "origin", "flag", "absorbed")


def export(store: Store, format: str, out: Path) -> None:
    """Write a store to `out`: a file, or for CSV a folder with documents.csv and links.csv.

    CSV cells that a spreadsheet would take for formulas are prefixed with a quote.
    """
    if format not in FORMATS:
        raise BadInput(f"there is no export format {format!r}; there are {', '.join(FORMATS)}.")
    FORMATS[format](store, out)


def _jsonl(store: Store, out: Path) -> None:
    with _whole_file(out) as file:
        for record in store:
            file.write(encode(record).decode() + "\n")


def _csv(store: Store, out: Path) -> None:
    with atomic_dir(out) as folder:
        documents = ((record.id, *_values(record)) for record in store)
        _table(folder / "documents.csv", ("id", *_FIELDS), documents)
        links = ((r.id, str(place), target) for r in store for place, target in enumerate(r.links, 1))
        _table(folder / "links.csv", ("source", "position", "target"), links)


def _table(path: Path, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(head)
        out.writerows(map(safe_cell, row) for row in rows)


FORMATS: dict[str, Callable[[Store, Path], None]] = {"jsonl": _jsonl, "csv": _csv}


def _values(record: Record) -> tuple[str, str, str, str]:
    return record.text, record.origin or "", record.flag, encode(record.absorbed).decode() if record.absorbed else ""


@contextmanager
def _whole_file(out: Path) -> Iterator[IO[str]]:
    """Yield a scratch file that becomes `out` if the block succeeds. Raise `BadInput` if `out` has other content."""
    if out.is_dir():
        raise BadInput(f"{out} is a folder; choose another --out.")
    try:
        with write_whole(out) as scratch:
            with scratch.open("w", encoding="utf-8", newline="\n") as file:
                yield file
            if out.exists() and out.read_bytes() != scratch.read_bytes():
                raise BadInput(f"{out} exists with other content; remove it or choose another --out.")
    except OSError as error:
        raise BadInput(f"cannot write beside {out}: {error.strerror}") from error
