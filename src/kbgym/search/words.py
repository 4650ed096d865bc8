"""BM25 ranking over several word indexes as if they were one.

All counts are those of the visible texts, so scores are bit-identical to those of a new index of these texts,
independently of earlier edits and of the machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import msgspec

from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.search.index import Hit, page_of
from kbgym.search.terms import terms

# The usual constants for passages. With the older 1.2 and 0.75, recall@5 of the supports was within 0.01 on MuSiQue,
# people and PhantomWiki, and 0.012 lower on HotpotQA in hybrid search (benchmarks/recall.py).
K1, B = 0.9, 0.4


class WordRanking(Protocol):
    """Interface of a ranking by words."""

    def search(self, query: str, offset: int, limit: int) -> list[Hit]: ...

    def scores(self, query: str, ids: Sequence[str]) -> list[float]: ...

    def parts(self) -> list[WordPart]: ...


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


class KeptWords(WordRanking, Protocol):
    """A word index that can be changed and returns its texts."""

    def put(self, id: str, text: str) -> None: ...

    def remove(self, id: str) -> None: ...

    def load(self, items: Iterable[tuple[str, str]], tick: ProgressCallback | None = None) -> None: ...

    def text(self, id: str) -> str: ...

    def parts(self, apart: Collection[str] = ()) -> list[WordPart]:
        """Return all visible texts except those under the ids `apart`."""

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...


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


def search_parts(parts: Sequence[WordPart], query: str, offset: int, limit: int) -> list[Hit]:
    """Return a page of the ranking over all parts."""
    if offset < 0 or limit < 0:
        raise BadInput(f"no page starts at {offset} with {limit} results.")
    weighed, end = weigh(parts, query), offset + limit
    return page_of([hit for part in parts if end for hit in part.top_k(weighed, end)], offset, limit)


def shares_in_parts(parts: Sequence[WordPart], query: str, limit: int) -> list[Hit]:
    """Return the best texts, each with its score as a share of the highest possible one for the query."""
    ceiling = weigh(parts, query).ceiling
    return [(id, score / ceiling) for id, score in search_parts(parts, query, 0, limit)]


def scores_in_parts(parts: Sequence[WordPart], query: str, ids: Sequence[str]) -> list[float]:
    """Return the score of each id, 0 if no part has it."""
    weighed, found = weigh(parts, query), dict[str, float]()
    for part in parts:
        found.update(part.score(weighed, ids))
    return [found.get(id, 0.0) for id in ids]


class WordsBefore:
    """A ranking over a live word index in which the ids `apart` are looked up in `own` instead."""

    def __init__(self, live: KeptWords, apart: Collection[str], own: KeptWords) -> None:
        self._live, self._apart, self._own = live, apart, own

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        return search_parts(self.parts(), query, offset, limit)

    def scores(self, query: str, ids: Sequence[str]) -> list[float]:
        return scores_in_parts(self.parts(), query, ids)

    def parts(self) -> list[WordPart]:
        return [*self._live.parts(self._apart), *self._own.parts()]
