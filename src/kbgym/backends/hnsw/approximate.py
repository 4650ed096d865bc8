"""An index for very many vectors: graphs propose, exact scores decide. It fits `VectorIndex`.

Most rows lie in a mapped file with a graph over them (`mapped.py`), or in memory with a graph that grows. The newest
few thousand are in no graph yet and are compared one by one, so that what was put is certain to be found by the next
search. A row that was removed or replaced is left out of every answer. Candidates are scored in float64 exactly as
`ExactIndex` does it, so a score is the same to the last bit, and so is the order of whatever was proposed. Where a
graph cannot be trusted (a page too deep, or more equal scores than it was asked for) one exact pass over all rows
answers instead: slower, never wrong. What a graph misses is the only difference from `ExactIndex`. It knows no texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kbgym.backends.hnsw.graph import Graph
from kbgym.backends.hnsw.mmap_vectors import Mapped, Places
from kbgym.errors import BadInput
from kbgym.search.index import Hit, length_of, near_page, rounding

Rows = NDArray[np.float32]

FRESH = 4096  # rows compared one by one: about half a millisecond
# Candidates a graph is asked for. Among a million 384 gave a recall@5 of 0.992, 512 gave 0.997, 1,024 gave 0.999 for
# twice the time of 384.
WIDTH = 512
DEEPEST = 1000  # results up to which graphs are asked; beyond it most of what they look at is wanted anyway
_WIDEST = 4096


class ApproximateIndex:
    """Row numbers count through the mapped rows first, then through those in memory; a number is never used again."""

    def __init__(
        self,
        dimensions: int,
        mapped: Mapped | None = None,
        ids: Sequence[str] = (),
        places: Places | None = None,
        *,
        fresh: int = FRESH,
        width: int = WIDTH,
    ) -> None:
        """`ids` stand for the mapped rows at `places`; other mapped rows stand for nothing."""
        self._fresh, self._width = fresh, width
        self._mapped: Rows = np.empty((0, dimensions), np.float32) if mapped is None else mapped.rows
        self._files = None if mapped is None else Graph(dimensions).view(mapped.folder)
        self._longest = 0.0 if mapped is None else mapped.about.longest
        self._base = len(self._mapped)
        self._new = np.empty((0, dimensions), dtype=np.float32)
        self._grown = Graph(dimensions)
        self._linked = 0  # how many of the rows in memory are in the graph
        self._ids: list[str | None] = [None] * self._base
        self._alive = np.zeros(self._base, dtype=np.bool_)
        self._rows: dict[str, int] = {}
        if places is not None:
            self._rows = dict(zip(ids, places.tolist(), strict=True))
            self._alive[places] = True
            if len(self._rows) != len(ids) or np.count_nonzero(self._alive) != len(ids):
                raise BadInput("an id, or a row, stands twice among the mapped vectors.")
            for id, place in self._rows.items():
                self._ids[place] = id

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    @property
    def _memory(self) -> int:
        return len(self._ids) - self._base

    def vector(self, id: str) -> Rows:
        """A copy of what is under an id; KeyError where it is unknown."""
        row: Rows = self._at(np.array([self._rows[id]]))[0]
        return row

    # -- changing -----------------------------------------------------------------------------------------------------

    def put(self, id: str, vector: ArrayLike) -> None:
        self.put_many([id], np.asarray(vector, dtype=np.float32)[None])

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        """All or none: a wrong shape or a vector that is not finite changes nothing."""
        rows = np.asarray(vectors, dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(ids):
            raise BadInput(f"{len(ids)} ids need as many vectors, not an array of shape {rows.shape}.")
        if not len(rows):
            return
        if rows.shape[1] != self._new.shape[1]:
            raise BadInput(f"a vector of {rows.shape[1]} dimensions does not fit an index of {self._new.shape[1]}.")
        self._longest = max(self._longest, length_of(float(np.einsum("ij,ij->i", rows, rows).max())))
        last = {id: at for at, id in enumerate(ids)}
        kept = rows if len(last) == len(ids) else rows[list(last.values())]
        for id in last:
            if id in self._rows:
                self.remove(id)
        first = self._memory
        self._grow(first + len(kept))
        self._new[first : first + len(kept)] = kept
        self._rows.update(zip(last, range(len(self._ids), len(self._ids) + len(kept)), strict=True))
        self._ids.extend(last)
        self._alive[self._base + first : self._base + first + len(kept)] = True
        self._link(2 * len(kept))

    def remove(self, id: str) -> None:
        place = self._rows.pop(id)
        self._ids[place] = None
        self._alive[place] = False
        in_memory = self._memory
        if in_memory > 2 * self._fresh and np.count_nonzero(self._alive[self._base : len(self._ids)]) * 2 < in_memory:
            self._compact()

    def _grow(self, needed: int) -> None:
        if needed > len(self._new):
            room = max(needed, len(self._new) * 3 // 2, 64)
            larger = np.empty((room, self._new.shape[1]), dtype=np.float32)
            larger[: self._memory] = self._new[: self._memory]
            alive = np.zeros(self._base + room, dtype=np.bool_)
            alive[: len(self._ids)] = self._alive[: len(self._ids)]
            self._new, self._alive = larger, alive

    def _link(self, most: int) -> None:
        """Move the oldest of the fresh rows into the graph: two for every new one, so that no put waits for many."""
        over = self._memory - self._linked - self._fresh
        if over > 0:
            until = self._linked + min(over, most)
            self._grown.add(self._new[self._linked : until])
            self._linked = until

    def _compact(self) -> None:
        """Number the rows in memory anew, without the holes."""
        kept = np.flatnonzero(self._alive[self._base : len(self._ids)])
        ids = [self._ids[self._base + place] for place in kept.tolist()]
        self._new = self._new[kept]
        self._ids[self._base :] = ids
        self._alive = np.concatenate([self._alive[: self._base], np.ones(len(ids), dtype=np.bool_)])
        self._rows.update((id, self._base + at) for at, id in enumerate(ids) if id is not None)
        self._grown, self._linked = Graph(self._new.shape[1]), 0
        self._link(len(ids))

    # -- searching ----------------------------------------------------------------------------------------------------

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        query: Rows = np.asarray(vector, dtype=np.float32)
        if offset < 0 or limit < 0:
            raise BadInput(f"no page starts at {offset} with {limit} results.")
        if offset >= len(self) or limit == 0:
            return []
        if query.shape != (self._new.shape[1],):
            raise BadInput(f"a query of shape {query.shape} cannot be searched among {self._new.shape[1]} dimensions.")
        slack = rounding(query, self._longest)
        end = min(offset + limit, len(self))
        width = max(self._width, 2 * end)
        # A graph of no more rows than it is asked for is no help.
        while end <= DEEPEST and width <= _WIDEST and width < self._base + self._linked:
            hits = self._proposed(query, end, width, slack)
            if hits is not None:
                return hits[offset:end]
            width *= 4
        return self._passed(query, offset, end, slack)

    def exact(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        """The same page with no graph asked: what `search` is measured against."""
        query: Rows = np.asarray(vector, dtype=np.float32)
        end = min(offset + limit, len(self))
        return self._passed(query, offset, end, rounding(query, self._longest)) if offset < end else []

    def _proposed(self, query: Rows, end: int, width: int, slack: float) -> list[Hit] | None:
        """The first `end` hits; None where the graphs were asked for too few to tell."""
        parts = [self._freshest(query, end, slack)]
        below = -np.inf  # nothing the graphs did not propose scores higher, as far as they can tell
        for graph, first in ((self._files, 0), (self._grown, self._base)):
            if graph is None or not len(graph):
                continue
            near = graph.nearest(query, width)
            found = near.rows + first
            parts.append(found[self._alive[found]])
            if near.last is not None:
                below = max(below, float(self._scores(np.array([near.last + first]), query)[0]))
        places = np.concatenate(parts)
        ranked = self._ranked(places, query)
        if len(ranked) < end or ranked[end - 1][1] <= below:
            return None
        return ranked[:end]

    def _freshest(self, query: Rows, end: int, slack: float) -> Places:
        """Rows in no graph that may be among the first `end`."""
        alive = self._alive[self._base + self._linked : len(self._ids)]
        places = np.flatnonzero(alive)
        if len(places) > end:
            rough = self._new[self._linked : self._memory] @ query
            rough[~alive] = -np.inf
            places = near_page(rough, 0, end, slack)[1]
        return places + self._base + self._linked

    def _passed(self, query: Rows, offset: int, end: int, slack: float) -> list[Hit]:
        """A page by one pass over every row."""
        rough = np.empty(len(self._ids), dtype=np.float32)
        np.matmul(self._mapped, query, out=rough[: self._base])
        np.matmul(self._new[: self._memory], query, out=rough[self._base :])
        rough[~self._alive[: len(self._ids)]] = -np.inf
        above, places = near_page(rough, offset, end, slack)
        return self._ranked(places, query)[offset - above : end - above]

    def _ranked(self, places: Places, query: Rows) -> list[Hit]:
        scores = (-self._scores(places, query)).tolist()
        names = [self._ids[place] or "" for place in places.tolist()]
        return [(id, -score) for score, id in sorted(zip(scores, names, strict=True))]

    def _scores(self, places: Places, query: Rows) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = (self._at(places) * query.astype(np.float64)).sum(axis=1)
        return scores

    def _at(self, places: Places) -> Rows:
        out = np.empty((len(places), self._new.shape[1]), dtype=np.float32)
        mapped = places < self._base
        out[mapped] = self._mapped[places[mapped]]
        out[~mapped] = self._new[places[~mapped] - self._base]
        return out
