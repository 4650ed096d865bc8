"""The arms by name, and how one is built for a world and searched."""

from __future__ import annotations

from collections.abc import Callable

from kbgym.baselines import flat, graphrag, hipporag, lightrag, oracle, pages, raptor
from kbgym.baselines.arm import Arm, Built, Given, Summarise
from kbgym.errors import BadInput
from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind
from kbgym.search.embed import CachedEmbedder, Embedder, default_embedder
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for
from kbgym.search.ranking import Spread
from kbgym.store import Store
from kbgym.worlds.world import World

ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("flat", "B1 flat", "the documents as they stand, no link", lambda given: flat.build(given.documents)),
        Arm(
            "graphrag",
            "B2 GraphRAG style",
            "a summary for every Leiden community of entities that occur together",
            lambda given: graphrag.build(given.documents, seed=given.seed, summarise=given.summarise),
        ),
        Arm(
            "hipporag",
            "B3 HippoRAG-2 style",
            "links between documents naming the same person, a hub for every entity",
            lambda given: hipporag.build(given.documents),
        ),
        Arm(
            "hipporag-ppr",
            "B3 ordered by PageRank",
            "as hipporag, each document's links ordered by Personalized PageRank",
            lambda given: hipporag.build(given.documents, order="pagerank"),
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
            lambda given: lightrag.build(given.documents),
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
            lambda given: flat.build(given.documents),
            engine="words",
        ),
        Arm("nostore", "No store", "no documents at all", lambda given: flat.nothing(given.documents)),
        Arm(
            "oracle",
            "Oracle index",
            "every index there could be, from the world's facts: the ceiling",
            lambda given: oracle.build(given.documents, given.facts),
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
    """An arm's store for a world. No arm is given the questions."""
    return arm_named(name).build(Given(world.documents, world.facts, embedder, seed, summarise))


def engine_for_arm(
    name: str,
    store: Store,
    embedder: Embedder,
    tick: ProgressCallback | None = None,
    search: SearchKind = "vectors",
    spread: Spread | None = None,
    brief: bool = False,
) -> Engine:
    """What an arm's store is searched with, every document of it loaded."""
    cached = embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
    return engine_for(store, cached, tick, arm_named(name).engine or search, spread, brief)
