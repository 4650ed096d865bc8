"""Types of the baselines, and the store they start from.

An arm is built from documents, never from questions or golds. It adds authored documents and links; source documents
keep their text and provenance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kbgym.store import Store, source
from kbgym.worlds.world import Document


class Built(msgspec.Struct, frozen=True):
    """A built store, its cost in tokens, and counts for the report."""

    store: Store
    tokens: int = 0
    notes: Mapping[str, Any] = {}


def flat_store(documents: Iterable[Document]) -> Store:
    """Return a store of the documents without links."""
    return Store(source(document.id, document.text) for document in documents)
