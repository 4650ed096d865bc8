"""Questions that say the same in nearly the same words: found by their tokens alone, without comparing all with all.

Two questions are near-duplicates when their token sets overlap by at least nine tenths (Jaccard). Such a pair must
share one of the rarest tenth of either's tokens, so only questions with such a token in common are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

NEAR = 0.9
_TOKEN = re.compile(r"\w+")


class Pair(msgspec.Struct, frozen=True):
    """Two questions by their places in the list; `same` when they are equal but for case and punctuation."""

    first: int
    second: int
    same: bool


def normalised(text: str) -> str:
    return " ".join(_TOKEN.findall(text.casefold()))


def near_duplicates(texts: Sequence[str]) -> list[Pair]:
    """Every pair of near-duplicates, in order. Of many equal questions each is paired with the first."""
    found: list[Pair] = []
    first: dict[str, int] = {}
    sets: dict[int, frozenset[str]] = {}
    for place, text in enumerate(map(normalised, texts)):
        if text in first:
            found.append(Pair(first[text], place, same=True))
        else:
            first[text] = place
            sets[place] = frozenset(text.split())
    counts = Counter(token for tokens in sets.values() for token in tokens)
    by_token: dict[str, list[int]] = {}
    for place, tokens in sets.items():
        ordered = sorted(tokens, key=lambda token: (counts[token], token))
        prefix = ordered[: len(ordered) - _least_shared(len(ordered)) + 1]
        candidates = dict.fromkeys(other for token in prefix for other in by_token.get(token, ()))
        for other in sorted(candidates):
            if _jaccard(tokens, sets[other]) >= NEAR:
                found.append(Pair(other, place, same=False))
        for token in prefix:
            by_token.setdefault(token, []).append(place)
    return sorted(found, key=lambda pair: (pair.first, pair.second))


def _least_shared(size: int) -> int:
    """How many of a set's tokens a near-duplicate has at least: nine tenths, rounded up."""
    return -(-size * 9 // 10)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0
