"""Export a store as JSON lines, GraphML or CSV, atomically."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kbgym.canonical import atomic_dir, encode, write_whole
from kbgym.errors import BadInput
from kbgym.sanitize import safe_cell
from kbgym.store.record import Record
from kbgym.store.store import Store

# Characters that XML 1.0 cannot represent, even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FIELDS = ("text", "origin", "flag", "absorbed")


def export(store: Store, format: str, out: Path, formulas: bool = False) -> None:
    """Write a store to `out`: a file, or for CSV a folder with documents.csv and links.csv.

    Unless `formulas` is set, CSV cells that a spreadsheet would take for formulas are prefixed with a quote.
    """
    if format not in FORMATS:
        raise BadInput(f"there is no export format {format!r}; there are {', '.join(FORMATS)}.")
    FORMATS[format](store, out, formulas)


def _jsonl(store: Store, out: Path, _: bool) -> None:
    with _whole_file(out) as file:
        for record in store:
            file.write(encode(record).decode() + "\n")


def _graphml(store: Store, out: Path, _: bool) -> None:
    from xml.sax.saxutils import escape, quoteattr  # this import loads the HTTP modules

    with _whole_file(out) as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for field in _FIELDS:
            file.write(f'<key id="{field}" for="node" attr.name="{field}" attr.type="string"/>\n')
        file.write('<graph edgedefault="directed">\n')
        for record in store:
            values = zip(_FIELDS, _values(record), strict=True)
            data = "".join(f'<data key="{key}">{escape(_xml(value))}</data>' for key, value in values if value)
            file.write(f"<node id={quoteattr(_xml(record.id))}>{data}</node>\n")
        for record in store:
            for target in record.links:
                file.write(f"<edge source={quoteattr(_xml(record.id))} target={quoteattr(_xml(target))}/>\n")
        file.write("</graph>\n</graphml>\n")


def _csv(store: Store, out: Path, formulas: bool) -> None:
    cell: Callable[[str], str] = str if formulas else safe_cell
    with atomic_dir(out) as folder:
        with (folder / "documents.csv").open("w", encoding="utf-8", newline="") as file:
            documents = csv.writer(file, lineterminator="\n")
            documents.writerow(("id", *_FIELDS))
            documents.writerows(map(cell, (record.id, *_values(record))) for record in store)
        with (folder / "links.csv").open("w", encoding="utf-8", newline="") as file:
            links = csv.writer(file, lineterminator="\n")
            links.writerow(("source", "position", "target"))
            for record in store:
                targets = enumerate(record.links, 1)
                links.writerows((cell(record.id), place, cell(target)) for place, target in targets)


FORMATS: dict[str, Callable[[Store, Path, bool], None]] = {"jsonl": _jsonl, "graphml": _graphml, "csv": _csv}


def _values(record: Record) -> tuple[str, str, str, str]:
    return record.text, record.origin or "", record.flag, encode(record.absorbed).decode() if record.absorbed else ""


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


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
