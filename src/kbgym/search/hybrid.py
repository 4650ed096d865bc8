"""Which texts a query finds, by meaning and by words: one order out of a ranking by vectors and one by words.

A text's score is two parts of its cosine and three of its BM25 score, each brought to the same scale: the cosine
between those of the best `DEPTH` texts (1 for the first, 0 for the last of them), the words' score as a share of the
highest. A text that is neither among the `DEPTH` nor shares a word comes after all others, by its cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kbgym.errors import BadInput
from kbgym.search.index import Fetch, Hit, page_of

DEPTH = 200
# Of the vectors. From 0.3 to 0.5 recall@5 was at least that of the better of the two, less 0.003, on MuSiQue, HotpotQA,
# people and PhantomWiki; at 0.55 it fell below it on PhantomWiki. Sums of reciprocal ranks found less (0.676 for 0.700
# on HotpotQA).
WEIGHT = 0.4


class WordRanking(Protocol):
    """A ranking by words."""

    def search(self, query: str, offset: int, limit: int) -> list[Hit]: ...

    def scores(self, query: str, ids: Sequence[str]) -> list[float]: ...


def blend(near: Fetch, words: WordRanking, query: str, offset: int, limit: int) -> list[Hit]:
    """A page of both rankings together, best first, ties by id."""
    if offset < 0 or limit < 0:
        raise BadInput(f"no page starts at {offset} with {limit} results.")
    end = offset + limit
    nearest = near(0, DEPTH)
    if not nearest or limit == 0:
        return []
    by_words = words.search(query, 0, max(end, 1))
    most = by_words[0][1] if by_words else 1.0
    low, high = nearest[-1][1], nearest[0][1]
    spread = high - low or 1.0
    found = {id: (1 - WEIGHT) * (score / most) for id, score in by_words}
    shared = words.scores(query, [id for id, _ in nearest])
    for (id, cosine), score in zip(nearest, shared, strict=True):
        found[id] = WEIGHT * ((cosine - low) / spread) + (1 - WEIGHT) * (score / most)
    if len(by_words) < end and len(nearest) == DEPTH:  # every shared word is seen: what is left goes by its cosine
        for id, cosine in near(0, end + len(found)):
            found.setdefault(id, WEIGHT * ((cosine - low) / spread))
    return page_of(found.items(), offset, limit)
