"""Vector indexes: the protocol, the exact index, which is the default, and layers of changes on top of another index.

A score is the dot product, which for rows of unit length is the cosine. Hits are sorted by score, highest first, then
by id, independently of earlier edits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kbgym.errors import BadInput

Hit = tuple[str, float]
Fetch = Callable[[int, int], list[Hit]]  # a ranking: offset and limit in, hits out

BESIDE = 16  # results fetched beyond a page if some may be hidden


class VectorIndex(Protocol):
    """The index of an engine; `search` returns any page, and [] past the last."""

    def put(self, id: str, vector: ArrayLike) -> None:
        """Add a vector or replace the one under this id; later searches find it."""

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        """Put many vectors; with `own`, the index takes ownership of the array instead of copying it."""

    def remove(self, id: str) -> None:
        """Remove an id. Raise `KeyError` if it is unknown."""

    def vector(self, id: str) -> NDArray[np.float32]:
        """Return a copy of the vector under an id. Raise `KeyError` if it is unknown."""

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]: ...

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...


class ExactIndex:
    """A growing matrix; a search scans it once, then sorts the few rows near the page exactly."""

    def __init__(self, dimensions: int | None = None) -> None:
        self._matrix = np.empty((0, dimensions or 0), dtype=np.float32)
        self._ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._longest = 0.0  # upper bound on row length, which bounds the rounding error of the fast pass

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    @property
    def ids(self) -> Sequence[str]:
        return tuple(self._ids)

    def put(self, id: str, vector: ArrayLike) -> None:
        self.put_many([id], np.asarray(vector, dtype=np.float32)[None])

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        """Put all vectors or none; a wrong shape or a non-finite vector changes nothing."""
        rows = np.asarray(vectors, dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(ids):
            raise BadInput(f"{len(ids)} ids need as many vectors, not an array of shape {rows.shape}.")
        if not len(rows):
            return
        if self._matrix.shape[1] not in (0, rows.shape[1]):
            raise BadInput(f"a vector of {rows.shape[1]} dimensions does not fit an index of {self._matrix.shape[1]}.")
        self._longest = max(self._longest, length_of(float(np.einsum("ij,ij->i", rows, rows).max())))
        if own and not self._ids and rows.flags.carray and len(set(ids)) == len(ids):
            self._matrix, self._ids, self._rows = rows, list(ids), {id: row for row, id in enumerate(ids)}
            return
        # Grow by half, so that old and new rows together take little more than twice the stored size.
        needed, width = len(self._ids) + sum(id not in self._rows for id in ids), rows.shape[1]
        if needed > len(self._matrix) or width != self._matrix.shape[1]:
            larger = np.empty((max(needed, len(self._matrix) * 3 // 2, 64), width), dtype=np.float32)
            if self._ids:
                larger[: len(self._ids)] = self._matrix[: len(self._ids)]
            self._matrix = larger
        places = np.empty(len(ids), dtype=np.intp)
        for at, id in enumerate(ids):
            place = self._rows.setdefault(id, len(self._ids))
            if place == len(self._ids):
                self._ids.append(id)
            places[at] = place
        self._matrix[places] = rows

    def remove(self, id: str) -> None:
        """Remove an id; the last row takes its place."""
        place = self._rows.pop(id)
        last = self._ids.pop()
        if last != id:
            self._ids[place] = last
            self._rows[last] = place
            self._matrix[place] = self._matrix[len(self._ids)]

    def vector(self, id: str) -> NDArray[np.float32]:
        """Return a copy of the vector under an id. Raise `KeyError` if it is unknown."""
        row: NDArray[np.float32] = self._matrix[self._rows[id]].copy()
        return row

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        query: NDArray[np.float32] = np.asarray(vector, dtype=np.float32)
        count = len(self._ids)
        check_page(offset, limit)
        if offset >= count or limit == 0:
            return []
        check_shape(query, self._matrix.shape[1])
        end = min(offset + limit, count)
        rough = self._matrix[:count] @ query
        cut = np.partition(rough, count - end)[count - end] - np.float32(rounding(query, self._longest))
        places = np.flatnonzero(rough >= cut)
        # Products of float32 numbers are exact in float64 and every row is summed alone in the same order, so a score
        # depends only on its two vectors.
        exact = (self._matrix[places] * query.astype(np.float64)).sum(axis=1)
        ranked = sorted(zip((-exact).tolist(), map(self._ids.__getitem__, places.tolist()), strict=True))
        return [(id, -score) for score, id in ranked[offset:end]]


def rounding(query: NDArray[np.float32], longest: float) -> float:
    """Return twice the maximum error of float32 products; rows whose scores differ by more are in exact order."""
    return 2 * (len(query) + 2) * 2.0**-24 * length_of(float(query.dot(query))) * longest + 1e-30


def length_of(square: float) -> float:
    """Return the length of a vector from its square. Raise `BadInput` if float32 products could overflow."""
    if not square < 1e18:
        raise BadInput("a vector is not finite, or too long to compare.")
    return math.sqrt(square)


def check_page(offset: int, limit: int) -> None:
    """Raise `BadInput` if there can be no such page."""
    if offset < 0 or limit < 0:
        raise BadInput(f"no page starts at {offset} with {limit} results.")


def check_shape(query: NDArray[np.float32], dimensions: int) -> None:
    """Raise `BadInput` if a query does not fit an index."""
    if query.shape != (dimensions,):
        raise BadInput(f"a query of shape {query.shape} cannot be searched among {dimensions} dimensions.")


def page_of(ranked: Iterable[Hit], offset: int, limit: int) -> list[Hit]:
    """Return a page of hits, best first, ties by id."""
    return sorted(ranked, key=lambda hit: (-hit[1], hit[0]))[offset : offset + limit]


class Layered:
    """Entries in memory (`own`) on top of an index that does not change (`base`), some of whose ids are hidden."""

    def __init__(self, base: Any, own: Any, hidden: Any = None) -> None:
        self.base, self.own = base, own
        self.hidden: Any = set() if hidden is None else hidden

    def __len__(self) -> int:
        return len(self.base) - len(self.hidden) + len(self.own)

    def __contains__(self, id: object) -> bool:
        return id in self.own or (id not in self.hidden and id in self.base)

    def put(self, id: str, value: Any) -> None:
        """Add an entry or replace the one under this id."""
        self.own.put(id, value)
        self.hide(id)

    def remove(self, id: str) -> None:
        """Remove an id. Raise `KeyError` if it is unknown."""
        if id in self.own:
            self.own.remove(id)
        elif not self.hide(id):
            raise KeyError(id)

    def hide(self, id: str) -> bool:
        """Hide an id of the base. Return False if it was not visible."""
        if id in self.hidden or id not in self.base:
            return False
        self.hidden.add(id)
        return True


class LayeredIndex(Layered):
    """Vectors on top of a base. It implements `VectorIndex`."""

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        """Put all vectors or none."""
        self.own.put_many(ids, vectors, own)
        for id in ids:
            self.hide(id)

    def vector(self, id: str) -> NDArray[np.float32]:
        """Return a copy of the vector under an id. Raise `KeyError` if it is unknown."""
        if id in self.hidden and id not in self.own:
            raise KeyError(id)
        found: NDArray[np.float32] = (self.own if id in self.own else self.base).vector(id)
        return found

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        check_page(offset, limit)
        end = offset + limit
        return page_of([*self._visible(vector, end), *self.own.search(vector, 0, end)], offset, limit)

    def _visible(self, vector: ArrayLike, end: int) -> list[Hit]:
        """Return the first `end` hits of the base that are not hidden."""
        most = end + len(self.hidden)
        asked = min(most, end + BESIDE)
        while True:
            found = self.base.search(vector, 0, asked)
            hits = [hit for hit in found if hit[0] not in self.hidden]
            if len(hits) >= end or len(found) < asked or asked == most:
                return hits[:end]
            asked = min(most, 4 * asked)
