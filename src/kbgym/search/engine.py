"""Search engine by vectors, by words or by both, over an embedder, a vector index and a word index kept in sync.

A hybrid score is two parts cosine and three parts BM25, both scaled to [0, 1]: the cosine between those of the best
`DEPTH` texts (1 for the first, 0 for the last), the BM25 score as a share of the highest. A text that is neither among
the `DEPTH` nor shares a word ranks after all others, by its cosine. Near-duplicates are always found by vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind
from kbgym.search.bm25 import BM25Index, WordIndex
from kbgym.search.embed import CachedEmbedder, Embedder
from kbgym.search.index import ExactIndex, Fetch, Hit, VectorIndex, check_page, page_of

DEPTH = 200
# Weight of the vectors. From 0.3 to 0.5, recall@5 on MuSiQue, HotpotQA, people and PhantomWiki was at least that of the
# better of the two, less 0.003; at 0.55 it was lower on PhantomWiki. Reciprocal rank fusion had a lower recall (0.676
# instead of 0.700 on HotpotQA).
WEIGHT = 0.4

# A reader that pages repeats its query, so ten pages cost one pass over the matrix.
_AHEAD = 50
_RANKINGS = 256
Vector = NDArray[np.float32]
Beside = Mapping[str, tuple[str, ...]]  # the documents before and after a document on its page

RERANKED = 20  # results that a reranker puts in order


def blend(near: Fetch, words: WordIndex, query: str, offset: int, limit: int) -> list[Hit]:
    """Return a page of the hybrid ranking, best first, ties by id."""
    check_page(offset, limit)
    end = offset + limit
    nearest = near(0, DEPTH)
    if not nearest or limit == 0:
        return []
    by_words = words.search(query, 0, max(end, 1))
    most = by_words[0][1] if by_words else 1.0
    low, high = nearest[-1][1], nearest[0][1]
    spread = high - low or 1.0
    found = {id: (1 - WEIGHT) * (score / most) for id, score in by_words}
    shared = words.scores(query, [id for id, _ in nearest])
    for (id, cosine), score in zip(nearest, shared, strict=True):
        found[id] = WEIGHT * ((cosine - low) / spread) + (1 - WEIGHT) * (score / most)
    if len(by_words) < end and len(nearest) == DEPTH:  # no other text shares a word, so the rest ranks by cosine
        for id, cosine in near(0, end + len(found)):
            found.setdefault(id, WEIGHT * ((cosine - low) / spread))
    return page_of(found.items(), offset, limit)


class Engine:
    """The search engine of an environment. Word search embeds nothing and finds no near-duplicates.

    Under the ranking `slot`, index documents are in the separate engine `trained` instead of this one. `beside` are the
    documents before and after each document on its page of the source.
    """

    def __init__(
        self,
        embedder: Embedder,
        index: VectorIndex | None = None,
        kind: SearchKind = "vectors",
        beside: Beside | None = None,
        words: WordIndex | None = None,
    ) -> None:
        self.embedder = embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
        self.kind, self.beside = kind, beside or {}
        self.index: VectorIndex = ExactIndex(embedder.dimensions) if index is None else index
        self.words: WordIndex | None = None if kind == "vectors" else words if words is not None else BM25Index()
        self.trained: Engine | None = None
        self.prefix = self.embedder.prefix
        # It needs texts, which only a word index stores.
        self.reranker = None if kind == "vectors" else self.embedder.reranker
        self._ranked: LRUCache[str, list[Hit]] = LRUCache(_RANKINGS)
        self._reranked: LRUCache[str, list[Hit]] = LRUCache(_RANKINGS)

    # -- documents ----------------------------------------------------------------------------------------------------

    @property
    def _kept(self) -> Any:
        return self.index if self.words is None else self.words

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, id: object) -> bool:
        return id in self._kept

    def ids(self) -> Sequence[str]:
        """Return the ids of this engine, which is the `trained` engine of another."""
        found: Sequence[str] = self._kept.ids
        return found

    def load(self, items: Iterable[tuple[str, str]], tick: ProgressCallback | None = None) -> None:
        """Put many texts at once."""
        pairs = list(items)
        if self.kind != "words":
            vectors = self.embedder.embed([text for _, text in pairs], tick)
            self.index.put_many([id for id, _ in pairs], vectors, own=True)
        if self.words is not None:
            self.words.load(pairs)
        self._forget_rankings()

    def put(self, id: str, text: str) -> None:
        """Add a text or replace the one under this id; the next search finds it."""
        vector = None if self.kind == "words" else self._vector(text)
        self._before_change(id)
        if vector is not None:
            self.index.put(id, vector)
        if self.words is not None:
            self.words.put(id, text)

    def remove(self, id: str) -> None:
        """Remove an id. Raise `KeyError` if it is unknown."""
        self._before_change(id)
        if self.kind != "words":
            self.index.remove(id)
        if self.words is not None:
            self.words.remove(id)

    def set_apart(self, texts: Sequence[tuple[str, str]]) -> None:
        """Move texts into `trained`."""
        self.trained = self._new("words" if self.kind == "words" else "vectors")
        self.trained.load(texts)
        for id, _ in texts:
            self.remove(id)

    def _new(self, kind: SearchKind) -> Engine:
        """Return an empty engine with the same embedder."""
        return Engine(self.embedder, kind=kind)

    def _before_change(self, id: str) -> None:
        self._forget_rankings()

    def _forget_rankings(self) -> None:
        self._ranked.clear()
        self._reranked.clear()

    async def prepare(self, texts: Iterable[str]) -> None:
        """Do nothing, since texts are embedded on use."""

    def overlay(self) -> Engine:
        """Return a search over the current state, isolated from later changes, on which edits can be staged."""
        raise TypeError("only a search made by live_engine_for has overlays")

    def warm(self) -> None:
        """Load the embedding model in the background, if texts are embedded there."""

    def close(self) -> None:
        """End the threads of the search, if it has any."""

    # -- searching ----------------------------------------------------------------------------------------------------

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        """Return a page of (id, score), best first, ties by id; [] past the last page."""
        if self.reranker is None:
            return self._page(query, offset, limit)
        if (first := self._reranked.get(query)) is None:
            ids, texts = self._candidates(query)
            first = self._put_in_order(query, ids, self.reranker.scores(query, texts))
        later = self._page(query, max(offset, RERANKED), limit) if offset + limit > RERANKED else []
        return (first[offset:] + later)[:limit]

    def _page(self, query: str, offset: int, limit: int) -> list[Hit]:
        if offset >= len(self):
            return []
        if min(offset, limit) < 0 or offset + limit > _AHEAD:
            return self._rank(query, offset, limit)
        if (ranked := self._ranked.get(query)) is None:
            ranked = self._ranked[query] = self._rank(query, 0, _AHEAD)
        return ranked[offset : offset + limit]

    def _rank(self, query: str, offset: int, limit: int) -> list[Hit]:
        if self.kind == "words" and self.words is not None:
            return self.words.search(query, offset, limit)
        near = partial(self._near, self.prefix + query)
        return near(offset, limit) if self.words is None else blend(near, self.words, query, offset, limit)

    def _candidates(self, query: str) -> tuple[list[str], list[str]]:
        """Return the ids and texts of the results that a cross-encoder puts in order."""
        ids = [id for id, _ in self._page(query, 0, RERANKED)]
        return ids, [self.words.text(id) for id in ids] if self.words is not None else []

    def _put_in_order(self, query: str, ids: Sequence[str], scores: Sequence[float]) -> list[Hit]:
        self._reranked[query] = page_of(zip(ids, scores, strict=True), 0, RERANKED)
        return self._reranked[query]

    def nearest(self, text: str, limit: int, exclude: Collection[str] = ()) -> list[Hit]:
        """Return the nearest texts by cosine for any kind of search, without the excluded ids."""
        left_out, end = set(exclude), limit + len(exclude)
        hits = self._near(text, 0, end)
        if self.trained is not None:
            hits = page_of([*hits, *self.trained._near(text, 0, end)], 0, end)
        return [hit for hit in hits if hit[0] not in left_out][:limit]

    def match(self, query: str, limit: int) -> list[Hit]:
        """Return the best texts with scores that are comparable between queries.

        A score is the cosine or, in word search, the share of the highest possible score.
        """
        if self.kind == "words" and self.words is not None:
            return self.words.shares(query, limit)
        return self._near(self.prefix + query, 0, limit)

    def _near(self, text: str, offset: int, limit: int) -> list[Hit]:
        return self.index.search(self._vector(text), offset, limit) if offset < len(self.index) else []

    def _vector(self, text: str) -> Vector:
        vector: Vector = self.embedder.embed([text])[0]
        return vector
