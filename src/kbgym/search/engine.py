"""Search over texts: an embedder and an index kept in step, so that what is put is found by the very next query.

It knows ids and texts; what a document, a link or a world is, it does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kbgym.search.embed import CachedEmbedder, Embedder, Tick
from kbgym.search.index import ExactIndex, Hit, VectorIndex

# Whoever pages asks for the same ranking again: ten pages cost one pass over the matrix.
_AHEAD = 50
_RANKINGS = 256


class Engine:
    """What an environment searches with; it fits `TextIndex`."""

    def __init__(self, embedder: Embedder, index: VectorIndex | None = None) -> None:
        self.embedder = embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
        self.index: VectorIndex = ExactIndex(embedder.dimensions) if index is None else index
        self._ranked: dict[str, list[Hit]] = {}

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, id: object) -> bool:
        return id in self.index

    def load(self, items: Iterable[tuple[str, str]], tick: Tick | None = None) -> None:
        """Put many texts at once; `tick` is told how far the embedding has come."""
        pairs = list(items)
        vectors = self.embedder.embed([text for _, text in pairs], tick)
        self.index.put_many([id for id, _ in pairs], vectors, own=True)
        self._ranked.clear()

    def put(self, id: str, text: str) -> None:
        """Add a text or replace the one under this id."""
        self.index.put(id, self.embedder.embed([text])[0])
        self._ranked.clear()

    def remove(self, id: str) -> None:
        """Forget an id; KeyError where it is unknown."""
        self.index.remove(id)
        self._ranked.clear()

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        """A page of (id, cosine), nearest first, ties by id; [] past the last page."""
        if offset >= len(self.index):
            return []
        if min(offset, limit) < 0 or offset + limit > _AHEAD:
            return self.index.search(self.embedder.embed([query])[0], offset, limit)
        ranked = self._ranked.get(query)
        if ranked is None:
            if len(self._ranked) >= _RANKINGS:
                self._ranked.clear()
            ranked = self._ranked[query] = self.index.search(self.embedder.embed([query])[0], 0, _AHEAD)
        return ranked[offset : offset + limit]

    def nearest(self, text: str, limit: int, exclude: Collection[str] = ()) -> list[Hit]:
        """The nearest texts, those under the excluded ids left out."""
        left_out = {id for id in exclude if id in self.index}
        found = self.search(text, 0, limit + len(left_out))
        return [(id, score) for id, score in found if id not in left_out][:limit]

    async def prepare(self, texts: Iterable[str]) -> None:
        """Nothing: texts are embedded when they are used."""
