"""Texts to vectors of unit length: the seam every embedder fits, the cache around it, and one for tests.

It knows nothing of documents, indexes or what a vector is used for.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kbgym.search import minilm
from kbgym.search.cache import VectorCache, cache_folder, keys

Vectors = NDArray[np.float32]

# Tick(done, total, note): called as a long piece of work goes on.
Tick = Callable[[int, int, str], None]

Places = dict[bytes, int]  # cache key to the first text that has it

_AT_ONCE = 1024  # texts embedded between two commits to the cache: what an interrupted cold start can lose


class Embedder(Protocol):
    """Anything that turns texts into float32 rows of unit length, the same bits for the same text every time."""

    @property
    def name(self) -> str:
        """Stands in cache keys and traces: two embedders of one name must agree."""

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors: ...


class CachedEmbedder:
    """An embedder that asks its memory first, then the disk, then the model behind it."""

    def __init__(self, embedder: Embedder, cache: VectorCache | None = None, remember: int = 16_384) -> None:
        self.embedder = embedder
        self._cache = cache
        self._remember = remember
        self._recent: OrderedDict[bytes, Vectors] = OrderedDict()

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    def embed(self, texts: Sequence[str], tick: Tick | None = None) -> Vectors:
        names = keys(self.name, texts)
        out = np.empty((len(texts), self.dimensions), dtype=np.float32)
        places: Places = {}
        repeated = [place for place, key in enumerate(names) if places.setdefault(key, place) != place]
        unknown = self._recall(places, out)
        if self._cache is not None and unknown:
            unknown = self._cache.get(unknown, out)
        if unknown:
            self._compute(texts, unknown, out, tick)
        if repeated:
            out[repeated] = out[[places[names[place]] for place in repeated]]
        if tick is not None:
            tick(len(texts), len(texts), "embedding")
        # A bulk load would only push the queries out.
        if len(texts) <= self._remember // 4:
            self._store(places, out)
        return out

    def _compute(self, texts: Sequence[str], unknown: Places, out: Vectors, tick: Tick | None) -> None:
        new = list(unknown)
        known = len(texts) - len(new)
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            rows = [unknown[key] for key in some]
            if tick is not None:
                tick(known + start, len(texts), "embedding")
            vectors = out[rows] = self.embedder.embed([texts[row] for row in rows])
            if self._cache is not None:
                self._cache.put(some, vectors)

    def _recall(self, places: Places, out: Vectors) -> Places:
        """Fill in what memory holds; what is left is what it does not."""
        recent = self._recent
        for key in places.keys() & recent.keys() if recent else ():
            out[places[key]] = recent[key]
        return {key: place for key, place in places.items() if key not in recent} if recent else places

    def _store(self, places: Places, out: Vectors) -> None:
        for key, place in places.items():
            if key in self._recent:
                self._recent.move_to_end(key)
            else:
                self._recent[key] = out[place].copy()
            if len(self._recent) > self._remember:
                self._recent.popitem(last=False)


class HashEmbedder:
    """Words and their letter triples, hashed to signed counts: for tests only. It knows spelling, not meaning."""

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.name = f"hash-{dimensions}"
        self._features: dict[str, list[tuple[int, int]]] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        counts = np.zeros((len(texts), self.dimensions), dtype=np.float64)
        counts[:, 0] = 1  # no text, the empty one included, is the zero vector
        for row, text in zip(counts, texts, strict=True):
            for word in text.lower().split():
                for place, amount in self._hashed(word.strip(".,;:!?\"'()")):
                    row[place] += amount
        # Whole numbers add up exactly in any order, so the bits are the same everywhere.
        unit: Vectors = (counts / np.sqrt((counts * counts).sum(axis=1, keepdims=True))).astype(np.float32)
        return unit

    def _hashed(self, word: str) -> list[tuple[int, int]]:
        if word not in self._features:
            padded = f"^{word}$"
            triples = [padded[at : at + 3] for at in range(len(padded) - 2)]
            weighted = [(word, 4), *((triple, 1) for triple in triples)]
            hashed = [(zlib.crc32(part.encode("utf-8", "surrogatepass")), weight) for part, weight in weighted]
            self._features[word] = [
                (1 + (number >> 1) % (self.dimensions - 1), weight if number & 1 else -weight)
                for number, weight in hashed
            ]
        return self._features[word]


def default_embedder(cache: Path | None = None) -> CachedEmbedder:
    """all-MiniLM-L6-v2 with the disk cache in `cache`, or in the usual folder; `errors.Missing` where it is not."""
    folder = cache or cache_folder()
    return CachedEmbedder(minilm.MiniLM(minilm.find(folder), folder), VectorCache(folder))
