"""A word index as it was before it was changed, with changes of its own on top.

Every count is that of the texts it shows, so a score is the one a new index of them would give.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kbgym.search.bm25 import NO_ROWS, BM25Index, Part, scores_in_parts, search_parts
from kbgym.search.index import Hit


class WordsBefore:
    """A word index, and the ids that are looked up in `own` instead: changed there since, or put or removed here."""

    def __init__(self, live: BM25Index, apart: Collection[str], own: BM25Index) -> None:
        self._live, self._apart, self._own = live, apart, own

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        return search_parts(self._parts(), query, offset, limit)

    def scores(self, query: str, ids: Sequence[str]) -> list[float]:
        return scores_in_parts(self._parts(), query, ids)

    def _parts(self) -> list[Part]:
        return [(self._live, self._live.rows_of(self._apart)), (self._own, NO_ROWS)]
