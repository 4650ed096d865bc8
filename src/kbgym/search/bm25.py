"""BM25: a ranking by shared words, with no model at all. It fits `TextIndex`, so it can stand where an engine stands.

Postings are kept by word and updated one text at a time; nothing is rebuilt. A text that shares no word with the query
is no hit. It knows nothing of vectors or documents.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from kbgym.errors import BadInput
from kbgym.search.index import Hit, page_of

_word = re.compile(r"\w+")


class BM25Index:
    """Okapi BM25 with the usual constants; the inverse document frequency is the form that is never negative."""

    def __init__(self, k1: float = 1.2, b: float = 0.75) -> None:
        self._k1, self._b = k1, b
        self._words: dict[str, Counter[str]] = {}
        self._lengths: dict[str, int] = {}
        self._postings: dict[str, dict[str, int]] = {}
        self._total = 0

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, id: object) -> bool:
        return id in self._words

    def load(self, items: Iterable[tuple[str, str]]) -> None:
        for id, text in items:
            self.put(id, text)

    def put(self, id: str, text: str) -> None:
        """Add a text or replace the one under this id."""
        if id in self._words:
            self.remove(id)
        words = self._words[id] = Counter(_word.findall(text.lower()))
        self._lengths[id] = words.total()
        self._total += words.total()
        for word, times in words.items():
            self._postings.setdefault(word, {})[id] = times

    def remove(self, id: str) -> None:
        """Forget an id; KeyError where it is unknown."""
        for word in self._words.pop(id):
            postings = self._postings[word]
            del postings[id]
            if not postings:
                del self._postings[word]
        self._total -= self._lengths.pop(id)

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        if offset < 0 or limit < 0:
            raise BadInput(f"no page starts at {offset} with {limit} results.")
        scores: dict[str, float] = {}
        # Words in the query's order: a text's sum is then the same whatever was put before it.
        for word, wanted in Counter(_word.findall(query.lower())).items():
            postings = self._postings.get(word, {})
            rarity = wanted * math.log1p((len(self._words) - len(postings) + 0.5) / (len(postings) + 0.5))
            for id, times in postings.items():
                scores[id] = scores.get(id, 0.0) + rarity * self._weight(times, self._lengths[id])
        return page_of(scores.items(), offset, limit)

    def _weight(self, times: int, length: int) -> float:
        relative = length * len(self._words) / self._total
        return times * (self._k1 + 1) / (times + self._k1 * (1 - self._b + self._b * relative))
