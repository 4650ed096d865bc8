"""Batched embedding in threads beside an event loop, in which long texts never delay short ones."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from kbgym.search.embed import CachedEmbedder

Vector = NDArray[np.float32]

# A text of this many characters takes ten times as long as a typical query. One thread embeds such texts.
LONG = 300
# A batch of eight short queries takes three to four times as long as one query; a query that arrives during a batch
# should not wait longer.
_BATCH = 8


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
        self._short, self._long = _Lane("embedding", _BATCH), _Lane("embedding-long", 1)

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
