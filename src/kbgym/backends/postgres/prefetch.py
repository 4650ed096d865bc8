"""Prefetching for a search that must not block: the first hits of texts are read in threads and cached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cachetools import LRUCache

from kbgym.search.engine import DEPTH
from kbgym.search.index import Hit
from kbgym.search.live import LONG

if TYPE_CHECKING:
    from kbgym.backends.postgres.vectors import DatabaseIndex
    from kbgym.backends.postgres.words import DatabaseWords
    from kbgym.search.live import EmbeddingQueue

_FIRST = 50  # hits read ahead
_REMEMBERED = 1_024  # texts


class Prefetch:
    """Read the first hits of texts in the indexes of one search."""

    def __init__(self, index: DatabaseIndex | None, words: DatabaseWords | None) -> None:
        self._index, self._words = index, words
        self._read: LRUCache[str, bool] = LRUCache(_REMEMBERED)

    async def __call__(self, texts: Iterable[str], embedding: EmbeddingQueue) -> None:
        await asyncio.gather(*(self._one(text, embedding) for text in set(texts) if not self._read.get(text)))

    async def _one(self, text: str, embedding: EmbeddingQueue) -> None:
        near: list[Hit] = []
        if self._index is not None:
            depth = _FIRST if self._words is None else DEPTH
            near = await asyncio.to_thread(self._index.ahead, embedding(text), depth)
        if self._words is not None and len(text) < LONG:  # long texts are rarely searched for by words
            await asyncio.to_thread(self._words.ahead, text)
            await asyncio.to_thread(self._words.read(text, _FIRST, [id for id, _ in near]))
        self._read[text] = True
