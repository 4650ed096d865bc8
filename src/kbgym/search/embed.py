"""Embedders: the protocol, a cache around any embedder, the default model, and a hashing one for tests.

Embedders turn texts into vectors of unit length.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from kbgym.progress import ProgressCallback
from kbgym.search import minilm
from kbgym.search.cache import VectorCache, cache_folder, keys

Vectors = NDArray[np.float32]

Places = dict[bytes, int]  # cache key to the position of the first text that has it

_SAVE_BATCH = 256  # vectors of single queries written to the cache together
_BATCH = 1024  # texts embedded between two commits to the cache: what an interrupted cold start can lose


class Embedder(Protocol):
    """Turns texts into float32 rows of unit length, deterministically."""

    @property
    def name(self) -> str:
        """The name in cache keys and traces; embedders of the same name must return the same vectors."""

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors: ...


class CachedEmbedder:
    """An embedder with an LRU cache in memory and a cache on disk. Thread-safe."""

    def __init__(self, embedder: Embedder, cache: VectorCache | None = None, remember: int = 16_384) -> None:
        self.embedder = embedder
        self._cache = cache
        self._remember = remember
        self._recent: LRUCache[bytes, Vectors] = LRUCache(remember)
        self._unsaved: dict[bytes, Vectors] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    def embed(self, texts: Sequence[str], tick: ProgressCallback | None = None, behind: bool = False) -> Vectors:
        """Return the vectors in order.

        With `behind`, new vectors are written to disk in batches and by `save`, so that a query does not wait for a
        transaction of its own.
        """
        names = keys(self.name, texts)
        out = np.empty((len(texts), self.dimensions), dtype=np.float32)
        places: Places = {}
        repeated = [place for place, key in enumerate(names) if places.setdefault(key, place) != place]
        unknown = self._look_up(places, out)
        if unknown:
            self._compute(texts, unknown, out, tick, behind)
        if repeated:
            out[repeated] = out[[places[names[place]] for place in repeated]]
        if tick is not None:
            tick(len(texts), len(texts), "embedding")
        # A bulk load would only evict the queries.
        if len(texts) <= self._remember // 4:
            self._store(places, out)
        return out

    def save(self) -> None:
        """Write vectors embedded with `behind` to disk."""
        with self._lock:
            unsaved, self._unsaved = self._unsaved, {}
        if self._cache is not None and unsaved:
            self._cache.put(list(unsaved), np.stack(list(unsaved.values())))

    def _look_up(self, places: Places, out: Vectors) -> Places:
        """Fill in cached vectors. Return the unknown keys with their places."""
        unknown: Places = {}
        with self._lock:
            for key, place in places.items():
                if (vector := self._recent.get(key)) is None:
                    unknown[key] = place
                else:
                    out[place] = vector
        return self._cache.get(unknown, out) if self._cache is not None and unknown else unknown

    def _compute(
        self, texts: Sequence[str], unknown: Places, out: Vectors, tick: ProgressCallback | None, behind: bool
    ) -> None:
        new = list(unknown)
        known = len(texts) - len(new)
        for start in range(0, len(new), _BATCH):
            some = new[start : start + _BATCH]
            rows = [unknown[key] for key in some]
            if tick is not None:
                tick(known + start, len(texts), "embedding")
            vectors = out[rows] = self.embedder.embed([texts[row] for row in rows])
            if self._cache is not None and not behind:
                self._cache.put(some, vectors)
            elif self._cache is not None:
                with self._lock:
                    self._unsaved.update(zip(some, vectors, strict=True))
                if len(self._unsaved) >= _SAVE_BATCH:
                    self.save()

    def _store(self, places: Places, out: Vectors) -> None:
        with self._lock:
            self._recent.update((key, out[place].copy()) for key, place in places.items() if key not in self._recent)


class HashEmbedder:
    """Hashes words and their letter trigrams to signed counts, for tests. It sees spelling, not meaning."""

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.name = f"hash-{dimensions}"
        self._features: dict[str, list[tuple[int, int]]] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        counts = np.zeros((len(texts), self.dimensions), dtype=np.float64)
        counts[:, 0] = 1  # no text has the zero vector, not even the empty one
        for row, text in zip(counts, texts, strict=True):
            for word in text.lower().split():
                for place, amount in self._hashed(word.strip(".,;:!?\"'()")):
                    row[place] += amount
        # Sums of integers are exact in any order, so the result is the same on every machine.
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


class NoEmbedder:
    """A placeholder for searches by words, which embed nothing."""

    name = "none"
    dimensions = 1

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), dtype=np.float32)


def default_embedder(cache: Path | None = None, name: str = minilm.NAME) -> CachedEmbedder:
    """Return all-MiniLM-L6-v2 with its disk cache. Raise `errors.Missing` if the model is not installed."""
    folder = cache or cache_folder()
    return CachedEmbedder(minilm.MiniLM(minilm.find(folder), folder, name=name), VectorCache(folder))
