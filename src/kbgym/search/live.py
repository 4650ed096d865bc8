"""Search for a process that serves many: embedding in a thread, and views of the past that cost nothing to take.

`Embedding` works out vectors beside the event loop, what waits and is equally long in one batch. `LiveEngine` searches
the store as it is now. `Overlay` searches it as it was when the overlay was made, with changes of its own on top: it
keeps what the live engine has changed since, and nothing else. None of them knows stores, clients or traces.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbgym.search.base import SearchKind
from kbgym.search.bm25 import BM25Index
from kbgym.search.embed import CachedEmbedder
from kbgym.search.hybrid import DEPTH, WordRanking, blend
from kbgym.search.index import ExactIndex, Hit, KeptIndex, page_of, visible_hits
from kbgym.search.ranking import FIRST, Spread
from kbgym.search.recent import LRUCache
from kbgym.search.waiting import LONG, FairQueue
from kbgym.search.words import KeptWords, WordsBefore

Vector = NDArray[np.float32]

# A batch of eight short queries takes three to four times as long as one, and one of sixteen hardly less for each: a
# query that comes in while a batch is under way should not wait for more.
_AT_ONCE = 8
_TOGETHER = 2_000  # characters a batch may have together, unless a single text has more
_THREADS = 2
_READ = 1_024  # texts remembered for which a base was read
_LOOKED_AT = 64  # of the texts that wait, so many may be chosen from

# For whom this task works: a client, or nobody in particular. It reaches here through everything an action passes.
wanted_by: ContextVar[str] = ContextVar("wanted_by", default="")


class _Awaited(NamedTuple):
    """Texts one caller waits for; `future` is done once none is missing."""

    missing: set[str]
    future: asyncio.Future[None]


class Embedding:
    """Vectors by text, worked out by a thread or two beside the loop.

    The threads choose for themselves what comes next and tell the loop when it is done: were it asked in between, a
    text would wait for a round of the loop three times more.
    """

    def __init__(self, embedder: CachedEmbedder, remember: int = 4_096) -> None:
        self.embedder = embedder
        self._remember = remember
        self._most = min(_THREADS, os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(self._most, "embedding")
        self._behind = ThreadPoolExecutor(1, "embedding-long", _give_way)
        # The loop's:
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._awaited: dict[str, list[_Awaited]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        # Between the loop and the threads:
        self._asked: deque[tuple[str, str]] = deque()  # texts and who wants them
        self._at_work = 0  # threads
        self._hiring = threading.Lock()  # never held for longer than it takes to count
        # The threads':
        self._waiting = FairQueue()
        self._taken: set[str] = set()
        self._on_long = False  # a thread has a long text in hand
        self._choosing = threading.Lock()

    async def prepare(self, texts: Iterable[str], owner: str | None = None) -> None:
        """Return once the vectors of these texts are at hand; the loop goes on in the meantime.

        Where texts must wait, each owner (by default whoever `wanted_by` names) gets a share: one with many or long
        texts holds up nobody but itself.
        """
        owner = wanted_by.get() if owner is None else owner
        missing = []
        for text in dict.fromkeys(texts):
            if text in self._known:
                self._known.move_to_end(text)
            else:
                missing.append(text)
        if not missing:
            return
        self._loop = asyncio.get_running_loop()
        awaited = _Awaited(set(missing), self._loop.create_future())
        for text in missing:
            self._awaited.setdefault(text, []).append(awaited)
            self._asked.append((text, owner))
        self._hire()
        await awaited.future

    def _hire(self) -> None:
        """Another thread, where there is work for one."""
        with self._hiring:
            if self._at_work >= self._most or not (self._asked or self._waiting):
                return
            self._at_work += 1
        self._threads.submit(self._work)

    def _work(self) -> None:
        while chosen := self._choose():
            self._hire()
            if max(map(len, chosen)) >= LONG:
                self._behind.submit(self._work_out, chosen)
            else:
                self._work_out(chosen)

    def _choose(self) -> list[str]:
        """What is known at once; then the one whose turn it is and its batch; nothing where the thread ends."""
        with self._choosing:
            while True:
                while self._asked:
                    text, owner = self._asked.popleft()
                    if text not in self._taken:
                        self._waiting.add(text, owner)
                texts = self._waiting.first(_LOOKED_AT, short=self._on_long)
                if not texts:
                    with self._hiring:
                        if not self._asked:
                            self._at_work -= 1
                            return []
                    continue
                most = max(1, min(_AT_ONCE, _TOGETHER // (len(texts[0]) + 1)))
                try:
                    chosen = [texts[place] for place in self.embedder.choose(texts, most)]
                except Exception as error:
                    self._waiting.take(texts)
                    self._tell(self._fail, texts, error)
                    continue
                self._waiting.take(chosen)
                self._taken.update(chosen)
                self._on_long |= max(map(len, chosen)) >= LONG
                return chosen

    def _work_out(self, texts: list[str]) -> None:
        try:
            self._tell(self._keep, texts, self._embed(texts))
        except Exception as error:
            self._tell(self._fail, texts, error)
        with self._choosing:
            self._taken.difference_update(texts)
            if max(map(len, texts)) >= LONG:
                self._on_long = False
        self._hire()

    def _tell(self, what: Callable[..., None], *given: Any) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed: nobody waits any more
                self._loop.call_soon_threadsafe(what, *given)

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        return self.embedder.embed(texts, behind=True)

    def _fail(self, texts: list[str], error: Exception) -> None:
        for one in [one for text in texts for one in self._awaited.pop(text, ())]:
            if not one.future.done():
                one.future.set_exception(error)
                one.future.exception()  # whoever waited may be gone; that is no unheard error

    def _keep(self, texts: list[str], vectors: NDArray[np.float32]) -> None:
        self._known.update(zip(texts, vectors, strict=True))
        while len(self._known) > self._remember:
            self._known.popitem(last=False)
        for text in texts:
            for one in self._awaited.pop(text, ()):
                one.missing.discard(text)
                if not one.missing and not one.future.done():
                    one.future.set_result(None)

    def __call__(self, text: str) -> Vector:
        """A vector at once; one that was not prepared is waited for."""
        if (vector := self._known.get(text)) is not None:
            return vector
        vectors = self._threads.submit(self._embed, [text]).result()
        self._keep([text], vectors)
        return self._known[text]

    def warm(self) -> None:
        """Have the model opened beside the loop, before the first text that needs it."""
        if (warm := getattr(self.embedder.embedder, "warm", None)) is not None:
            self._threads.submit(warm)

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self._behind.shutdown(wait=True)
        self.embedder.save()


def _give_way() -> None:
    """This thread gets a processor after the event loop and short texts, where the system has it so."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


class ServedEngine:
    """What `LiveEngine` and `Overlay` share: a page out of a ranking by vectors and one by words."""

    def __init__(self, embedding: Embedding, kind: SearchKind, spread: Spread | None) -> None:
        self.embedding, self.kind, self.spread = embedding, kind, spread

    async def prepare(self, texts: Iterable[str]) -> None:
        """Have the vectors of these texts at hand, and what a base in a database has for them."""
        wanted = list(texts)
        if self.kind != "words":  # by words alone there is no vector
            await self.embedding.prepare(wanted)
        await self._read_ahead(wanted)

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        ranking = partial(self._page, query)
        return ranking(offset, limit) if self.spread is None else self.spread.page(ranking, offset, limit)

    def _page(self, query: str, offset: int, limit: int) -> list[Hit]:
        if self.kind == "vectors":
            return self._near(query, offset, limit)
        if self.kind == "words":
            return self._words().search(query, offset, limit)
        return blend(partial(self._near, query), self._words(), query, offset, limit)

    def nearest(self, text: str, limit: int, exclude: Collection[str] = ()) -> list[Hit]:
        """The nearest texts by cosine, whatever a search goes by."""
        left_out = set(exclude)
        return [hit for hit in self._near(text, 0, limit + len(left_out)) if hit[0] not in left_out][:limit]

    async def _read_ahead(self, texts: list[str]) -> None:
        raise NotImplementedError

    def _near(self, text: str, offset: int, limit: int) -> list[Hit]:
        raise NotImplementedError

    def _words(self) -> WordRanking:
        raise NotImplementedError


class LiveEngine(ServedEngine):
    """What the live environment searches with; it tells every overlay what it is about to change.

    By words alone, nothing is in `index`; by vectors alone, nothing is in `words`.
    """

    def __init__(
        self,
        index: KeptIndex,
        embedding: Embedding,
        kind: SearchKind = "vectors",
        words: KeptWords | None = None,
        spread: Spread | None = None,
    ) -> None:
        super().__init__(embedding, kind, spread)
        self.index = index
        self.words: KeptWords = BM25Index() if words is None else words
        self._read: LRUCache[str, bool] = LRUCache(_READ)
        self._overlays: weakref.WeakSet[Overlay] = weakref.WeakSet()

    async def _read_ahead(self, texts: list[str]) -> None:
        """Read what a search of these texts needs of a base; a text that is long is seldom searched for by words."""
        if hasattr(self.index, "ahead") or hasattr(self.words, "ahead"):
            await asyncio.gather(*(self._read_one(text) for text in set(texts) if not self._read.get(text)))

    async def _read_one(self, text: str) -> None:
        near: list[Hit] = []
        if (ahead := getattr(self.index, "ahead", None)) is not None:
            depth = DEPTH if self.kind == "hybrid" else FIRST
            near = await asyncio.to_thread(ahead, self.embedding(text), depth)
        words: Any = self.words
        if hasattr(words, "ahead") and len(text) < LONG:
            await asyncio.to_thread(words.ahead, text)
            await asyncio.to_thread(words.read(text, FIRST, [id for id, _ in near]))
        self._read.put(text, True)

    def _near(self, text: str, offset: int, limit: int) -> list[Hit]:
        return self.index.search(self.embedding(text), offset, limit) if offset < len(self.index) else []

    def _words(self) -> WordRanking:
        return self.words

    def put(self, id: str, text: str) -> None:
        vector = None if self.kind == "words" else self.embedding(text)
        self._tell(id)
        if vector is not None:
            self.index.put(id, vector)
        if self.kind != "vectors":
            self.words.put(id, text)

    def remove(self, id: str) -> None:
        self._tell(id)
        if self.kind != "words":
            self.index.remove(id)
        if self.kind != "vectors":
            self.words.remove(id)

    def overlay(self) -> Overlay:
        made = Overlay(self)
        self._overlays.add(made)
        return made

    def _tell(self, id: str) -> None:
        if self._overlays:
            vector = self.index.vector(id) if id in self.index else None
            text = self.words.text(id) if id in self.words else None
            for overlay in self._overlays:
                overlay.keep(id, vector, text)


class Overlay(ServedEngine):
    """The live engine as it was, and what was put or removed here since. The ids in `_apart` are looked up here."""

    def __init__(self, live: LiveEngine) -> None:
        super().__init__(live.embedding, live.kind, live.spread)
        self._live = live
        self._apart: set[str] = set()
        self._own = ExactIndex()
        self._own_words = BM25Index()

    def keep(self, id: str, vector: Vector | None, text: str | None) -> None:
        """The live engine is about to change an id: keep what it was."""
        if id not in self._apart:
            self._apart.add(id)
            if vector is not None:
                self._own.put(id, vector)
            if text is not None:
                self._own_words.put(id, text)

    def put(self, id: str, text: str) -> None:
        self._apart.add(id)
        if self.kind != "words":
            self._own.put(id, self.embedding(text))
        if self.kind != "vectors":
            self._own_words.put(id, text)

    def remove(self, id: str) -> None:
        self._apart.add(id)
        for own in (self._own, self._own_words):
            if id in own:
                own.remove(id)

    def _near(self, text: str, offset: int, limit: int) -> list[Hit]:
        index, own, end = self._live.index, self._own, offset + limit
        if offset >= len(index) + len(own):
            return []
        vector = self.embedding(text)
        hits = visible_hits(lambda end: index.search(vector, 0, end), self._apart, end) if len(index) else []
        return page_of([*hits, *(own.search(vector, 0, end) if len(own) else ())], offset, limit)

    async def _read_ahead(self, texts: list[str]) -> None:
        await self._live._read_ahead(texts)

    def _words(self) -> WordRanking:
        return WordsBefore(self._live.words, self._apart, self._own_words)
