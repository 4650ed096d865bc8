"""What a store is searched with: an engine that holds its documents, or what was changed in them over a base."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind, TextBase
from kbgym.search.choice import engine_of, live_engine
from kbgym.search.embed import CachedEmbedder
from kbgym.search.engine import Engine
from kbgym.search.ranking import Spread
from kbgym.store import Store

if TYPE_CHECKING:
    from kbgym.search.live import LiveEngine


def engine_for(
    store: Store,
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    search: SearchKind = "vectors",
    spread: Spread | None = None,
    brief: bool = False,
) -> Engine:
    """A search engine over every document of a store; `brief` is for who searches a few times."""
    gone, texts = _changes(store)
    return engine_of(texts, embedder, tick, search, spread, brief, _base_of(store), gone)


def live_engine_for(
    store: Store,
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    search: SearchKind = "vectors",
    spread: Spread | None = None,
) -> LiveEngine:
    """The same for a process that serves many, or puts edits on trial: one that keeps views of the past."""
    from kbgym.search.live import Embedding

    gone, texts = _changes(store)
    return live_engine(texts, Embedding(embedder), tick, search, spread, _base_of(store), gone)


def _changes(store: Store) -> tuple[list[str], list[tuple[str, str]]]:
    """What is other than in the base: ids that are gone or say something else, and texts by id."""
    gone, now = store.since_base()
    return gone, [(record.id, record.text) for record in now]


def _base_of(store: Store) -> TextBase | None:
    """What keeps a store's documents keeps their texts, too."""
    return cast(TextBase | None, store.base)
