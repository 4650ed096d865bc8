"""Embedders: the protocol, a caching wrapper, endpoints, packages, and a hashing embedder for tests.

Embedders turn texts into vectors of unit length.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
import zlib
from collections.abc import Iterable, Sequence
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from kbgym.canonical import decode
from kbgym.errors import BadInput, Failed, Missing
from kbgym.progress import ProgressCallback
from kbgym.search.cache import VectorCache
from kbgym.search.models import MINILM, open_embedder

Vectors = NDArray[np.float32]

Places = dict[bytes, int]  # cache key to the position of the first text that has it

_SAVE_BATCH = 256  # vectors of single queries written to the cache together
_REQUEST = 64  # texts in one request to an endpoint
_TIMEOUT = 60.0  # seconds
_BATCH = 1024  # texts embedded between two commits to the cache; an interrupted cold start loses at most this many


def keys(model: str, texts: Iterable[str]) -> list[bytes]:
    """Return the cache keys of texts, which may hold unpaired surrogates."""
    prefix, sha256 = f"{model}\0", hashlib.sha256
    return [sha256((prefix + text).encode("utf-8", "surrogatepass")).digest()[:16] for text in texts]


class Embedder(Protocol):
    """Deterministic mapping from texts to float32 rows of unit length."""

    @property
    def name(self) -> str:
        """Return the name used in cache keys and traces; embedders of one name must return the same vectors."""

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors: ...


class Reranker(Protocol):
    """Cross-encoder that scores texts for a query by reading both together."""

    @property
    def name(self) -> str: ...

    def scores(self, query: str, texts: Sequence[str]) -> list[float]: ...


class CachedEmbedder:
    """An embedder with an LRU cache in memory, a cache on disk and an optional reranker. Thread-safe."""

    def __init__(
        self,
        embedder: Embedder,
        cache: VectorCache | None = None,
        remember: int = 16_384,
        reranker: Reranker | None = None,
    ) -> None:
        self.embedder, self.reranker = embedder, reranker
        self.name = embedder.name if reranker is None else f"{embedder.name}+{reranker.name}"
        self.prefix: str = getattr(embedder, "prefix", "")  # prepended to a query
        self._cache = cache
        self._remember = remember
        self._recent: LRUCache[bytes, Vectors] = LRUCache(remember)
        self._unsaved: dict[bytes, Vectors] = {}
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    def embed(self, texts: Sequence[str], tick: ProgressCallback | None = None, behind: bool = False) -> Vectors:
        """Return the vectors in order.

        With `behind`, new vectors are written to disk in batches and by `save`, so that a query does not wait for its
        own transaction.
        """
        names = keys(self.embedder.name, texts)
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
        # A bulk load would only evict queries from the LRU cache.
        if len(texts) <= self._remember // 4:
            with self._lock:
                new = {key: out[place].copy() for key, place in places.items() if key not in self._recent}
                self._recent.update(new)
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


class HashEmbedder:
    """Hash words and their letter trigrams to signed counts, for tests. It sees spelling, not meaning."""

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.name = f"hash-{dimensions}"
        self._features: dict[str, list[tuple[int, int]]] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        counts = np.zeros((len(texts), self.dimensions), dtype=np.float64)
        counts[:, 0] = 1  # no text has the zero vector, even the empty text
        for row, text in zip(counts, texts, strict=True):
            for word in text.lower().split():
                for place, amount in self._hashed(word.strip(".,;:!?\"'()")):
                    row[place] += amount
        # Integer sums are exact in any order, so the result is the same on every machine.
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
    """A placeholder for word search, which embeds nothing."""

    name = "none"
    dimensions = 1

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), dtype=np.float32)


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Reply(msgspec.Struct):
    data: list[_Row]


class EndpointEmbedder:
    """An OpenAI-compatible endpoint, `openai:URL#MODEL`; the key is $OPENAI_API_KEY if it is set."""

    def __init__(self, name: str) -> None:
        self.name = name
        url, _, self._model = name.removeprefix("openai:").partition("#")
        if not url.startswith(("http://", "https://")) or not self._model:
            raise BadInput(f"{name!r} is not an endpoint; use openai:URL#MODEL.")
        self._url = url.rstrip("/") + "/embeddings"
        self._dimensions = 0

    @property
    def dimensions(self) -> int:
        self._dimensions = self._dimensions or len(self._ask(["a"])[0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = [row for at in range(0, len(texts), _REQUEST) for row in self._ask(texts[at : at + _REQUEST])]
        return unit_rows(np.array(rows, dtype=np.float64).reshape(len(texts), self.dimensions))

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        from urllib.request import Request, urlopen

        body = msgspec.json.encode({"model": self._model, "input": list(texts)})
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        try:
            with urlopen(Request(self._url, body, headers), timeout=_TIMEOUT) as reply:
                found = decode(reply.read(), _Reply).data
        except (OSError, msgspec.DecodeError) as error:
            raise Failed(f"{self._url} returned no vectors: {error}.") from error
        if len(found) != len(texts):
            raise Failed(f"{self._url} returned {len(found)} vectors for {len(texts)} texts.")
        return [row.embedding for row in sorted(found, key=attrgetter("index"))]


class PackageEmbedder:
    """A model of the package sentence-transformers, `st:NAME`."""

    def __init__(self, name: str) -> None:
        self.name = name
        if importlib.util.find_spec("sentence_transformers") is None:
            raise Missing(f"{name!r} needs sentence-transformers; run `pip install sentence-transformers`.")
        self._model: Any = import_module("sentence_transformers").SentenceTransformer(name.removeprefix("st:"))

    @property
    def dimensions(self) -> int:
        return int(self._model.get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> Vectors:
        # One at a time, since padding changes the last bits.
        rows = [self._model.encode([text])[0] for text in texts]
        return unit_rows(np.array(rows, dtype=np.float64).reshape(len(texts), self.dimensions))


def unit_rows(rows: NDArray[np.float64]) -> Vectors:
    """Return rows of unit length."""
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def default_embedder(cache: Path | None = None) -> CachedEmbedder:
    """Return all-MiniLM-L6-v2 with its disk cache. Raise `errors.Missing` if the model is not installed."""
    return open_embedder(MINILM.name, cache)
