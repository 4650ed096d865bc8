"""Embed texts in threads beside an event loop, fairly among clients and in batches of equal length.

`EmbeddingQueue` is what a `LiveEngine` takes vectors from; `FairQueue` decides which text comes next.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from kbgym.search.embed import CachedEmbedder

Vector = NDArray[np.float32]

# A text of this many characters takes ten times as long as a typical query. Only one thread at a time embeds such
# texts, so that another is free for short ones.
LONG = 300
# A batch of eight short queries takes three to four times as long as one query, and one of sixteen hardly less for
# each: a query that arrives during a batch should not wait for more.
_BATCH = 8
_BATCH_CHARACTERS = 2_000  # in a batch of more than one text
_THREADS = 2
_CANDIDATES = 64  # waiting texts from which a batch is chosen

# The client that this task serves, "" for none.
wanted_by: ContextVar[str] = ContextVar("wanted_by", default="")


class FairQueue:
    """A queue of texts by owner. The owner with the least work done so far comes first, with its oldest text.

    Work is counted in characters and forgotten once the queue is empty.
    """

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, None]] = {}
        self._work: dict[str, int] = {}

    def add(self, text: str, owner: str) -> None:
        if owner not in self._texts:
            # An owner that returns has saved up no more than one turn.
            least = min((self._work[other] for other in self._texts), default=1)
            self._work[owner] = max(self._work.get(owner, 0), least - 1)
        self._texts.setdefault(owner, {})[text] = None

    def __bool__(self) -> bool:
        return bool(self._texts)

    def first(self, count: int, short: bool = False) -> list[str]:
        """Return the next `count` texts in order, only short ones if `short`."""
        owners = sorted(self._texts, key=self._work.__getitem__)
        queues = [(text for text in self._texts[owner] if not short or len(text) < LONG) for owner in owners]
        found: dict[str, None] = {}
        while queues and len(found) < count:
            left = []
            for queue in queues:
                if (text := next(queue, None)) is not None:
                    found[text] = None
                    left.append(queue)
            queues = left
        return list(found)[:count]

    def take(self, texts: Iterable[str]) -> None:
        """Remove texts and charge them to every owner that waits for them."""
        for text in texts:
            for owner in [owner for owner, waiting in self._texts.items() if text in waiting]:
                del self._texts[owner][text]
                self._work[owner] += len(text) + 1
                if not self._texts[owner]:
                    del self._texts[owner]
        if not self._texts:
            self._work.clear()


class _Request(NamedTuple):
    """Texts one caller waits for; `future` is done once `missing` is empty."""

    missing: set[str]
    future: asyncio.Future[None]


class EmbeddingQueue:
    """Vectors by text, embedded by up to two threads.

    The threads choose the next batch themselves and notify the loop when it is done: choosing in the loop tripled the
    rounds of the loop that a text waits for.
    """

    def __init__(self, embedder: CachedEmbedder, remember: int = 4_096) -> None:
        self.embedder = embedder
        self._max_threads = min(_THREADS, os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(self._max_threads, "embedding")
        self._long_thread = ThreadPoolExecutor(1, "embedding-long", _lower_priority)
        # Used by the loop:
        self._known: LRUCache[str, Vector] = LRUCache(remember)
        self._requests: dict[str, list[_Request]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        # Passed from the loop to the threads:
        self._requested: deque[tuple[str, str]] = deque()  # texts and their owners
        self._running = 0  # threads
        self._running_lock = threading.Lock()
        # Used by the threads, under `_choosing`:
        self._waiting = FairQueue()
        self._in_work: set[str] = set()
        self._long_in_work = False
        self._choosing = threading.Lock()

    async def prepare(self, texts: Iterable[str], owner: str | None = None) -> None:
        """Return once the vectors of these texts are known, without blocking the loop.

        If texts must wait, owners (by default the client in `wanted_by`) take turns: one with many or long texts delays
        only itself.
        """
        owner = wanted_by.get() if owner is None else owner
        missing = [text for text in dict.fromkeys(texts) if self._known.get(text) is None]
        if not missing:
            return
        self._loop = asyncio.get_running_loop()
        request = _Request(set(missing), self._loop.create_future())
        for text in missing:
            self._requests.setdefault(text, []).append(request)
            self._requested.append((text, owner))
        self._start_thread()
        await request.future

    def _start_thread(self) -> None:
        """Start another thread if there is work for it."""
        with self._running_lock:
            if self._running >= self._max_threads or not (self._requested or self._waiting):
                return
            self._running += 1
        self._threads.submit(self._work)

    def _work(self) -> None:
        while batch := self._next_batch():
            self._start_thread()
            if max(map(len, batch)) >= LONG:
                self._long_thread.submit(self._process, batch)
            else:
                self._process(batch)

    def _next_batch(self) -> list[str]:
        """Return cached texts, else the next text and others of its length; [] ends the thread."""
        with self._choosing:
            while True:
                while self._requested:
                    text, owner = self._requested.popleft()
                    if text not in self._in_work:
                        self._waiting.add(text, owner)
                texts = self._waiting.first(_CANDIDATES, short=self._long_in_work)
                if not texts:
                    with self._running_lock:
                        if not self._requested:
                            self._running -= 1
                            return []
                    continue
                size = max(1, min(_BATCH, _BATCH_CHARACTERS // (len(texts[0]) + 1)))
                try:
                    batch = [texts[place] for place in self.embedder.choose(texts, size)]
                except Exception as error:
                    self._waiting.take(texts)
                    self._notify(self._fail, texts, error)
                    continue
                self._waiting.take(batch)
                self._in_work.update(batch)
                self._long_in_work |= max(map(len, batch)) >= LONG
                return batch

    def _process(self, texts: list[str]) -> None:
        try:
            self._notify(self._store, texts, self._embed(texts))
        except Exception as error:
            self._notify(self._fail, texts, error)
        with self._choosing:
            self._in_work.difference_update(texts)
            if max(map(len, texts)) >= LONG:
                self._long_in_work = False
        self._start_thread()

    def _notify(self, callback: Callable[..., None], *args: Any) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(callback, *args)

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        return self.embedder.embed(texts, behind=True)

    def _fail(self, texts: list[str], error: Exception) -> None:
        for request in [request for text in texts for request in self._requests.pop(text, ())]:
            if not request.future.done():
                request.future.set_exception(error)
                request.future.exception()  # marks it as retrieved: the caller may have been cancelled

    def _store(self, texts: list[str], vectors: NDArray[np.float32]) -> None:
        self._known.update(zip(texts, vectors, strict=True))
        for text in texts:
            for request in self._requests.pop(text, ()):
                request.missing.discard(text)
                if not request.missing and not request.future.done():
                    request.future.set_result(None)

    def __call__(self, text: str) -> Vector:
        """Return the vector of a text; block if it was not prepared."""
        if (vector := self._known.get(text)) is None:
            vectors = self._threads.submit(self._embed, [text]).result()
            self._store([text], vectors)
            vector = vectors[0]
        return vector

    def warm(self) -> None:
        """Open the model in a thread before the first text needs it."""
        if (warm := getattr(self.embedder.embedder, "warm", None)) is not None:
            self._threads.submit(warm)

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self._long_thread.shutdown(wait=True)
        self.embedder.save()


def _lower_priority() -> None:
    """Give this thread a lower priority than the event loop and short texts, where the system supports it."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
