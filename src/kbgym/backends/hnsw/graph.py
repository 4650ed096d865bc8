"""A search graph over numbered rows: usearch's HNSW behind a few verbs. It needs the `scale` extra.

The graph keeps rows as eight-bit numbers, which is enough to find candidates and half the memory of anything finer;
whoever asks scores the candidates again on the float32 rows. It knows nothing of ids and never forgets a number:
whoever asks leaves out what is gone. Rows are of unit length; a longer one is cut.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbgym.errors import Missing

Rows = NDArray[np.float32]
Numbers = NDArray[np.int64]

GRAPH, TWINS = "graph.usearch", "twins.bin"
INSTALL = "pip install 'kbgym[scale]'"

# How wide a graph is built decides what it finds later: among a million (benchmarks/scale.py, 384 candidates), recall@5
# was 0.978 when built with 64 and 0.992 with 128, which takes 1.7 times as long to build.
CONNECTIVITY = 16
EXPANSION = 128
KIND = "i8"
_AT_ONCE = 20_000  # rows copied out of a mapped file at a time while a graph is built


def installed() -> bool:
    return importlib.util.find_spec("usearch") is not None


class Near(NamedTuple):
    """What a graph proposes: rows in about their order, and the last of those it looked at if there are others."""

    rows: Numbers
    last: int | None


class Graph:
    """Rows by number, added in order. Of rows that are equal only the first is in the graph and the others are kept
    beside it, since a graph loses its way among many points that are all the same distance apart."""

    def __init__(self, dimensions: int) -> None:
        try:
            # First, because it crashes where it is loaded after usearch (onnxruntime 1.31, usearch 2.26).
            import onnxruntime  # noqa: F401
            from usearch.index import Index
        except ImportError as error:
            raise Missing(f"the approximate index is not installed; run `{INSTALL}`.") from error
        self._index: Any = Index(
            ndim=dimensions,
            metric="ip",
            dtype=KIND,
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION,
            expansion_search=1,  # a search is as wide as the number of rows it asks for
            enable_key_lookups=False,
        )
        self._count = 0
        self._first: dict[bytes, int] = {}  # hash of a row to the first number that has it
        self._twins: dict[int, list[int]] = {}  # that number to the others

    def __len__(self) -> int:
        return self._count

    def add(self, rows: Rows, told: Callable[[int], None] | None = None) -> None:
        """Add the next rows, on all cores if they are many; `told` hears how many are in."""
        threads = len(os.sched_getaffinity(0)) if len(rows) > 100 else 1
        for start in range(0, len(rows), _AT_ONCE):
            some = np.ascontiguousarray(rows[start : start + _AT_ONCE])
            new = self._noticed(some)
            numbers = np.asarray(new, dtype=np.uint64) + np.uint64(self._count)
            self._index.add(numbers, some if len(new) == len(some) else some[new], threads=threads)
            self._count += len(some)
            if told is not None:
                told(self._count)

    def nearest(self, query: Rows, count: int) -> Near:
        """About the `count` nearest rows and all that equal them; all rows where there are no more."""
        found: list[int] = self._index.search(query, count, threads=1).keys.tolist()
        last = found[-1] if len(found) < len(self._index) else None
        if self._twins:
            found += [twin for number in found for twin in self._twins.get(number, ())]
        return Near(np.array(found, dtype=np.int64), last)

    def save(self, folder: Path) -> None:
        self._index.save(str(folder / GRAPH))
        pairs = [(number, twin) for number, twins in self._twins.items() for twin in twins]
        (folder / TWINS).write_bytes(np.array([(self._count, -1), *pairs], dtype="<i8").tobytes())

    def view(self, folder: Path) -> Graph:
        """Be a saved graph, left where it lies; it takes no more rows."""
        self._index.view(str(folder / GRAPH))
        return self._with_twins(folder)

    def load(self, folder: Path, rows: Rows) -> Graph:
        """Be a saved graph of these rows, in memory, and able to take more."""
        self._index.load(str(folder / GRAPH))
        self._with_twins(folder)
        for start in range(0, self._count, _AT_ONCE):
            for at, row in enumerate(rows[start : min(start + _AT_ONCE, self._count)], start):
                self._first.setdefault(_hash(row), at)
        return self

    def _with_twins(self, folder: Path) -> Graph:
        (self._count, _), *pairs = np.fromfile(folder / TWINS, dtype="<i8").reshape(-1, 2).tolist()
        for number, twin in pairs:
            self._twins.setdefault(number, []).append(twin)
        return self

    def _noticed(self, rows: Rows) -> list[int]:
        """Which of the next rows equal none before them; the others are noted as twins."""
        new = []
        for at, row in enumerate(rows):
            number = self._count + at
            first = self._first.setdefault(_hash(row), number)
            if first == number:
                new.append(at)
            else:
                self._twins.setdefault(first, []).append(number)
        return new


def readable(folder: Path, dimensions: int) -> bool:
    """Whether the graph in a folder is one that this version of usearch can open."""
    try:
        Graph(dimensions).view(folder)
    except (RuntimeError, OSError, ValueError):
        return False
    return True


def _hash(row: Rows) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def link(rows: Rows, folder: Path, start: Path | None = None, told: Callable[[int], None] | None = None) -> None:
    """Build and save the graph of all rows; with `start`, go on with the saved graph of the first of them."""
    graph = Graph(rows.shape[1])
    if start is not None:
        graph.load(start, rows)
    graph.add(rows[len(graph) :], told)
    graph.save(folder)
