"""Search for a process that serves many: embedding in a thread, and views of the past that cost nothing to take.

`Embedding` works out vectors beside the event loop, whatever is waiting in one batch. `LiveEngine` is the index of the
store as it is now. `Overlay` is that index as it was when the overlay was made, with changes of its own on top: it
keeps what the live index has changed since, and nothing else. None of them knows stores, clients or traces.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from kbgym.search.embed import CachedEmbedder
from kbgym.search.index import ExactIndex, Hit, page_of

Vector = NDArray[np.float32]

_AT_ONCE = 8  # a text that comes in while a batch is under way waits for no more than this many others


class Embedding:
    """Vectors by text. Only its one thread ever touches the embedder, which is not made for several."""

    def __init__(self, embedder: CachedEmbedder, remember: int = 8_192) -> None:
        self.embedder = embedder
        self._remember = remember
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._wanted: dict[str, asyncio.Future[None]] = {}
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "embedding")

    async def prepare(self, texts: Iterable[str]) -> None:
        """Return once the vectors of these texts are at hand; the loop goes on in the meantime."""
        loop = asyncio.get_running_loop()
        waiting = []
        for text in texts:
            if text in self._known:
                self._known.move_to_end(text)
                continue
            if text not in self._wanted:
                self._wanted[text] = loop.create_future()
            waiting.append(self._wanted[text])
        if waiting:
            if self._worker is None or self._worker.done():
                self._worker = loop.create_task(self._work())
            await asyncio.shield(asyncio.gather(*waiting))

    async def _work(self) -> None:
        while self._wanted:
            texts = list(self._wanted)[:_AT_ONCE]
            futures = [self._wanted[text] for text in texts]
            try:
                vectors = await asyncio.get_running_loop().run_in_executor(self._thread, self.embedder.embed, texts)
            except Exception as error:
                for future in futures:
                    future.set_exception(error)
                    future.exception()  # whoever waited may be gone; that is no unheard error
            else:
                self._keep(texts, vectors)
                for future in futures:
                    future.set_result(None)
            for text in texts:
                del self._wanted[text]

    def _keep(self, texts: list[str], vectors: NDArray[np.float32]) -> None:
        self._known.update(zip(texts, vectors, strict=True))
        while len(self._known) > self._remember:
            self._known.popitem(last=False)

    def __call__(self, text: str) -> Vector:
        """A vector at once; one that was not prepared is waited for."""
        if (vector := self._known.get(text)) is not None:
            return vector
        vectors = self._thread.submit(self.embedder.embed, [text]).result()
        self._keep([text], vectors)
        return self._known[text]

    def close(self) -> None:
        self._thread.shutdown(wait=True)


class LiveEngine:
    """What the live environment searches with; it tells every overlay what it is about to change."""

    def __init__(self, index: ExactIndex, embedding: Embedding) -> None:
        self.index = index
        self.embedding = embedding
        self._overlays: weakref.WeakSet[Overlay] = weakref.WeakSet()

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        return self.index.search(self.embedding(query), offset, limit) if offset < len(self.index) else []

    def nearest(self, text: str, limit: int, exclude: Collection[str] = ()) -> list[Hit]:
        return _nearest(self, text, limit, exclude)

    def put(self, id: str, text: str) -> None:
        vector = self.embedding(text)
        self._tell(id)
        self.index.put(id, vector)

    def remove(self, id: str) -> None:
        self._tell(id)
        self.index.remove(id)

    def overlay(self) -> Overlay:
        made = Overlay(self)
        self._overlays.add(made)
        return made

    def _tell(self, id: str) -> None:
        if self._overlays:
            was = self.index.vector(id) if id in self.index else None
            for overlay in self._overlays:
                overlay.keep(id, was)


class Overlay:
    """The live index as it was, and what was put or removed here since. The ids in `_apart` are looked up here."""

    def __init__(self, live: LiveEngine) -> None:
        self._live = live
        self._apart: set[str] = set()
        self._own = ExactIndex()
        self.embedding = live.embedding

    def keep(self, id: str, was: Vector | None) -> None:
        """The live index is about to change an id: keep what it was."""
        if id not in self._apart:
            self._apart.add(id)
            if was is not None:
                self._own.put(id, was)

    def put(self, id: str, text: str) -> None:
        self._apart.add(id)
        self._own.put(id, self.embedding(text))

    def remove(self, id: str) -> None:
        self._apart.add(id)
        if id in self._own:
            self._own.remove(id)

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        index, apart = self._live.index, self._apart
        if not apart:
            return self._live.search(query, offset, limit)
        hidden = sum(id in index for id in apart)
        if offset >= len(index) - hidden + len(self._own):
            return []
        vector, end = self.embedding(query), offset + limit
        hits = [hit for hit in index.search(vector, 0, end + hidden) if hit[0] not in apart] if len(index) else []
        return page_of([*hits[:end], *(self._own.search(vector, 0, end) if len(self._own) else ())], offset, limit)

    def nearest(self, text: str, limit: int, exclude: Collection[str] = ()) -> list[Hit]:
        return _nearest(self, text, limit, exclude)


def _nearest(engine: LiveEngine | Overlay, text: str, limit: int, exclude: Collection[str]) -> list[Hit]:
    left_out = set(exclude)
    return [hit for hit in engine.search(text, 0, limit + len(left_out)) if hit[0] not in left_out][:limit]
