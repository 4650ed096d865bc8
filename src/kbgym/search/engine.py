"""Search over texts: an embedder and an index kept in step, so that what is put is found by the very next query.

A search goes by vectors, by words or by both; the nearest texts, which duplicates are found by, always go by vectors.
It knows ids and texts; what a document, a link or a world is, it does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind
from kbgym.search.bm25 import BM25Index
from kbgym.search.embed import CachedEmbedder, Embedder
from kbgym.search.hybrid import blend
from kbgym.search.index import ExactIndex, Hit, VectorIndex
from kbgym.search.ranking import Spread
from kbgym.search.words import KeptWords

# Whoever pages asks for the same ranking again: ten pages cost one pass over the matrix.
_AHEAD = 50
_RANKINGS = 256


class Engine:
    """What an environment searches with. With `words` nothing is embedded and no text is near."""

    def __init__(
        self,
        embedder: Embedder,
        index: VectorIndex | None = None,
        kind: SearchKind = "vectors",
        spread: Spread | None = None,
        words: KeptWords | None = None,
    ) -> None:
        self.embedder = embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
        self.index: VectorIndex = ExactIndex(embedder.dimensions) if index is None else index
        self.words: KeptWords | None = None if kind == "vectors" else words if words is not None else BM25Index()
        self.kind = kind
        self.spread = spread
        self._ranked: dict[str, list[Hit]] = {}

    def __len__(self) -> int:
        return len(self.index) if self.words is None else len(self.words)

    def __contains__(self, id: object) -> bool:
        return id in (self.index if self.words is None else self.words)

    def load(self, items: Iterable[tuple[str, str]], tick: ProgressCallback | None = None) -> None:
        """Put many texts at once; `tick` is told how far the embedding has come."""
        pairs = list(items)
        if self.kind != "words":
            vectors = self.embedder.embed([text for _, text in pairs], tick)
            self.index.put_many([id for id, _ in pairs], vectors, own=True)
        if self.words is not None:
            self.words.load(pairs)
        self._ranked.clear()

    def put(self, id: str, text: str) -> None:
        """Add a text or replace the one under this id."""
        if self.kind != "words":
            self.index.put(id, self.embedder.embed([text])[0])
        if self.words is not None:
            self.words.put(id, text)
        self._ranked.clear()

    def remove(self, id: str) -> None:
        """Forget an id; KeyError where it is unknown."""
        if self.kind != "words":
            self.index.remove(id)
        if self.words is not None:
            self.words.remove(id)
        self._ranked.clear()

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        """A page of (id, score), best first, ties by id; [] past the last page. A vector's score is the cosine."""
        ranking = partial(self._page, query)
        return ranking(offset, limit) if self.spread is None else self.spread.page(ranking, offset, limit)

    def _page(self, query: str, offset: int, limit: int) -> list[Hit]:
        if offset >= len(self):
            return []
        if min(offset, limit) < 0 or offset + limit > _AHEAD:
            return self._look(query, offset, limit)
        ranked = self._ranked.get(query)
        if ranked is None:
            if len(self._ranked) >= _RANKINGS:
                self._ranked.clear()
            ranked = self._ranked[query] = self._look(query, 0, _AHEAD)
        return ranked[offset : offset + limit]

    def _look(self, query: str, offset: int, limit: int) -> list[Hit]:
        if self.words is None:
            return self._near(query, offset, limit)
        if self.kind == "words":
            return self.words.search(query, offset, limit)
        return blend(partial(self._near, query), self.words, query, offset, limit)

    def _near(self, text: str, offset: int, limit: int) -> list[Hit]:
        return self.index.search(self.embedder.embed([text])[0], offset, limit)

    def nearest(self, text: str, limit: int, exclude: Collection[str] = ()) -> list[Hit]:
        """The nearest texts by cosine, those under the excluded ids left out."""
        if not len(self.index):
            return []
        left_out = {id for id in exclude if id in self.index}
        found = self._near(text, 0, limit + len(left_out))
        return [(id, score) for id, score in found if id not in left_out][:limit]

    async def prepare(self, texts: Iterable[str]) -> None:
        """Nothing: texts are embedded when they are used."""
