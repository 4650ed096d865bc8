"""Prequential measures: how well questions were answered before anything was learnt from them, over windows.

They are a fold over the trace, live or replayed; the file beside it is written for people and other programs and may
be thrown away.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from kbgym.canonical import encode, write_lines

FILE = "prequential.jsonl"
WINDOW = 50


class Measure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One graded question: predicted first, taught after. `em` alone is known where only right or wrong was said."""

    id: str
    iteration: int
    actions: int
    em: float
    f1: float | None = None


class Window(msgspec.Struct, frozen=True):
    """Means over consecutive questions; F1 over those whose gold is known."""

    first: int
    last: int
    f1: float | None
    em: float
    actions: float


def window(rows: Collection[Measure], first: int) -> Window:
    scored = [row.f1 for row in rows if row.f1 is not None]
    return Window(
        first,
        first + len(rows) - 1,
        sum(scored) / len(scored) if scored else None,
        sum(row.em for row in rows) / len(rows),
        sum(row.actions for row in rows) / len(rows),
    )


class MeasureFile:
    """The rows as JSON lines; brought into step with the trace when opened, then added to."""

    def __init__(self, folder: Path, rows: Sequence[Measure]) -> None:
        self._path = folder / FILE
        write_lines(self._path, rows)

    def add(self, rows: Sequence[Measure]) -> None:
        with self._path.open("ab") as out:
            out.write(b"".join(encode(row) + b"\n" for row in rows))
