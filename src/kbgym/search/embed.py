"""Texts to vectors of unit length: the seam every embedder fits, the cache around it, and one for tests.

It knows nothing of documents, indexes or what a vector is used for.
"""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kbgym.progress import ProgressCallback
from kbgym.search import minilm
from kbgym.search.cache import VectorCache, cache_folder, keys

Vectors = NDArray[np.float32]

# ProgressCallback(done, total, note): called as a long piece of work goes on.

Places = dict[bytes, int]  # cache key to the first text that has it

_SAVED_AT_ONCE = 256  # vectors of single queries written to the cache together
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
        self._unsaved: dict[bytes, Vectors] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    def embed(self, texts: Sequence[str], tick: ProgressCallback | None = None, behind: bool = False) -> Vectors:
        """The vectors, in order. With `behind`, new ones come to the disk many at a time, or with `save`: a query need
        not wait for a transaction of its own. Several threads may ask at once."""
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
        # A bulk load would only push the queries out.
        if len(texts) <= self._remember // 4:
            self._store(places, out)
        return out

    def choose(self, texts: Sequence[str], most: int) -> list[int]:
        """Which of these texts can be had soonest: those that are known, else the first and others of its batch."""
        names = keys(self.name, texts)
        out = np.empty((len(texts), self.dimensions), dtype=np.float32)
        places = {key: place for place, key in reversed([*enumerate(names)])}
        unknown = self._look_up(places, out)
        known = {key: place for key, place in places.items() if key not in unknown}
        if known:
            self._store(known, out)
            return sorted(known.values())
        first, *others = sorted(unknown.values())
        if (length := getattr(self.embedder, "length", None)) is not None:
            others = [place for place in others if length(texts[place]) == length(texts[first])]
        return [first, *others][:most]

    def save(self) -> None:
        """Bring to the disk what was embedded `behind`."""
        with self._lock:
            unsaved, self._unsaved = self._unsaved, {}
        if self._cache is not None and unsaved:
            self._cache.put(list(unsaved), np.stack(list(unsaved.values())))

    def _look_up(self, places: Places, out: Vectors) -> Places:
        """Fill in what memory and disk hold; what is left is what they do not."""
        with self._lock:
            unknown = self._recall(places, out)
        return self._cache.get(unknown, out) if self._cache is not None and unknown else unknown

    def _compute(
        self, texts: Sequence[str], unknown: Places, out: Vectors, tick: ProgressCallback | None, behind: bool
    ) -> None:
        new = list(unknown)
        known = len(texts) - len(new)
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            rows = [unknown[key] for key in some]
            if tick is not None:
                tick(known + start, len(texts), "embedding")
            vectors = out[rows] = self.embedder.embed([texts[row] for row in rows])
            if self._cache is not None and not behind:
                self._cache.put(some, vectors)
            elif self._cache is not None:
                with self._lock:
                    self._unsaved.update(zip(some, vectors, strict=True))
                if len(self._unsaved) >= _SAVED_AT_ONCE:
                    self.save()

    def _recall(self, places: Places, out: Vectors) -> Places:
        """Fill in what memory holds; what is left is what it does not."""
        recent = self._recent
        for key in places.keys() & recent.keys() if recent else ():
            out[places[key]] = recent[key]
        return {key: place for key, place in places.items() if key not in recent} if recent else places

    def _store(self, places: Places, out: Vectors) -> None:
        with self._lock:
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


class NoEmbedder:
    """All texts are one: what a search by words alone is given, which never asks it."""

    name = "none"
    dimensions = 1

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), dtype=np.float32)


def default_embedder(cache: Path | None = None, name: str = minilm.NAME) -> CachedEmbedder:
    """all-MiniLM-L6-v2 with the disk cache in `cache`, or in the usual folder; `errors.Missing` where it is not."""
    folder = cache or cache_folder()
    return CachedEmbedder(minilm.MiniLM(minilm.find(folder), folder, name=name), VectorCache(folder))
