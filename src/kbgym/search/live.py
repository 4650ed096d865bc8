"""Search for a process with many clients: `LiveEngine` over the current store, `Overlay` over a snapshot of it.

An overlay is free to create: it holds only the former state of entries that the live engine has changed since, and its
own staged edits. Texts are embedded in threads by an `EmbeddingQueue`.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from cachetools import LRUCache

from kbgym.search.base import SearchKind
from kbgym.search.bm25 import BM25Index
from kbgym.search.embedding_queue import LONG, EmbeddingQueue, Vector
from kbgym.search.engine import DEPTH, Beside, RankedSearch
from kbgym.search.index import ExactIndex, Hit, KeptIndex, page_of, visible_hits
from kbgym.search.ranking import FIRST
from kbgym.search.words import KeptWords, WordRanking, WordsBefore

_READ = 1_024  # texts whose hits, read from a base, are cached


class ServedEngine(RankedSearch):
    """Common base of `LiveEngine` and `Overlay`."""

    def __init__(self, embedding: EmbeddingQueue, kind: SearchKind, beside: Beside | None) -> None:
        super().__init__(kind, beside, embedding.embedder)
        self.embedding = embedding

    async def prepare(self, texts: Iterable[str]) -> None:
        """Embed texts in a thread and prefetch their hits from a base in a database."""
        wanted = given = list(texts)
        if self.prefix:  # each text may be a query
            wanted = [*given, *(self.prefix + text for text in given)]
        if self.kind != "words":
            await self.embedding.prepare(wanted)
        await self._read_ahead(wanted)
        if self.reranker is not None:
            for query in [text for text in given if len(text) < LONG]:
                ids, candidates = self._candidates(query)
                scores = await asyncio.to_thread(self.reranker.scores, query, candidates)
                self._put_in_order(query, ids, scores)

    async def _read_ahead(self, texts: list[str]) -> None:
        raise NotImplementedError

    def _beside(self, texts: Sequence[tuple[str, str]]) -> LiveEngine:
        if self.kind == "words":
            words = BM25Index()
            words.load(texts)
            return LiveEngine(ExactIndex(), self.embedding, "words", words)
        index = ExactIndex()
        index.put_many([id for id, _ in texts], self.embedding.embedder.embed([text for _, text in texts]), own=True)
        return LiveEngine(index, self.embedding)


class LiveEngine(ServedEngine):
    """The search engine of a live environment. It notifies every overlay before a change.

    Word search leaves `index` empty; vector search leaves `words` empty.
    """

    def __init__(
        self,
        index: KeptIndex,
        embedding: EmbeddingQueue,
        kind: SearchKind = "vectors",
        words: KeptWords | None = None,
        beside: Beside | None = None,
    ) -> None:
        super().__init__(embedding, kind, beside)
        self.index = index
        self.words: KeptWords = BM25Index() if words is None else words
        self._read: LRUCache[str, bool] = LRUCache(_READ)
        self._overlays: weakref.WeakSet[Overlay] = weakref.WeakSet()

    async def _read_ahead(self, texts: list[str]) -> None:
        if hasattr(self.index, "ahead") or hasattr(self.words, "ahead"):
            await asyncio.gather(*(self._read_one(text) for text in set(texts) if not self._read.get(text)))

    async def _read_one(self, text: str) -> None:
        near: list[Hit] = []
        if (ahead := getattr(self.index, "ahead", None)) is not None:
            depth = DEPTH if self.kind == "hybrid" else FIRST
            near = await asyncio.to_thread(ahead, self.embedding(text), depth)
        words: Any = self.words
        if hasattr(words, "ahead") and len(text) < LONG:  # long texts are rarely searched for by words
            await asyncio.to_thread(words.ahead, text)
            await asyncio.to_thread(words.read(text, FIRST, [id for id, _ in near]))
        self._read[text] = True

    def _near(self, text: str, offset: int, limit: int) -> list[Hit]:
        return self.index.search(self.embedding(text), offset, limit) if offset < len(self.index) else []

    def _words(self) -> WordRanking:
        return self.words

    def _text(self, id: str) -> str:
        return self.words.text(id)

    def put(self, id: str, text: str) -> None:
        self._in_order.clear()
        vector = None if self.kind == "words" else self.embedding(text)
        self._notify_overlays(id)
        if vector is not None:
            self.index.put(id, vector)
        if self.kind != "vectors":
            self.words.put(id, text)

    def remove(self, id: str) -> None:
        self._in_order.clear()
        self._notify_overlays(id)
        if self.kind != "words":
            self.index.remove(id)
        if self.kind != "vectors":
            self.words.remove(id)

    def overlay(self) -> Overlay:
        """Return a search over the current state, isolated from later changes."""
        made = Overlay(self)
        self._overlays.add(made)
        if isinstance(self.trained, LiveEngine):
            made.trained = self.trained.overlay()
        return made

    @property
    def _kept(self) -> Any:
        return self.words if self.kind == "words" else self.index

    def ids(self) -> Iterable[str]:
        found: Sequence[str] = self._kept.ids
        return found

    def __contains__(self, id: object) -> bool:
        return id in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def _notify_overlays(self, id: str) -> None:
        if self._overlays:
            vector = self.index.vector(id) if id in self.index else None
            text = self.words.text(id) if id in self.words else None
            for overlay in self._overlays:
                overlay.keep(id, vector, text)


class Overlay(ServedEngine):
    """A snapshot of a live engine with staged edits on top. Ids in `_apart` are looked up here."""

    def __init__(self, live: LiveEngine) -> None:
        super().__init__(live.embedding, live.kind, live.beside)
        self._live = live
        self._apart: set[str] = set()
        self._own = ExactIndex()
        self._own_words = BM25Index()

    def keep(self, id: str, vector: Vector | None, text: str | None) -> None:
        """Save the state of an id that the live engine is about to change."""
        if id not in self._apart:
            self._apart.add(id)
            if vector is not None:
                self._own.put(id, vector)
            if text is not None:
                self._own_words.put(id, text)

    def _text(self, id: str) -> str:
        return self._own_words.text(id) if id in self._apart else self._live.words.text(id)

    def put(self, id: str, text: str) -> None:
        self._in_order.clear()
        self._apart.add(id)
        if self.kind != "words":
            self._own.put(id, self.embedding(text))
        if self.kind != "vectors":
            self._own_words.put(id, text)

    def remove(self, id: str) -> None:
        self._in_order.clear()
        self._apart.add(id)
        for own in (self._own, self._own_words):
            if id in own:
                own.remove(id)

    def _near(self, text: str, offset: int, limit: int) -> list[Hit]:
        index, own, end = self._live.index, self._own, offset + limit
        if offset >= len(index) + len(self._kept):
            return []
        vector = self.embedding(text)
        hits = visible_hits(lambda end: index.search(vector, 0, end), self._apart, end) if len(index) else []
        return page_of([*hits, *(own.search(vector, 0, end) if len(own) else ())], offset, limit)

    @property
    def _kept(self) -> ExactIndex | BM25Index:
        return self._own_words if self.kind == "words" else self._own

    def ids(self) -> Iterable[str]:
        return [*(id for id in self._live.ids() if id not in self._apart), *self._kept.ids]

    def __contains__(self, id: object) -> bool:
        return id in self._kept if id in self._apart else id in self._live

    def __len__(self) -> int:
        return len(self._live) - sum(id in self._live for id in self._apart) + len(self._kept)

    async def _read_ahead(self, texts: list[str]) -> None:
        await self._live._read_ahead(texts)

    def _words(self) -> WordRanking:
        return WordsBefore(self._live.words, self._apart, self._own_words)
