"""Made-up people by the million and an embedder for them: what `benchmarks/scale.py` measures on.

A model takes hours for a million sentences, so the vectors are synthetic. A text is the sum of its words; a word is a
random direction of its own and one it shares with every word that begins alike; short words count less; directions are
of unequal weight, as those of a language model are. A sentence's nearest neighbours are then the others about its
person, and a graph search is about as hard as among vectors of all-MiniLM-L6-v2 (the benchmark measures both).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
DIMENSIONS = 384
FACTS = 10  # sentences a person
_ATTRIBUTES = {"lives in": 500, "works as": 400, "likes": 200, "was born in": 500, "studied": 300}
_KIN = ("mother", "friend", "uncle", "sister", "teacher")
_ASKED = "lives works likes born studied mother friend uncle sister teacher".split()


class WordsEmbedder:
    """An embedder that gives a text the same bits in any batch."""

    name = f"words-{DIMENSIONS}"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        turned = np.linalg.qr(np.random.default_rng(5).standard_normal((DIMENSIONS, DIMENSIONS)))[0]
        weighted = turned / (1 + np.arange(DIMENSIONS) / 20)[:, None]
        self._space = (weighted * np.sqrt(DIMENSIONS) / np.linalg.norm(weighted)).astype(np.float32)
        self._places: dict[str, int] = {}
        self._table = np.empty((1024, DIMENSIONS), dtype=np.float32)

    def embed(self, texts: Sequence[str]) -> Rows:
        split = [text.split() for text in texts]
        for word in dict.fromkeys(word for words in split for word in words):
            if word not in self._places:
                self._learn(word)
        places = np.fromiter((self._places[word] for words in split for word in words), dtype=np.intp)
        starts = np.cumsum([0, *map(len, split[:-1])])
        rows: Rows = np.add.reduceat(self._table[places], starts, axis=0)
        rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        return rows

    def _learn(self, word: str) -> None:
        place = self._places[word] = len(self._places)
        if place == len(self._table):
            self._table = np.concatenate([self._table, np.empty_like(self._table)])
        direction = 0.6 * _direction(word) + 0.8 * _direction(f"group {word[:2]}")
        self._table[place] = (direction @ self._space) * np.float32(1 if len(word) > 5 else 0.4)


def _direction(name: str) -> Rows:
    return np.random.default_rng(zlib.crc32(name.encode())).standard_normal(DIMENSIONS, dtype=np.float32)


def sentences(people: int) -> Iterator[str]:
    source = np.random.default_rng(11)
    first = [word.title() for word in _words(source, 2000)]
    family = [word.title() for word in _words(source, 4000)]
    values = {relation: _words(source, count) for relation, count in _ATTRIBUTES.items()}

    def somebody() -> str:
        return f"{first[source.integers(2000)]} {family[source.integers(4000)]}"

    for _ in range(people):
        person = somebody()
        for relation, known in values.items():
            yield f"{person} {relation} {known[source.integers(len(known))]}"
        for relation in _KIN:
            yield f"{person} is {relation} of {somebody()}"


def questions(texts: Sequence[str], count: int) -> list[str]:
    """Questions about people some of the texts are about."""
    source = np.random.default_rng(12)
    people = (" ".join(texts[source.integers(len(texts))].split()[:2]) for _ in range(count))
    return [f"What of {person} {_ASKED[source.integers(len(_ASKED))]}" for person in people]


def _words(source: np.random.Generator, count: int) -> list[str]:
    def syllable() -> str:
        return "bdfgklmnprstvz"[source.integers(14)] + "aeiou"[source.integers(5)]

    return [syllable() + syllable() + syllable() for _ in range(count)]
