"""Vectors by id and the nearest of them: the seam every index fits, and the exact one that is the default.

It knows nothing of texts, embedders or documents. A score is the dot product, which for rows of unit length is the
cosine. The order is (score, highest first, then id), the same whatever was put or removed before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kbgym.errors import BadInput

Hit = tuple[str, float]


class VectorIndex(Protocol):
    """What an engine needs of an index; `search` gives any page, and [] past the last."""

    def put(self, id: str, vector: ArrayLike) -> None:
        """Add a vector or replace the one under this id; it is found from now on."""

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        """Put many at once; with `own`, the array is the index's from now on and need not be copied."""

    def remove(self, id: str) -> None:
        """Forget an id; KeyError where it is unknown."""

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]: ...

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...


class TextIndex(Protocol):
    """Texts by id and a ranking of them for a query, by whatever means: an engine over vectors, or BM25."""

    def put(self, id: str, text: str) -> None: ...

    def remove(self, id: str) -> None: ...

    def search(self, query: str, offset: int, limit: int) -> list[Hit]: ...

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...


class ExactIndex:
    """One growing matrix; a search is one pass over it, then the exact order of the few rows near the page."""

    def __init__(self, dimensions: int | None = None) -> None:
        self._matrix = np.empty((0, dimensions or 0), dtype=np.float32)
        self._ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._longest = 0.0  # no row is longer: bounds the rounding of the fast pass

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    def reserve(self, count: int, dimensions: int | None = None) -> None:
        """Make room for `count` vectors in all, so that filling up to it copies nothing."""
        width = self._matrix.shape[1] or dimensions or 0
        if count > len(self._matrix) or width != self._matrix.shape[1]:
            larger = np.empty((max(count, len(self._matrix)), width), dtype=np.float32)
            if self._ids:
                larger[: len(self._ids)] = self._matrix[: len(self._ids)]
            self._matrix = larger

    def put(self, id: str, vector: ArrayLike) -> None:
        self.put_many([id], np.asarray(vector, dtype=np.float32)[None])

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        """All or none: a wrong shape or a vector that is not finite changes nothing."""
        rows = np.asarray(vectors, dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(ids):
            raise BadInput(f"{len(ids)} ids need as many vectors, not an array of shape {rows.shape}.")
        if not len(rows):
            return
        if self._matrix.shape[1] not in (0, rows.shape[1]):
            raise BadInput(f"a vector of {rows.shape[1]} dimensions does not fit an index of {self._matrix.shape[1]}.")
        self._longest = max(self._longest, _length(rows))
        if (
            own
            and not self._ids
            and rows.flags.carray
            and len(fresh := dict(zip(ids, range(len(ids)), strict=True))) == len(ids)
        ):
            self._matrix, self._ids, self._rows = rows, list(ids), fresh
            return
        self._grow(len(self._ids) + sum(id not in self._rows for id in ids), rows.shape[1])
        places = np.empty(len(ids), dtype=np.intp)
        for at, id in enumerate(ids):
            place = self._rows.setdefault(id, len(self._ids))
            if place == len(self._ids):
                self._ids.append(id)
            places[at] = place
        if len(ids) > 1 and places[-1] - places[0] == len(ids) - 1 and (np.diff(places) == 1).all():
            self._matrix[places[0] : places[-1] + 1] = rows
        else:
            self._matrix[places] = rows

    def remove(self, id: str) -> None:
        """The last row takes the place of the removed one; nothing else moves."""
        place = self._rows.pop(id)
        last = self._ids.pop()
        if last != id:
            self._ids[place] = last
            self._rows[last] = place
            self._matrix[place] = self._matrix[len(self._ids)]

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        query: NDArray[np.float32] = np.asarray(vector, dtype=np.float32)
        count = len(self._ids)
        if offset < 0 or limit < 0:
            raise BadInput(f"no page starts at {offset} with {limit} results.")
        if offset >= count or limit == 0:
            return []
        if query.shape != (self._matrix.shape[1],):
            raise BadInput(
                f"a query of shape {query.shape} cannot be searched among {self._matrix.shape[1]} dimensions."
            )
        end = min(offset + limit, count)
        rough = self._matrix[:count] @ query
        places, above = self._near_page(rough, query, offset, end)
        # Products of float32 numbers are exact in float64 and every row is summed alone in the same order, so a score
        # depends on nothing but its two vectors.
        exact = (self._matrix[places] * query.astype(np.float64)).sum(axis=1)
        ranked = sorted(
            (-score, self._ids[place]) for score, place in zip(exact.tolist(), places.tolist(), strict=True)
        )
        return [(id, -score) for score, id in ranked[offset - above : end - above]]

    def _near_page(
        self, rough: NDArray[np.float32], query: NDArray[np.float32], offset: int, end: int
    ) -> tuple[NDArray[np.intp], int]:
        """Rows that may lie on the page or at its edges, and how many others certainly lie before it.

        `slack` is twice the most by which float32 can be off, so two rows further apart are in their true order.
        """
        count = len(rough)
        slack = 2 * (len(query) + 2) * 2.0**-24 * _length(query[None]) * self._longest + 1e-30
        cuts = rough.copy()
        cuts.partition(count - end)
        low = np.float32(cuts[count - end] - slack)
        if offset == 0:
            return (rough >= low).nonzero()[0], 0
        cuts.partition(count - offset)
        high = np.float32(cuts[count - offset] + slack)
        return ((rough >= low) & (rough <= high)).nonzero()[0], int(np.count_nonzero(rough > high))

    def _grow(self, needed: int, width: int) -> None:
        # By half, so that old and new rows together never hold much more than twice what is stored.
        if needed > len(self._matrix) or width != self._matrix.shape[1]:
            self.reserve(max(needed, len(self._matrix) * 3 // 2, 64), width)


def _length(rows: NDArray[np.float32]) -> float:
    """The longest row's length; refused where float32 products of it could overflow."""
    square = float(np.einsum("ij,ij->i", rows, rows).max())
    if not square < 1e18:
        raise BadInput("a vector is not finite, or too long to compare.")
    return math.sqrt(square)


def page_of(ranked: Iterable[Hit], offset: int, limit: int) -> list[Hit]:
    """Hits in any order, put in the order every index answers in, and cut to a page."""
    return sorted(ranked, key=lambda hit: (-hit[1], hit[0]))[offset : offset + limit]
