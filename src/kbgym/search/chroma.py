"""Chroma behind the index seam, in memory, given vectors: the back end the paper used, for comparison.

Its graph search is approximate, so a far neighbour may be missed and what is missed may depend on the order of
insertion; whatever it does find is scored again here and ordered as every index orders. Needs the `chroma` extra
(58 packages, 275 MB), imported only when an index is made. It knows nothing of texts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kbgym.errors import BadInput, Missing
from kbgym.search.index import Hit, page_of

_names = itertools.count()
_AT_ONCE = 5000  # chroma refuses larger batches
_EXTRA = 8  # results asked for beyond a page, so that a tie at its edge is seen
_CLOSE = 1e-6  # nearer than this, chroma's own float32 order is not to be trusted


class ChromaIndex:
    """An ephemeral collection; every instance has one of its own."""

    def __init__(self) -> None:
        try:
            import chromadb
            from chromadb.config import Settings
        except ImportError as error:
            raise Missing("the chroma index is not installed; run `pip install 'kbgym[chroma]'`.") from error
        self._client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
        # Instances of one process share their collections, hence the number.
        self._name = f"kbgym-{next(_names)}"
        self._collection: Any = self._client.create_collection(
            self._name, embedding_function=None, configuration={"hnsw": {"space": "ip"}}
        )
        self._ids: set[str] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:
        return id in self._ids

    def close(self) -> None:
        """Give the collection's memory back."""
        self._client.delete_collection(self._name)

    def put(self, id: str, vector: ArrayLike) -> None:
        self.put_many([id], np.asarray(vector, dtype=np.float32)[None])

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        rows = np.asarray(vectors, dtype=np.float32)
        last = {id: place for place, id in enumerate(ids)}  # chroma refuses an id twice in one call
        unique, places = list(last), list(last.values())
        for start in range(0, len(unique), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            self._collection.upsert(ids=unique[part], embeddings=rows[places[part]])
        self._ids.update(last)

    def remove(self, id: str) -> None:
        """Forget an id; KeyError where it is unknown."""
        self._ids.remove(id)
        self._collection.delete(ids=[id])

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        if offset < 0 or limit < 0:
            raise BadInput(f"no page starts at {offset} with {limit} results.")
        if offset >= len(self) or limit == 0:
            return []
        query = np.asarray(vector, dtype=np.float32)
        end = min(offset + limit, len(self))
        asked = min(end + _EXTRA, len(self))
        while True:
            found = self._collection.query(
                query_embeddings=query[None], n_results=asked, include=["embeddings", "distances"]
            )
            distances = found["distances"][0]
            # Enough is seen when the last result is clearly worse than the page's last, or there is no more.
            if asked == len(self) or len(distances) < asked or distances[-1] > distances[end - 1] + _CLOSE:
                break
            asked = min(asked * 2, len(self))
        rows = np.asarray(found["embeddings"][0], dtype=np.float64)
        scores = (rows * query).sum(axis=1).tolist()
        return page_of(zip(found["ids"][0], scores, strict=True), offset, limit)
