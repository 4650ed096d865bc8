"""What a search runs on: vectors, words or both; for vectors the exact index up to a size, then the approximate.

Below that size a run is the same bytes every time, and one pass over all vectors is cheap; above it the pass takes
longer than everything else an action does. `KBGYM_INDEX=exact` or `=approximate` forces either.
Texts lie in memory; or most lie in a database as a base, read when asked for, with what was changed since on top. It
knows ids and texts.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from kbgym.backends.hnsw.graph import INSTALL, installed
from kbgym.errors import BadInput, Missing
from kbgym.progress import ProgressCallback
from kbgym.search.base import SEARCHES, SearchKind, TextBase
from kbgym.search.bm25 import BM25Index
from kbgym.search.embed import CachedEmbedder
from kbgym.search.engine import Engine
from kbgym.search.index import ExactIndex, KeptIndex, VectorIndex
from kbgym.search.ranking import Spread
from kbgym.search.words import KeptWords

if TYPE_CHECKING:
    from kbgym.search.live import Embedding, LiveEngine

Kind = Literal["exact", "approximate"]

VARIABLE = "KBGYM_INDEX"
# Measured (benchmarks/RESULTS.md, scale): an exact search of so many takes about 15 ms, three times an embedding.
THRESHOLD = 100_000


def wanted_kind(count: int, threshold: int) -> Kind:
    """The index for so many texts, unless one is forced."""
    forced = os.environ.get(VARIABLE, "")
    if forced not in ("", "exact", "approximate"):
        raise BadInput(f"{VARIABLE} is {forced!r}; use exact or approximate.")
    return "exact" if forced == "exact" or (not forced and count < threshold) else "approximate"


def kind_for(count: int) -> Kind:
    """The index for so many texts; a large store without the extra runs on the exact one, with a warning."""
    if wanted_kind(count, THRESHOLD) == "exact":
        return "exact"
    if installed():
        return "approximate"
    if os.environ.get(VARIABLE):
        raise Missing(f"the approximate index is not installed; run `{INSTALL}`.")
    warnings.warn(
        f"{count:,} documents are searched one by one, which is slow; `{INSTALL}` makes it fast.", stacklevel=3
    )
    return "exact"


def index_of(
    items: Iterable[tuple[str, str]],
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    brief: bool = False,
) -> KeptIndex:
    """An index that holds every text, of the kind that suits their number.

    `brief` is for who searches a few times: a graph that is not there yet takes as long as some thousand exact passes.
    """
    pairs = list(items)
    ids, texts = [id for id, _ in pairs], [text for _, text in pairs]
    if kind_for(len(pairs)) == "approximate":
        from kbgym.backends.hnsw.index_files import open_index, peek

        if not brief or os.environ.get(VARIABLE) or peek(texts, embedder.name) is not None:
            return open_index(ids, texts, embedder, tick)
    index = ExactIndex(embedder.dimensions)
    index.put_many(ids, embedder.embed(texts, tick), own=True)
    return index


def engine_of(
    items: Iterable[tuple[str, str]],
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    search: SearchKind = "vectors",
    spread: Spread | None = None,
    brief: bool = False,
    base: TextBase | None = None,
    gone: Iterable[str] = (),
) -> Engine:
    """An engine that holds every text, on the index that suits their number and how often it is searched.

    With a base the items are what was put since, and `gone` are the ids of the base that were changed or removed.
    """
    if base is not None:
        index, words = _layered(base, list(items), list(gone), embedder, tick, search)
        return Engine(embedder, index, search, spread, words)
    pairs = list(items)
    return engine_on(_vectors(pairs, embedder, tick, search, brief), pairs, embedder, search, spread, tick)


def engine_on(
    index: VectorIndex,
    items: Iterable[tuple[str, str]],
    embedder: CachedEmbedder,
    search: SearchKind = "vectors",
    spread: Spread | None = None,
    tick: ProgressCallback | None = None,
) -> Engine:
    """An engine on an index that holds the vectors of every text already."""
    engine = Engine(embedder, index, search, spread)
    if engine.words is not None:
        engine.words.load(items, tick)
    return engine


def live_engine(
    items: Iterable[tuple[str, str]],
    embedding: Embedding,
    tick: ProgressCallback | None = None,
    search: SearchKind = "vectors",
    spread: Spread | None = None,
    base: TextBase | None = None,
    gone: Iterable[str] = (),
) -> LiveEngine:
    """The same for a process that serves many."""
    from kbgym.search.live import LiveEngine

    if base is not None:
        index, kept = _layered(base, list(items), list(gone), embedding.embedder, tick, search)
        return LiveEngine(index, embedding, search, kept, spread)
    pairs = list(items)
    words = BM25Index()
    if search != "vectors":
        words.load(pairs, tick)
    return LiveEngine(_vectors(pairs, embedding.embedder, tick, search), embedding, search, words, spread)


def _vectors(
    pairs: list[tuple[str, str]],
    embedder: CachedEmbedder,
    tick: ProgressCallback | None,
    search: SearchKind,
    brief: bool = False,
) -> KeptIndex:
    return index_of(() if search_named(search) == "words" else pairs, embedder, tick, brief)


def _layered(
    base: TextBase,
    changed: list[tuple[str, str]],
    gone: list[str],
    embedder: CachedEmbedder,
    tick: ProgressCallback | None,
    search: SearchKind,
) -> tuple[KeptIndex, KeptWords | None]:
    """A base and what was changed since, by vectors, by words or by both; what is not wanted is empty."""
    from kbgym.backends.postgres.layered import LayeredIndex, LayeredWords
    from kbgym.backends.postgres.vectors import EXACT_UP_TO, PgVectorIndex
    from kbgym.backends.postgres.words import DatabaseWords

    index: KeptIndex = ExactIndex(embedder.dimensions)
    words: KeptWords | None = None
    if search_named(search) != "words":
        graph = wanted_kind(len(base), EXACT_UP_TO) == "approximate"
        index = LayeredIndex(base, PgVectorIndex(base, embedder, graph, tick), embedder.dimensions)
        texts = [text for _, text in changed]
        index.begin(gone, [id for id, _ in changed], embedder.embed(texts, tick if texts else None))
    if search != "vectors":
        words = LayeredWords(base, DatabaseWords(base, tick))
        words.begin(gone, changed)
    return index, words


def search_named(name: object) -> SearchKind:
    found = next((search for search in SEARCHES if search == name), None)
    if found is None:
        raise BadInput(f"there is no search by {name!r}; use {', '.join(SEARCHES[:-1])} or {SEARCHES[-1]}.")
    return found
