"""The arms without structure: B1, the documents as they stand; the same searched by words; and no documents at all."""

from __future__ import annotations

from collections.abc import Sequence

from kbgym.baselines.arm import Built, flat_store
from kbgym.store import Store
from kbgym.worlds.world import Document


def build(documents: Sequence[Document]) -> Built:
    """B1, the untrained store: no link, no cost."""
    return Built(flat_store(documents))


def nothing(documents: Sequence[Document]) -> Built:
    """The no-store arm: every search comes back empty, so what is scored is what a reader knew, or guessed."""
    return Built(Store(), notes={"left_out": len(documents)})
