"""BM25 index in memory, and BM25 ranking over several word indexes as if they were one.

All counts are those of the visible texts, so scores are bit-identical to those of a new index of these texts,
independently of earlier edits and of the machine. A text that shares no term with the query is not a hit.

Texts loaded in bulk are stored in arrays sorted by term. Texts put later are appended to short lists beside them, so an
edit costs time proportional to its own words and is visible to the next search. A removed row keeps its position but is
ignored, until half of all rows are removed.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kbgym.progress import ProgressCallback
from kbgym.search.index import Hit, check_page, page_of
from kbgym.search.terms import terms

Numbers = NDArray[np.int32]
Scores = NDArray[np.float64]

_MANY = 4096  # rows below which compaction is not worthwhile
_TOLD = 4096  # texts between two calls of the progress callback

# The usual constants for passages. With the older 1.2 and 0.75, recall@5 of the supports was within 0.01 on MuSiQue,
# people and PhantomWiki, and 0.012 lower on HotpotQA in hybrid search (benchmarks/recall.py).
K1, B = 0.9, 0.4


class Weighed(msgspec.Struct, frozen=True):
    """The weights of a query over all visible texts: its terms, rarest first, each with its highest score, the two
    constants of length normalisation, and a score that no text can exceed."""

    terms: tuple[tuple[str, float], ...]
    plain: float
    per_term: float
    ceiling: float


class WordPart(Protocol):
    """Some of the visible texts."""

    def size(self) -> tuple[int, int]:
        """Return the number of texts and of their terms."""

    def document_frequency(self, terms: Sequence[str]) -> list[int]:
        """Return the document frequency of each term."""

    def top_k(self, weighed: Weighed, end: int) -> list[Hit]:
        """Return the first `end` hits in any order."""

    def score(self, weighed: Weighed, ids: Sequence[str]) -> dict[str, float]:
        """Return the scores of those texts that are in this part."""


def weigh(parts: Sequence[WordPart], query: str) -> Weighed:
    """Weigh the terms of a query over the texts of all parts."""
    sizes = [part.size() for part in parts]
    count, total = sum(count for count, _ in sizes), sum(total for _, total in sizes)
    wanted = Counter(terms(query))
    frequencies = map(sum, zip(*(part.document_frequency(list(wanted)) for part in parts), strict=True))
    weighed: list[tuple[int, str, float]] = []
    for (term, times), frequency in zip(wanted.items(), frequencies, strict=True):
        # Rounded, because the last bit of a logarithm differs between machines.
        rarity = round(math.log1p((count - frequency + 0.5) / (frequency + 0.5)), 12)
        weighed.append((frequency, term, times * rarity * (K1 + 1)))
    ordered = tuple((term, scale) for frequency, term, scale in sorted(weighed) if frequency)
    ceiling = sum(scale for _, _, scale in sorted(weighed))
    return Weighed(ordered, K1 * (1 - B), K1 * B * count / max(1, total), ceiling)


class WordIndex(Protocol):
    """A word index that can be changed and returns its texts; texts are ranked over its parts."""

    def put(self, id: str, text: str) -> None:
        """Add a text or replace the one under this id."""

    def remove(self, id: str) -> None:
        """Remove an id. Raise `KeyError` if it is unknown."""

    def text(self, id: str) -> str:
        """Return the text under an id. Raise `KeyError` if it is unknown."""

    def parts(self, apart: Collection[str] = ()) -> list[WordPart]:
        """Return all visible texts except those under the ids `apart`."""

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...

    def load(self, items: Iterable[tuple[str, str]], tick: ProgressCallback | None = None) -> None:
        """Put many texts."""
        for id, text in items:
            self.put(id, text)

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        """Return a page of (id, score), best first, ties by id; [] past the last text with a shared term."""
        check_page(offset, limit)
        parts, end = self.parts(), offset + limit
        weighed = weigh(parts, query)
        return page_of([hit for part in parts if end for hit in part.top_k(weighed, end)], offset, limit)

    def shares(self, query: str, limit: int) -> list[Hit]:
        """Return the best texts, each with its score as a share of the highest possible one for the query."""
        ceiling = weigh(self.parts(), query).ceiling
        return [(id, score / ceiling) for id, score in self.search(query, 0, limit)]

    def scores(self, query: str, ids: Sequence[str]) -> list[float]:
        """Return the scores of texts in the order of their ids; 0 without a shared term or for an unknown id."""
        parts, found = self.parts(), dict[str, float]()
        weighed = weigh(parts, query)
        for part in parts:
            found.update(part.score(weighed, ids))
        return [found.get(id, 0.0) for id in ids]


class BM25Index(WordIndex):
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
        self._sorted_rows: Numbers = np.empty(0, dtype=np.int32)
        self._sorted_times: Numbers = self._sorted_rows
        self._later: dict[int, tuple[array[int], array[int]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    @property
    def ids(self) -> Sequence[str]:
        return tuple(self._rows)

    def text(self, id: str) -> str:
        return self._texts[self._rows[id]]

    # -- changing -----------------------------------------------------------------------------------------------------

    def load(self, items: Iterable[tuple[str, str]], tick: ProgressCallback | None = None) -> None:
        """Put many texts; an empty index sorts all of them at once."""
        if self._ids:
            super().load(items)
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

    def parts(self, apart: Collection[str] = ()) -> list[WordPart]:
        return [_Shown(self, apart)]

    def postings(self, number: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the rows that contain a term in order, removed ones included, and the frequency in each."""
        if number + 1 < len(self._starts):
            start, end = self._starts[number], self._starts[number + 1]
            yield self._sorted_rows[start:end], self._sorted_times[start:end]
        if number in self._later:
            rows, times = self._later[number]
            yield np.array(rows, dtype=np.int32), np.array(times, dtype=np.int32)

    def frequencies(self, number: int, rows: Numbers) -> Numbers:
        """Return the frequency of a term in each of the given rows."""
        found: Numbers = np.zeros(len(rows), dtype=np.int32)
        for held, times in self.postings(number):
            if len(held):
                places = np.minimum(np.searchsorted(held, rows), len(held) - 1)
                found = np.where(held[places] == rows, times[places], found)
        return found


class _Shown:
    """A word index without the texts under some ids. It implements `WordPart`."""

    def __init__(self, index: BM25Index, apart: Collection[str]) -> None:
        self._index, self._apart = index, apart
        self._without: Numbers = np.array(sorted(index._rows[id] for id in apart if id in index), dtype=np.int32)

    def size(self) -> tuple[int, int]:
        index, without = self._index, self._without.tolist()
        return len(index) - len(without), index._total - sum(index._lengths[row] for row in without)

    def document_frequency(self, terms: Sequence[str]) -> list[int]:
        return [self._frequency(self._index._numbers.get(term)) for term in terms]

    def _frequency(self, number: int | None) -> int:
        if number is None:
            return 0
        less = np.count_nonzero(self._index.frequencies(number, self._without)) if len(self._without) else 0
        return self._index._held[number] - int(less)

    def top_k(self, weighed: Weighed, end: int) -> list[Hit]:
        index = self._index
        scores: Scores = np.zeros(len(index._ids))
        norms = weighed.plain + weighed.per_term * np.array(index._lengths)
        for number, scale in self._known(weighed):
            for rows, times in index.postings(number):
                scores[rows] += times * scale / (times + norms[rows])
        scores[np.array(index._gone, dtype=np.intp)] = 0
        scores[self._without] = 0
        found = np.flatnonzero(scores).astype(np.int32)
        return self._best(found, scores[found], end)

    def score(self, weighed: Weighed, ids: Sequence[str]) -> dict[str, float]:
        index = self._index
        here = [id for id in ids if id in index and id not in self._apart]
        rows = np.array([index._rows[id] for id in here], dtype=np.int32)
        scores: Scores = np.zeros(len(rows))
        norms = weighed.plain + weighed.per_term * np.array([index._lengths[row] for row in rows.tolist()])
        for number, scale in self._known(weighed):
            times = index.frequencies(number, rows)
            scores += times * scale / (times + norms)
        return dict(zip(here, scores.tolist(), strict=True))

    def _known(self, weighed: Weighed) -> list[tuple[int, float]]:
        """Return the numbers of the terms in the index, each with its highest score."""
        numbers = self._index._numbers
        return [(numbers[term], scale) for term, scale in weighed.terms if term in numbers]

    def _best(self, rows: Numbers, scores: Scores, end: int) -> list[Hit]:
        ids = self._index._ids
        if len(rows) <= end:
            return [(ids[row], float(score)) for row, score in zip(rows, scores, strict=True)]
        lowest = float(np.partition(scores, len(scores) - end)[len(scores) - end])
        above = scores > lowest
        hits = [(ids[row], float(score)) for row, score in zip(rows[above], scores[above], strict=True)]
        # Thousands of hits may tie at the page boundary; take the first by id.
        equal = (ids[row] for row in rows[scores == lowest])
        return hits + [(id, lowest) for id in heapq.nsmallest(end - len(hits), equal)]
