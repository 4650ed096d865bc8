"""BM25 index in memory, which ranks texts by shared words without a model.

Texts loaded in bulk are stored in arrays sorted by term. Texts put later are appended to short lists beside them, so an
edit costs time proportional to its own words and is visible to the next search. A removed row keeps its position but is
ignored, until half of all rows are removed. Scores are summed in a fixed order, so they depend neither on earlier edits
nor on the machine. A text that shares no term with the query is not a hit.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kbgym.progress import ProgressCallback
from kbgym.search.index import Hit
from kbgym.search.terms import terms
from kbgym.search.words import Weighed, WordPart, scores_in_parts, search_parts

Numbers = NDArray[np.int32]
Scores = NDArray[np.float64]

NO_ROWS: Numbers = np.empty(0, dtype=np.int32)
_MANY = 4096  # rows below which compaction is not worthwhile
_TOLD = 4096  # texts between two calls of the progress callback


class BM25Index:
    """Texts by id, ranked by the terms they share with a query. A posting is a row and a term frequency."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._ids: list[str] = []
        self._texts: list[str] = []
        self._lengths = array("i")
        self._gone = array("i")
        self._total = 0
        self._numbers: dict[str, int] = {}
        self._held = array("i")  # current document frequency of each term
        self._starts: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._sorted_rows: Numbers = NO_ROWS
        self._sorted_times: Numbers = NO_ROWS
        self._later: dict[int, tuple[array[int], array[int]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    @property
    def ids(self) -> Sequence[str]:
        return tuple(self._rows)

    def text(self, id: str) -> str:
        """Return the text under an id. Raise `KeyError` if it is unknown."""
        return self._texts[self._rows[id]]

    # -- changing -----------------------------------------------------------------------------------------------------

    def load(self, items: Iterable[tuple[str, str]], tick: ProgressCallback | None = None) -> None:
        """Put many texts; an empty index sorts all of them at once."""
        if self._ids:
            for id, text in items:
                self.put(id, text)
            return
        texts = dict(items)
        self._ids, self._texts = list(texts), list(texts.values())
        self._rows = {id: row for row, id in enumerate(self._ids)}
        numbers, flat = self._numbers, array("i")
        for row, text in enumerate(self._texts):
            if tick is not None and row % _TOLD == 0:
                tick(row, len(self._texts), "words")
            found = terms(text)
            self._lengths.append(len(found))
            flat.extend([numbers.setdefault(term, len(numbers)) for term in found])
        self._total = len(flat)
        count, lengths = max(1, len(self._ids)), np.array(self._lengths)
        keys = np.array(flat, dtype=np.int64)
        keys *= count
        keys += np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        keys.sort()
        first = np.flatnonzero(np.concatenate([np.ones(min(1, len(keys)), np.bool_), keys[1:] != keys[:-1]]))
        times = np.diff(first, append=len(keys))
        which, rows = np.divmod(keys[first], count)
        self._lay_down(which, rows.astype(np.int32), times.astype(np.int32))

    def _lay_down(self, which: NDArray[np.int64], rows: Numbers, times: Numbers) -> None:
        held = np.bincount(which, minlength=len(self._numbers))
        self._held = array("i", held.astype(np.int32).tobytes())
        self._starts = np.concatenate([[0], np.cumsum(held)])
        self._sorted_rows, self._sorted_times, self._later = rows, times, {}

    def put(self, id: str, text: str) -> None:
        """Add a text or replace the one under this id."""
        if id in self._rows:
            if self.text(id) == text:
                return
            self.remove(id)
        found = Counter(terms(text))
        long, row = found.total(), len(self._ids)
        self._rows[id] = row
        self._ids.append(id)
        self._texts.append(text)
        self._lengths.append(long)
        self._total += long
        for term, often in found.items():
            number = self._numbers.setdefault(term, len(self._numbers))
            if number == len(self._held):
                self._held.append(0)
            self._held[number] += 1
            rows, times = self._later.setdefault(number, (array("i"), array("i")))
            rows.append(row)
            times.append(often)

    def remove(self, id: str) -> None:
        """Remove an id. Raise `KeyError` if it is unknown."""
        row = self._rows.pop(id)
        for term in set(terms(self._texts[row])):
            self._held[self._numbers[term]] -= 1
        self._total -= self._lengths[row]
        self._ids[row] = self._texts[row] = ""
        self._gone.append(row)
        if len(self._ids) > _MANY and len(self._rows) * 2 < len(self._ids):
            self._compact()

    def _compact(self) -> None:
        """Drop removed rows, renumber the others and merge texts put later."""
        alive = np.ones(len(self._ids), dtype=np.bool_)
        alive[self._gone] = False
        which = [np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))]
        rows, times = [self._sorted_rows], [self._sorted_times]
        for number, (later_rows, later_times) in self._later.items():
            which.append(np.full(len(later_rows), number))
            rows.append(np.array(later_rows, dtype=np.int32))
            times.append(np.array(later_times, dtype=np.int32))
        numbers, old, held = np.concatenate(which), np.concatenate(rows), np.concatenate(times)
        kept = np.flatnonzero(alive[old])
        kept = kept[np.argsort(numbers[kept], kind="stable")]
        self._lay_down(numbers[kept], (np.cumsum(alive) - 1).astype(np.int32)[old[kept]], held[kept])
        left = np.flatnonzero(alive).tolist()
        self._ids, self._texts = [self._ids[row] for row in left], [self._texts[row] for row in left]
        self._lengths, self._gone = array("i", [self._lengths[row] for row in left]), array("i")
        self._rows = {id: row for row, id in enumerate(self._ids)}

    # -- searching ----------------------------------------------------------------------------------------------------

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        """Return a page of (id, score), best first, ties by id; [] past the last text with a shared term."""
        return search_parts(self.parts(), query, offset, limit)

    def scores(self, query: str, ids: Sequence[str]) -> list[float]:
        """Return the scores of texts in the order of their ids; 0 without a shared term or for an unknown id."""
        return scores_in_parts(self.parts(), query, ids)

    def parts(self, apart: Collection[str] = ()) -> list[WordPart]:
        """Return all texts except those under the ids `apart`."""
        return [_Shown(self, apart)]

    def rows_of(self, ids: Iterable[str]) -> Numbers:
        return np.array(sorted(self._rows[id] for id in ids if id in self._rows), dtype=np.int32)

    def document_frequency(self, term: str, without: Numbers) -> int:
        """Return the document frequency of a term without some rows."""
        number = self._numbers.get(term)
        if number is None:
            return 0
        return self._held[number] - (int(np.count_nonzero(self._found(number, without))) if len(without) else 0)

    def size(self, without: Numbers) -> tuple[int, int]:
        """Return the number of texts and of their terms without some rows."""
        return len(self._rows) - len(without), self._total - sum(self._lengths[row] for row in without.tolist())

    def top_k(self, weighed: Weighed, end: int, without: Numbers) -> list[Hit]:
        """Return the first `end` hits in any order."""
        scores: Scores = np.zeros(len(self._ids))
        norms = weighed.plain + weighed.per_term * np.array(self._lengths)
        for number, scale in self._known(weighed):
            for rows, times in self._postings(number):
                scores[rows] += times * scale / (times + norms[rows])
        scores[np.array(self._gone, dtype=np.intp)] = 0
        scores[without] = 0
        found = np.flatnonzero(scores).astype(np.int32)
        return self._hits(found, scores[found], end)

    def score(self, weighed: Weighed, ids: Sequence[str]) -> list[float]:
        """Return the score of each of these texts, all of which are in the index."""
        rows = np.array([self._rows[id] for id in ids], dtype=np.int32)
        scores: Scores = np.zeros(len(rows))
        norms = weighed.plain + weighed.per_term * np.array([self._lengths[row] for row in rows.tolist()])
        for number, scale in self._known(weighed):
            times = self._found(number, rows)
            scores += times * scale / (times + norms)
        return [float(score) for score in scores]

    def _known(self, weighed: Weighed) -> list[tuple[int, float]]:
        """Return the numbers of the terms in the index, each with its highest score."""
        return [(self._numbers[term], scale) for term, scale in weighed.terms if term in self._numbers]

    def _hits(self, rows: Numbers, scores: Scores, end: int) -> list[Hit]:
        if len(rows) <= end:
            return [(self._ids[row], float(score)) for row, score in zip(rows, scores, strict=True)]
        lowest = float(np.partition(scores, len(scores) - end)[len(scores) - end])
        above = scores > lowest
        hits = [(self._ids[row], float(score)) for row, score in zip(rows[above], scores[above], strict=True)]
        # Thousands of hits may tie at the page boundary; take the first by id.
        equal = (self._ids[row] for row in rows[scores == lowest])
        return hits + [(id, lowest) for id in heapq.nsmallest(end - len(hits), equal)]

    def _postings(self, number: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the rows that contain a term in order, removed ones included, and the frequency in each."""
        if number + 1 < len(self._starts):
            start, end = self._starts[number], self._starts[number + 1]
            yield self._sorted_rows[start:end], self._sorted_times[start:end]
        if number in self._later:
            rows, times = self._later[number]
            yield np.array(rows, dtype=np.int32), np.array(times, dtype=np.int32)

    def _found(self, number: int, rows: Numbers) -> Numbers:
        """Return the frequency of a term in each of the given rows."""
        found: Numbers = np.zeros(len(rows), dtype=np.int32)
        for held, times in self._postings(number):
            if len(held):
                places = np.minimum(np.searchsorted(held, rows), len(held) - 1)
                found = np.where(held[places] == rows, times[places], found)
        return found


class _Shown:
    """A word index without the texts under some ids. It fits `WordPart`."""

    def __init__(self, index: BM25Index, apart: Collection[str]) -> None:
        self._index, self._apart, self._without = index, apart, index.rows_of(apart)

    def size(self) -> tuple[int, int]:
        return self._index.size(self._without)

    def document_frequency(self, terms: Sequence[str]) -> list[int]:
        return [self._index.document_frequency(term, self._without) for term in terms]

    def top_k(self, weighed: Weighed, end: int) -> list[Hit]:
        return self._index.top_k(weighed, end, self._without)

    def score(self, weighed: Weighed, ids: Sequence[str]) -> dict[str, float]:
        here = [id for id in ids if id in self._index and id not in self._apart]
        return dict(zip(here, self._index.score(weighed, here), strict=True))
