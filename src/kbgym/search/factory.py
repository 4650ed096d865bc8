"""Factory of search engines by vectors, by words or by both, over a store or over texts by id.

Vectors are searched exactly up to `THRESHOLD` documents, because exact search is deterministic and cheap for few
vectors, and by the approximate index of the `hnsw` plugin above it. `KBGYM_INDEX=exact` or `=approximate` forces one
of them. A store whose documents are kept by a backend is searched through the indexes of that backend.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kbgym import plugins
from kbgym.errors import BadInput, Missing
from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind, search_named
from kbgym.search.bm25 import BM25Index, WordIndex
from kbgym.search.embed import CachedEmbedder
from kbgym.search.engine import Beside, Engine
from kbgym.search.index import ExactIndex, VectorIndex
from kbgym.store import Store

if TYPE_CHECKING:
    from kbgym.search.live import LiveEngine

Texts = Store | Iterable[tuple[str, str]]  # a store, or pairs of id and text

VARIABLE = "KBGYM_INDEX"
# Measured (benchmarks/RESULTS.md, scale): exact search of this many takes about 15 ms, three times an embedding.
THRESHOLD = 100_000


def engine_for(
    texts: Texts,
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    search: SearchKind = "vectors",
    beside: Beside | None = None,
    brief: bool = False,
    index: VectorIndex | None = None,
) -> Engine:
    """Return a search engine over every text.

    Args:
        brief: The engine serves only a few searches, so building an approximate index would not pay off.
        index: An index that already holds the vectors of all texts.
    """
    vectors, words = _indexes(texts, embedder, tick, search, brief, index)
    return Engine(embedder, vectors, search, beside, words)


def live_engine_for(
    texts: Texts,
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    search: SearchKind = "vectors",
    beside: Beside | None = None,
) -> LiveEngine:
    """Return an engine for a process with many clients or staged edits, which embeds in threads and has overlays."""
    from kbgym.search.live import EmbeddingQueue, LiveEngine

    index, words = _indexes(texts, embedder, tick, search)
    return LiveEngine(index, EmbeddingQueue(embedder), search, words, beside)


def is_approximate(count: int, threshold: int) -> bool:
    """Return True if this many texts need an approximate index, or the index that `KBGYM_INDEX` forces is one."""
    forced = os.environ.get(VARIABLE, "")
    if forced not in ("", "exact", "approximate"):
        raise BadInput(f"{VARIABLE} is {forced!r}; use exact or approximate.")
    return count >= threshold if not forced else forced == "approximate"


def approximate_plugin(count: int) -> Any | None:
    """Return the plugin that indexes this many texts, or None if they are searched exactly.

    Warn if there are many texts and the plugin's extra is not installed.
    """
    if not is_approximate(count, THRESHOLD):
        return None
    plugin = plugins.load("kbgym.backends", "hnsw")
    if plugin.installed():
        return plugin
    if os.environ.get(VARIABLE):
        raise Missing(f"the approximate index is not installed; run `{plugin.INSTALL}`.")
    warnings.warn(f"an exact search of {count:,} documents is slow; `{plugin.INSTALL}` makes it fast.", stacklevel=3)
    return None


def _indexes(
    texts: Texts,
    embedder: CachedEmbedder,
    tick: ProgressCallback | None,
    search: SearchKind,
    brief: bool = False,
    index: VectorIndex | None = None,
) -> tuple[VectorIndex, WordIndex | None]:
    """Return an index of vectors and one of words; the one that the search does not use is empty or None."""
    kind = search_named(search)
    if isinstance(texts, Store):
        gone, records = texts.since_base()
        pairs = [(record.id, record.text) for record in records]
        if (base := texts.base) is not None:
            found: tuple[VectorIndex, WordIndex | None] = base.indexes(gone, pairs, embedder, kind, tick)
            return found
    else:
        pairs = list(texts)
    words = None if kind == "vectors" else BM25Index()
    if words is not None:
        words.load(pairs, tick)
    if index is not None:
        return index, words
    embedded = [] if kind == "words" else pairs
    ids, contents = [id for id, _ in embedded], [text for _, text in embedded]
    plugin = approximate_plugin(len(embedded))
    # Building the approximate index costs about a thousand exact searches.
    if plugin and (not brief or os.environ.get(VARIABLE) or plugin.peek(contents, embedder.name) is not None):
        return plugin.open_index(ids, contents, embedder, tick), words
    index = ExactIndex(embedder.dimensions)
    index.put_many(ids, embedder.embed(contents, tick), own=True)
    return index, words
