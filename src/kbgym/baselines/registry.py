"""Registry of arms, and the functions that build and search them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kbgym.baselines import graphs, pages, raptor
from kbgym.baselines.arm import Arm, Built, Given, Summarise, flat_store
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind
from kbgym.search.embed import CachedEmbedder, Embedder, default_embedder
from kbgym.search.engine import Beside, Engine
from kbgym.search.factory import engine_for
from kbgym.store import Store
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Document, World


def build_flat(documents: Sequence[Document]) -> Built:
    """Build B1, the untrained store: no links, no cost."""
    return Built(flat_store(documents))


def build_empty(documents: Sequence[Document]) -> Built:
    """Build an empty store, which measures what a reader knows or guesses without documents."""
    return Built(Store(), notes={"left_out": len(documents)})


def build_oracle(documents: Sequence[Document], facts: Mapping[str, Any]) -> Built:
    world = World(tuple(documents), facts=facts)
    indexes = kind_of(world).oracle(world)
    if indexes is None:
        raise BadInput("the oracle needs a world whose facts are known: a generated one, or the paper's universe.")
    store = flat_store(documents)
    counts: dict[str, int] = {}
    for kind, text, members in indexes:
        if members:
            store.link(store.add(text), members)
            counts[kind] = counts.get(kind, 0) + 1
    return Built(store, notes={"indexes": counts})


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("flat", "B1 flat", "the documents as they stand, no link", lambda given: build_flat(given.documents)),
        Arm(
            "graphrag",
            "B2 GraphRAG style",
            "a summary for every Leiden community of entities that occur together",
            lambda given: graphs.build_graphrag(given.documents, seed=given.seed, summarise=given.summarise),
        ),
        Arm(
            "hipporag",
            "B3 HippoRAG-2 style",
            "links between documents naming the same person, a hub for every entity",
            lambda given: graphs.build_hipporag(given.documents),
        ),
        Arm(
            "hipporag-ppr",
            "B3 ordered by PageRank",
            "as hipporag, each document's links ordered by Personalized PageRank",
            lambda given: graphs.build_hipporag(given.documents, order="pagerank"),
        ),
        Arm(
            "raptor",
            "RAPTOR style",
            "clusters of near documents summarised, and the summaries again",
            lambda given: raptor.build(given.documents, given.embedder()),
        ),
        Arm(
            "lightrag",
            "LightRAG style",
            "a document for every entity and every relation of an entity",
            lambda given: graphs.build_lightrag(given.documents),
        ),
        Arm(
            "pages",
            "Pages",
            "a page's first sentence links to the rest of the page and to the pages that it names",
            lambda given: pages.build(given.documents),
            observations="rich",
        ),
        Arm(
            "bm25",
            "BM25",
            "the flat store searched by words instead of vectors",
            lambda given: build_flat(given.documents),
            engine="words",
        ),
        Arm("nostore", "No store", "no documents at all", lambda given: build_empty(given.documents)),
        Arm(
            "oracle",
            "Oracle index",
            "every one-step and two-step index, from the world's facts, without a question",
            lambda given: build_oracle(given.documents, given.facts),
        ),
    )
}


def arm_named(name: str) -> Arm:
    if name not in ARMS:
        raise BadInput(f"there is no arm {name!r}; there are {', '.join(ARMS)}.")
    return ARMS[name]


def build_arm(
    name: str,
    world: World,
    embedder: Callable[[], Embedder] = default_embedder,
    seed: int = 0,
    summarise: Summarise | None = None,
) -> Built:
    """Build an arm's store for a world. No arm sees the questions."""
    return arm_named(name).build(Given(world.documents, world.facts, embedder, seed, summarise))


def engine_for_arm(
    name: str,
    store: Store,
    embedder: Embedder,
    tick: ProgressCallback | None = None,
    search: SearchKind = "vectors",
    beside: Beside | None = None,
    brief: bool = False,
) -> Engine:
    """Return the search engine of an arm's store with all documents loaded."""
    cached = embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
    return engine_for(store, cached, tick, arm_named(name).engine or search, beside, brief)
