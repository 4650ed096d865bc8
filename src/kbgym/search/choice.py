"""Which index a search runs on: the exact one up to a size, the approximate one above it, or the one that is forced.

Below the size a run is the same bytes every time, and one pass over all vectors is cheap; above it the pass takes
longer than everything else an action does. `KBGYM_INDEX=exact` or `=approximate` forces either. It knows ids and texts.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Literal

from kbgym.errors import BadInput, Missing
from kbgym.search.embed import CachedEmbedder, Tick
from kbgym.search.engine import Engine
from kbgym.search.graph import INSTALL, installed
from kbgym.search.index import ExactIndex, KeptIndex

Kind = Literal["exact", "approximate"]

VARIABLE = "KBGYM_INDEX"
# Measured (benchmarks/RESULTS.md, scale): an exact search of so many takes about 15 ms, three times an embedding.
THRESHOLD = 100_000


def kind_for(count: int) -> Kind:
    """The index for so many texts; a large store without the extra runs on the exact one, with a warning."""
    forced = os.environ.get(VARIABLE, "")
    if forced not in ("", "exact", "approximate"):
        raise BadInput(f"{VARIABLE} is {forced!r}; use exact or approximate.")
    if forced == "exact" or (not forced and count < THRESHOLD):
        return "exact"
    if installed():
        return "approximate"
    if forced:
        raise Missing(f"the approximate index is not installed; run `{INSTALL}`.")
    warnings.warn(
        f"{count:,} documents are searched one by one, which is slow; `{INSTALL}` makes it fast.", stacklevel=3
    )
    return "exact"


def index_of(items: Iterable[tuple[str, str]], embedder: CachedEmbedder, tick: Tick | None = None) -> KeptIndex:
    """An index that holds every text, of the kind that suits their number."""
    pairs = list(items)
    ids, texts = [id for id, _ in pairs], [text for _, text in pairs]
    if kind_for(len(pairs)) == "exact":
        index = ExactIndex(embedder.dimensions)
        index.put_many(ids, embedder.embed(texts, tick), own=True)
        return index
    from kbgym.search.large import open_index

    return open_index(ids, texts, embedder, tick)


def engine_of(items: Iterable[tuple[str, str]], embedder: CachedEmbedder, tick: Tick | None = None) -> Engine:
    """An engine that holds every text, on the index that suits their number."""
    return Engine(embedder, index_of(items, embedder, tick))
