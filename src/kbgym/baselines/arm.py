"""Types of the baselines, and the store they start from.

An arm is built from documents, never from questions or golds. It adds authored documents and links; source documents
keep their text and provenance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kbgym.search.embed import Embedder
from kbgym.store import Store, source
from kbgym.worlds.world import Document

# Maps groups of sentences to one summary each, or None to fall back to the rule.
Summarise = Callable[[Sequence[Sequence[str]]], Sequence[str | None]]


class Built(msgspec.Struct, frozen=True):
    """A built store, its cost in tokens, and counts for the report."""

    store: Store
    tokens: int = 0
    notes: Mapping[str, Any] = {}


class Given(msgspec.Struct, frozen=True):
    """Inputs of an arm. Only the oracle uses `facts`, only RAPTOR the embedder, only GraphRAG `summarise`."""

    documents: Sequence[Document]
    facts: Mapping[str, Any]
    embedder: Callable[[], Embedder]
    seed: int = 0
    summarise: Summarise | None = None


def flat_store(documents: Iterable[Document]) -> Store:
    """Return a store of the documents without links."""
    return Store(source(document.id, document.text) for document in documents)
