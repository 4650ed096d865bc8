"""Search indexes over a base in a database with later changes on top: one of vectors and one of words.

Texts of the base that were changed or removed are hidden; new texts are indexed in memory. Rankings equal those of an
index in memory of all visible texts, except for hits that an HNSW graph or the full-text index misses. Reads from the
base are cached, so `ahead` may prefetch them in another thread before a search that must not block.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kbgym.backends.postgres import vectors
from kbgym.backends.postgres.vectors import PgVectorIndex
from kbgym.backends.postgres.words import DatabaseWords
from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind
from kbgym.search.bm25 import BM25Index
from kbgym.search.embed import CachedEmbedder
from kbgym.search.factory import index_kind
from kbgym.search.index import BESIDE, ExactIndex, Hit, KeptIndex, page_of, visible_hits
from kbgym.search.terms import terms
from kbgym.search.words import KeptWords, Weighed, WordPart, scores_in_parts, search_parts, weigh

if TYPE_CHECKING:
    from kbgym.backends.postgres.base import DatabaseBase

_BATCH = 5_000  # texts of a base read with one query


def layered_indexes(
    base: DatabaseBase,
    gone: Sequence[str],
    changed: Sequence[tuple[str, str]],
    embedder: CachedEmbedder,
    search: SearchKind,
    tick: ProgressCallback | None = None,
) -> tuple[KeptIndex, KeptWords | None]:
    """Return an index of vectors and one of words over a base with changes on top; one that is not used is empty."""
    index: KeptIndex = ExactIndex(embedder.dimensions)
    words: KeptWords | None = None
    if search != "words":
        graph = index_kind(len(base), vectors.EXACT_UP_TO) == "approximate"
        index = LayeredIndex(base, PgVectorIndex(base, embedder, graph, tick), embedder.dimensions)
        texts = [text for _, text in changed]
        index.begin(gone, [id for id, _ in changed], embedder.embed(texts, tick if texts else None))
    if search != "vectors":
        words = LayeredWords(base, DatabaseWords(base, tick))
        words.begin(gone, changed)
    return index, words


class LayeredIndex:
    """Vectors in the database, and those in memory on top. It implements `KeptIndex`."""

    def __init__(self, base: DatabaseBase, vectors: PgVectorIndex, dimensions: int) -> None:
        self._base, self._vectors = base, vectors
        self._hidden: set[str] = set()
        self._own = ExactIndex(dimensions)

    def begin(self, gone: Iterable[str], ids: Sequence[str], vectors: ArrayLike) -> None:
        """Apply earlier changes; `gone` are all ids of the base among them."""
        self._hidden.update(gone)
        self._own.put_many(ids, vectors, own=True)

    def __len__(self) -> int:
        return len(self._base) - len(self._hidden) + len(self._own)

    def __contains__(self, id: object) -> bool:
        return id in self._own or (isinstance(id, str) and self._below(id))

    def _below(self, id: str) -> bool:
        """Return True if an id is visible unchanged in the base."""
        return id not in self._hidden and id not in self._own and self._base.text(id) is not None

    def put(self, id: str, vector: ArrayLike) -> None:
        below = self._below(id)
        self._own.put(id, vector)
        if below:
            self._hidden.add(id)

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        self._own.put_many(ids, vectors, own)
        self._hidden.update(self._base.numbers(ids))

    def remove(self, id: str) -> None:
        """Remove an id. Raise KeyError if it is unknown."""
        if id in self._own:
            self._own.remove(id)
        elif self._below(id):
            self._hidden.add(id)
        else:
            raise KeyError(id)

    def vector(self, id: str) -> NDArray[np.float32]:
        """Return a copy of the vector of an id. Raise KeyError if it is unknown."""
        if id in self._own:
            return self._own.vector(id)
        if id in self._hidden:
            raise KeyError(id)
        return self._vectors.vector(id)

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        if offset < 0 or limit <= 0:
            return self._vectors.search(vector, offset, limit)  # an empty page, or an error
        end = offset + limit
        below = visible_hits(lambda end: self._vectors.search(vector, 0, end), self._hidden, end)
        return page_of([*below, *self._own.search(vector, 0, end)], offset, limit)

    def ahead(self, vector: ArrayLike, end: int) -> list[Hit]:
        """Prefetch the base's first hits into the cache, in any thread."""
        return self._vectors.search(vector, 0, end + BESIDE)


class LayeredWords:
    """Words in the database, and texts in memory on top. It implements `KeptWords`."""

    def __init__(self, base: DatabaseBase, words: DatabaseWords) -> None:
        self._base, self._words = base, words
        self._hidden, self._own = BM25Index(), BM25Index()

    def begin(self, gone: Sequence[str], changed: Iterable[tuple[str, str]]) -> None:
        """Apply earlier changes; `gone` are all ids of the base among them."""
        for at in range(0, len(gone), _BATCH):
            self._base.fetch(gone[at : at + _BATCH])
            self._hide(gone[at : at + _BATCH])
        self._own.load(changed)

    def __len__(self) -> int:
        return len(self._base) - len(self._hidden) + len(self._own)

    def __contains__(self, id: object) -> bool:
        return id in self._own or (isinstance(id, str) and self._below(id) is not None)

    def _below(self, id: str) -> str | None:
        """Return the text of an id that is visible unchanged in the base."""
        return None if id in self._hidden or id in self._own else self._base.text(id)

    def text(self, id: str) -> str:
        """Return the text under an id. Raise KeyError if there is none."""
        text = self._own.text(id) if id in self._own else self._below(id)
        if text is None:
            raise KeyError(id)
        return text

    def load(self, items: Iterable[tuple[str, str]], tick: ProgressCallback | None = None) -> None:
        for id, text in items:
            self.put(id, text)

    def put(self, id: str, text: str) -> None:
        """Add a text or replace the one under this id."""
        self._hide([id])
        self._own.put(id, text)

    def remove(self, id: str) -> None:
        """Remove an id. Raise KeyError if it is unknown."""
        if id in self._own:
            self._own.remove(id)
        elif not self._hide([id]):
            raise KeyError(id)

    def _hide(self, ids: Iterable[str]) -> bool:
        """Hide texts of the base; return False if none of them was visible."""
        found = {id: text for id in ids if (text := self._below(id)) is not None}
        self._hidden.load(found.items())
        return bool(found)

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        """Return a page of (id, score), best first, ties by id; texts without a term of the query are no hits."""
        return search_parts(self.parts(), query, offset, limit)

    def scores(self, query: str, ids: Sequence[str]) -> list[float]:
        """Return the scores of texts in the order of their ids; 0 if unknown or without a shared term."""
        return scores_in_parts(self.parts(), query, ids)

    def parts(self, apart: Collection[str] = ()) -> list[WordPart]:
        """Return all texts except those under the ids `apart`."""
        hidden = [self._hidden]
        if besides := {id: text for id in apart if (text := self._below(id)) is not None}:
            hidden.append(BM25Index())
            hidden[1].load(besides.items())
        return [_BasePart(self._words, hidden), *self._own.parts(apart)]

    def ahead(self, query: str) -> None:
        """Prefetch the counts needed to weigh a query, in any thread."""
        self._words.document_frequency(terms(query))

    def read(self, query: str, end: int, ids: Sequence[str]) -> Callable[[], None]:
        """Return a function that reads a query's first hits in the base and the scores of some texts, in any thread."""
        weighed = weigh(self.parts(), query)

        def read() -> None:
            self._words.top_k(weighed, end, self._hidden.__contains__)
            self._words.score(weighed, ids)

        return read


class _BasePart:
    """The visible texts of a base; `hidden` indexes the others. It implements `WordPart`."""

    def __init__(self, words: DatabaseWords, hidden: Sequence[BM25Index]) -> None:
        self._words = words
        self._indexes = hidden
        self._parts = [part for index in hidden for part in index.parts()]

    def size(self) -> tuple[int, int]:
        (count, total), less = self._words.size(), [part.size() for part in self._parts]
        return count - sum(count for count, _ in less), total - sum(total for _, total in less)

    def document_frequency(self, terms: Sequence[str]) -> list[int]:
        less = [part.document_frequency(terms) for part in self._parts]
        return [held - sum(hidden) for held, *hidden in zip(self._words.document_frequency(terms), *less, strict=True)]

    def top_k(self, weighed: Weighed, end: int) -> list[Hit]:
        return self._words.top_k(weighed, end, self._is_hidden)

    def score(self, weighed: Weighed, ids: Sequence[str]) -> dict[str, float]:
        return self._words.score(weighed, [id for id in ids if not self._is_hidden(id)])

    def _is_hidden(self, id: str) -> bool:
        return any(id in index for index in self._indexes)
