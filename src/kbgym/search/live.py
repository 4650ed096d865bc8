"""Search for a process with many clients: `LiveEngine` over the current store, `Overlay` over a snapshot of it.

An overlay is free to create: it holds only the former state of entries that the live engine has changed since, and its
own staged edits. An `EmbeddingQueue` embeds texts in threads, in batches in which long texts never delay short ones.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from cachetools import LRUCache

from kbgym.search.base import SearchKind
from kbgym.search.bm25 import BM25Index, WordIndex, WordPart
from kbgym.search.embed import CachedEmbedder
from kbgym.search.engine import Beside, Engine, Vector
from kbgym.search.index import ExactIndex, Layered, LayeredIndex, VectorIndex

# A text of this many characters takes ten times as long as a typical query. One thread embeds such texts.
LONG = 300
# A batch of eight short queries takes three to four times as long as one query; a query that arrives during a batch
# should not wait longer.
_AT_ONCE = 8


class _Lane:
    """Texts that wait for one thread."""

    def __init__(self, name: str, batch: int) -> None:
        self.waiting: deque[tuple[str, Future[Vector]]] = deque()
        self.batch = batch
        self.thread = ThreadPoolExecutor(1, name)


class EmbeddingQueue:
    """Vectors by text. A text requested by several callers is embedded once."""

    def __init__(self, embedder: CachedEmbedder, remember: int = 4_096) -> None:
        self.embedder = embedder
        self._known: LRUCache[str, Vector] = LRUCache(remember)
        self._wanted: dict[str, Future[Vector]] = {}
        self._lock = threading.Lock()
        self._short, self._long = _Lane("embedding", _AT_ONCE), _Lane("embedding-long", 1)

    async def prepare(self, texts: Iterable[str]) -> None:
        """Wait until the vectors of these texts are known, without blocking the loop."""
        requested = [self._request(text) for text in dict.fromkeys(texts)]
        if futures := [one for one in requested if isinstance(one, Future)]:
            # A cancelled caller does not cancel the future: others may wait for it.
            done, _ = await asyncio.wait([asyncio.wrap_future(future) for future in futures])
            for future in done:
                future.result()

    def __call__(self, text: str) -> Vector:
        """Return the vector of a text; block if it was not prepared."""
        found = self._request(text)
        return found.result() if isinstance(found, Future) else found

    def warm(self) -> None:
        """Open the model in a thread, ahead of the first text."""
        if (warm := getattr(self.embedder.embedder, "warm", None)) is not None:
            self._short.thread.submit(warm)

    def close(self) -> None:
        for lane in (self._short, self._long):
            lane.thread.shutdown(wait=True)
        self.embedder.save()

    def _request(self, text: str) -> Future[Vector] | Vector:
        """Return the vector of a text if it is known, else its future."""
        with self._lock:
            if (vector := self._known.get(text)) is not None:
                return vector
            if (future := self._wanted.get(text)) is None:
                future = self._wanted[text] = Future()
                lane = self._long if len(text) >= LONG else self._short
                lane.waiting.append((text, future))
                lane.thread.submit(self._work, lane)
            return future

    def _work(self, lane: _Lane) -> None:
        """Embed the next batch of a lane, which may be empty."""
        with self._lock:
            batch = [lane.waiting.popleft() for _ in range(min(lane.batch, len(lane.waiting)))]
        if not batch:
            return
        try:
            vectors = self.embedder.embed([text for text, _ in batch], behind=True)
        except Exception as error:
            with self._lock:
                for text, _ in batch:
                    del self._wanted[text]
            for _, future in batch:
                future.set_exception(error)
            return
        with self._lock:
            for (text, _), vector in zip(batch, vectors, strict=True):
                self._known[text] = vector
                del self._wanted[text]
        for (_, future), vector in zip(batch, vectors, strict=True):
            future.set_result(vector)


class QueuedEngine(Engine):
    """Common base of `LiveEngine` and `Overlay`: an engine whose texts are embedded by a queue."""

    def __init__(
        self,
        index: VectorIndex,
        embedding: EmbeddingQueue,
        kind: SearchKind = "vectors",
        words: WordIndex | None = None,
        beside: Beside | None = None,
    ) -> None:
        super().__init__(embedding.embedder, index, kind, beside, words)
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

    def _vector(self, text: str) -> Vector:
        return self.embedding(text)

    def _new(self, kind: SearchKind) -> Engine:
        return LiveEngine(ExactIndex(), self.embedding, kind)


class LiveEngine(QueuedEngine):
    """The search engine of a live environment. It notifies every overlay before a change."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Set by a backend whose searches would block: it reads the first hits of texts in threads.
        self._prefetch: Any = getattr(self._kept, "prefetch", None)
        self._overlays: weakref.WeakSet[Overlay] = weakref.WeakSet()

    async def _read_ahead(self, texts: list[str]) -> None:
        if self._prefetch is not None:
            await self._prefetch(texts, self.embedding)

    def warm(self) -> None:
        self.embedding.warm()

    def close(self) -> None:
        self.embedding.close()

    def overlay(self) -> Overlay:
        """Return a search over the current state, isolated from later changes."""
        made = Overlay(self)
        self._overlays.add(made)
        if self.trained is not None:
            made.trained = self.trained.overlay()
        return made

    def _before_change(self, id: str) -> None:
        super()._before_change(id)
        if self._overlays:
            vector = self.index.vector(id) if id in self.index else None
            text = self.words.text(id) if self.words is not None and id in self.words else None
            for overlay in self._overlays:
                overlay.keep(id, vector, text)


class Overlay(QueuedEngine):
    """A snapshot of a live engine with staged edits on top."""

    def __init__(self, live: LiveEngine) -> None:
        self._live = live
        self._past_index = PastIndex(live.index, ExactIndex())
        self._past_words = None if live.words is None else PastWords(live.words, BM25Index())
        super().__init__(self._past_index, live.embedding, live.kind, self._past_words, live.beside)

    def keep(self, id: str, vector: Vector | None, text: str | None) -> None:
        """Save the state of an id that the live engine is about to change."""
        self._past_index.keep(id, vector)
        if self._past_words is not None:
            self._past_words.keep(id, text)

    async def _read_ahead(self, texts: list[str]) -> None:
        await self._live._read_ahead(texts)


class Past(Layered):
    """A live index as it was, with staged edits on top. Its hidden ids may change in the live index."""

    def __len__(self) -> int:
        return len(self.base) - sum(id in self.base for id in self.hidden) + len(self.own)

    @property
    def ids(self) -> Sequence[str]:
        return [*(id for id in self.base.ids if id not in self.hidden), *self.own.ids]

    def hide(self, id: str) -> bool:
        self.hidden.add(id)
        return True

    def keep(self, id: str, value: Any) -> None:
        """Save the entry of an id that the live index is about to change; None if it has none."""
        if id not in self.hidden:
            self.hidden.add(id)
            if value is not None:
                self.own.put(id, value)


class PastIndex(Past, LayeredIndex):
    """The vectors of a live engine as they were."""


class PastWords(Past, WordIndex):
    """The texts of a live engine as they were."""

    def text(self, id: str) -> str:
        found: str = (self.own if id in self.hidden else self.base).text(id)
        return found

    def parts(self, apart: Collection[str] = ()) -> list[WordPart]:
        return [*self.base.parts({*self.hidden, *apart}), *self.own.parts(apart)]
