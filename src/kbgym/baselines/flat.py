"""The arms without structure: B1, the documents as they stand; the same searched by words; and no documents at all."""

from __future__ import annotations

from collections.abc import Sequence

from kbgym.baselines.arm import Built, flat_store
from kbgym.search.bm25 import BM25Index
from kbgym.search.index import Hit
from kbgym.store import Store
from kbgym.worlds.world import Document


def build(documents: Sequence[Document]) -> Built:
    """B1, the untrained store: no link, no cost."""
    return Built(flat_store(documents))


def nothing(documents: Sequence[Document]) -> Built:
    """The no-store arm: every search comes back empty, so what is scored is what a reader knew, or guessed."""
    return Built(Store(), notes={"left_out": len(documents)})


class WordEngine(BM25Index):
    """BM25 where an environment expects an engine."""

    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[Hit]:
        """Nothing: a BM25 score is no cosine, so it proposes no near duplicate; equal texts are caught without it."""
        return []
