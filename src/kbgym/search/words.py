"""A ranking by words over texts that may lie in several places: what a query's terms are worth, and one page of all.

Every count is that of the texts that are shown, so a score is the one a new index of them would give, to the last bit,
whatever was put before and whatever the machine. It knows nothing of how postings are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import msgspec

from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.search.hybrid import WordRanking
from kbgym.search.index import Hit, page_of
from kbgym.search.terms import terms

# The constants passages are usually ranked with. With the older 1.2 and 0.75 recall@5 of the supports was within 0.01
# on MuSiQue, people and PhantomWiki, and 0.012 lower on HotpotQA once vectors were added (benchmarks/recall.py).
K1, B = 0.9, 0.4
SURE = 1 + 1e-9  # more than sums can be off for being added in another order


class Weighed(msgspec.Struct, frozen=True):
    """A query's terms from the rarest on, each with what it is worth at most, and the two constants of length.

    They are reckoned over all texts that count, which may lie in more than one place.
    """

    terms: tuple[tuple[str, float], ...]
    plain: float
    per_term: float


class WordPart(Protocol):
    """Some of the texts that are shown."""

    def size(self) -> tuple[int, int]:
        """How many texts there are, and how many terms they have."""

    def counted(self, terms: Sequence[str]) -> list[int]:
        """How many texts hold each term."""

    def best(self, weighed: Weighed, end: int) -> list[Hit]:
        """The first `end` hits, in no order."""

    def worth(self, weighed: Weighed, ids: Sequence[str]) -> dict[str, float]:
        """What those of these texts score that are here."""


class KeptWords(WordRanking, Protocol):
    """A word index that can be changed and can say what it holds."""

    def put(self, id: str, text: str) -> None: ...

    def remove(self, id: str) -> None: ...

    def load(self, items: Iterable[tuple[str, str]], tick: ProgressCallback | None = None) -> None: ...

    def text(self, id: str) -> str: ...

    def parts(self, apart: Collection[str] = ()) -> list[WordPart]:
        """All that is shown, but for what is under some ids."""

    def __len__(self) -> int: ...

    def __contains__(self, id: object) -> bool: ...


def weigh(parts: Sequence[WordPart], query: str) -> Weighed:
    """A query against all texts of several parts as if they were one."""
    sizes = [part.size() for part in parts]
    count, total = sum(count for count, _ in sizes), sum(total for _, total in sizes)
    wanted = Counter(terms(query))
    held = map(sum, zip(*(part.counted(list(wanted)) for part in parts), strict=True))
    weighed: list[tuple[int, str, float]] = []
    for (term, times), having in zip(wanted.items(), held, strict=True):
        if having:
            # Rounded, because the last bit of a logarithm is not the same on every machine.
            rarity = round(math.log1p((count - having + 0.5) / (having + 0.5)), 12)
            weighed.append((having, term, times * rarity * (K1 + 1)))
    ordered = tuple((term, scale) for _, term, scale in sorted(weighed))
    return Weighed(ordered, K1 * (1 - B), K1 * B * count / max(1, total))


def search_parts(parts: Sequence[WordPart], query: str, offset: int, limit: int) -> list[Hit]:
    """A page of several parts as if they were one."""
    if offset < 0 or limit < 0:
        raise BadInput(f"no page starts at {offset} with {limit} results.")
    weighed, end = weigh(parts, query), offset + limit
    return page_of([hit for part in parts if end for hit in part.best(weighed, end)], offset, limit)


def scores_in_parts(parts: Sequence[WordPart], query: str, ids: Sequence[str]) -> list[float]:
    """The score of each id, 0 where no part has it."""
    weighed, found = weigh(parts, query), dict[str, float]()
    for part in parts:
        found.update(part.worth(weighed, ids))
    return [found.get(id, 0.0) for id in ids]


class WordsBefore:
    """A word index, and the ids that are looked up in `own` instead: changed there since, or put or removed here."""

    def __init__(self, live: KeptWords, apart: Collection[str], own: KeptWords) -> None:
        self._live, self._apart, self._own = live, apart, own

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        return search_parts(self._parts(), query, offset, limit)

    def scores(self, query: str, ids: Sequence[str]) -> list[float]:
        return scores_in_parts(self._parts(), query, ids)

    def _parts(self) -> list[WordPart]:
        return [*self._live.parts(self._apart), *self._own.parts()]
