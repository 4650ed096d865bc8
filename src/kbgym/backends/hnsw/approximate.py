"""An approximate vector index: a usearch HNSW graph proposes candidates, which are ranked by exact scores.

The graph has each distinct text once and may be a memory-mapped file, so edits do not change it: new vectors are in an
exact index beside it, and removed ids are filtered from its results. Scores are bit-identical to those of `ExactIndex`;
the only difference is hits that the graph misses.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kbgym.errors import BadInput, Missing
from kbgym.search.index import ExactIndex, Hit, page_of

Rows = NDArray[np.float32]

INSTALL = "pip install 'kbgym[scale]'"
# With a million vectors (benchmarks/scale.py, 384 candidates), recall@5 was 0.978 when built with 64 and 0.992 with
# 128, which takes 1.7 times as long to build.
CONNECTIVITY = 16
EXPANSION = 128
# With a million vectors, recall@5 was 0.992 with 384 candidates, 0.997 with 512, 0.999 with 1,024 in twice the time.
WIDTH = 512
DEEPEST = 1000  # results up to which the graph is searched; beyond that, all rows are scanned


def installed() -> bool:
    return importlib.util.find_spec("usearch") is not None


def new_graph(dimensions: int) -> Any:
    """Return an empty graph. Raise `Missing` if the extra is not installed."""
    try:
        # Imported first, because it crashes if loaded after usearch (onnxruntime 1.31, usearch 2.26).
        import onnxruntime  # noqa: F401
        from usearch.index import Index
    except ImportError as error:
        raise Missing(f"the approximate index is not installed; run `{INSTALL}`.") from error
    # The search width equals the number of requested rows.
    return Index(
        ndim=dimensions,
        metric="ip",
        dtype="f32",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION,
        expansion_search=1,
    )


class ApproximateIndex:
    """A graph whose rows map to ids, and an exact index of vectors put later."""

    def __init__(self, dimensions: int, graph: Any = None, rows: Iterable[tuple[str, int]] = ()) -> None:
        """Create an index. Each id of `rows` has the vector of a row of the graph; several may share one."""
        self._dimensions = dimensions
        self._graph = new_graph(dimensions) if graph is None else graph
        self._rows = dict(rows)
        self._ids: dict[int, dict[str, None]] = {}
        for id, row in self._rows.items():
            self._ids.setdefault(row, {})[id] = None
        self._later = ExactIndex(dimensions)

    def __len__(self) -> int:
        return len(self._rows) + len(self._later)

    def __contains__(self, id: object) -> bool:
        return id in self._rows or id in self._later

    def vector(self, id: str) -> Rows:
        """Return a copy of the vector under an id. Raise `KeyError` if it is unknown."""
        if id in self._later:
            return self._later.vector(id)
        return np.array(self._graph.get(self._rows[id]), dtype=np.float32)

    def put(self, id: str, vector: ArrayLike) -> None:
        self.put_many([id], np.asarray(vector, dtype=np.float32)[None])

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        """Put all vectors or none; a wrong shape or a non-finite vector changes nothing."""
        self._later.put_many(ids, vectors, own)
        for id in ids:
            self._forget(id)

    def remove(self, id: str) -> None:
        if not self._forget(id):
            self._later.remove(id)

    def _forget(self, id: str) -> bool:
        row = self._rows.pop(id, None)
        if row is not None:
            del self._ids[row][id]
        return row is not None

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        return self._page(vector, offset, limit, exact=offset + limit > DEEPEST)

    def exact(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        """Return a page by scanning all rows."""
        return self._page(vector, offset, limit, exact=True)

    def _page(self, vector: ArrayLike, offset: int, limit: int, exact: bool) -> list[Hit]:
        query: Rows = np.asarray(vector, dtype=np.float32)
        if offset < 0 or limit < 0:
            raise BadInput(f"no page starts at {offset} with {limit} results.")
        if query.shape != (self._dimensions,):
            raise BadInput(f"a query of shape {query.shape} cannot be searched among {self._dimensions} dimensions.")
        end = min(offset + limit, len(self))
        if offset >= end:
            return []
        hits = self._later.search(query, 0, end)
        width = len(self._graph) if exact else min(max(WIDTH, 2 * end), len(self._graph))
        while width and self._rows:
            found = self._proposed(query, width, exact)
            if len(found) >= min(end, len(self._rows)) or width == len(self._graph):
                hits += found
                break
            width = min(4 * width, len(self._graph))
        return page_of(hits, offset, limit)

    def _proposed(self, query: Rows, width: int, exact: bool) -> list[Hit]:
        """Return the ids of the nearest rows with their exact scores."""
        numbers = self._graph.search(query, width, threads=1, exact=exact).keys
        rows = [row for row in numbers.tolist() if self._ids.get(row)]
        if not rows:
            return []
        # Summed in the same order as in `ExactIndex`.
        vectors = np.asarray(self._graph.get(np.array(rows, dtype=np.uint64)), dtype=np.float32)
        scores = (vectors * query.astype(np.float64)).sum(axis=1).tolist()
        return [(id, score) for row, score in zip(rows, scores, strict=True) for id in self._ids[row]]
