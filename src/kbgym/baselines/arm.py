"""What every arm gives back, what it may be given, and the two functions that put structure into a store.

An arm is built from documents, never from questions or golds. What it makes are authored documents
and links beside originals that keep their text and provenance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kbgym.gym.observations import Observations
from kbgym.search.base import SearchKind
from kbgym.search.embed import Embedder
from kbgym.store import Store, source
from kbgym.worlds.world import Document

# Sentences of every group in, one that sums each up out, or None where a rule is to do it.
Summarise = Callable[[Sequence[Sequence[str]]], Sequence[str | None]]


class Built(msgspec.Struct, frozen=True):
    """A store, what it cost in tokens, and counts of what was built."""

    store: Store
    tokens: int = 0
    notes: Mapping[str, Any] = {}


class Given(msgspec.Struct, frozen=True):
    """Everything an arm could want. Only the oracle looks at `facts`; only RAPTOR asks for the embedder; `summarise` is
    for GraphRAG, where a model is to write what else a rule does."""

    documents: Sequence[Document]
    facts: Mapping[str, Any]
    embedder: Callable[[], Embedder]
    seed: int = 0
    summarise: Summarise | None = None


class Arm(msgspec.Struct, frozen=True):
    """A way to prepare a store, under the name tables show; `engine` is what it is searched by, if that is fixed.

    `observations` is how its store reads where nobody says otherwise: `rich` where only that shows what has links.
    """

    name: str
    label: str
    description: str
    build: Callable[[Given], Built]
    engine: SearchKind | None = None
    observations: Observations | None = None


def flat_store(documents: Iterable[Document]) -> Store:
    """The documents as they stand, with no link."""
    return Store(source(document.id, document.text) for document in documents)


def link_all(store: Store, links: Mapping[str, Iterable[str]]) -> None:
    """Give each document its links, in the order they stand; a document is never linked to itself or twice."""
    for id, targets in links.items():
        store.link(id, targets)
