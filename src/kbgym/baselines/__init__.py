"""Baselines: stores built from documents alone, and the oracle that bounds them.

`ARMS` lists them by name; `build_arm` builds one for a world; `engine_for_arm` returns its search engine.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from importlib.resources import files

import msgspec

from kbgym.baselines import graphs, pages
from kbgym.baselines.arm import Built, Given, Summarise, flat_store
from kbgym.errors import BadInput
from kbgym.gym.observations import Observations
from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind
from kbgym.search.embed import CachedEmbedder, Embedder, default_embedder
from kbgym.search.engine import Beside, Engine
from kbgym.search.factory import engine_for
from kbgym.store import Store
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import World


class Arm(msgspec.Struct, frozen=True):
    """A way to build a store; `label` is its name in tables. See `arms.toml`."""

    name: str
    label: str
    description: str
    engine: SearchKind | None = None
    observations: Observations | None = None


ARMS = {
    name: msgspec.convert({"name": name, **about}, Arm)
    for name, about in tomllib.loads((files("kbgym.baselines") / "arms.toml").read_text(encoding="utf-8")).items()
}


def arm_named(name: str) -> Arm:
    if name not in ARMS:
        raise BadInput(f"there is no arm {name!r}; there are {', '.join(ARMS)}.")
    return ARMS[name]


def build_flat(given: Given) -> Built:
    """Build B1, the untrained store: no links, no cost."""
    return Built(flat_store(given.documents))


def build_oracle(given: Given) -> Built:
    world = World(tuple(given.documents), facts=given.facts)
    indexes = kind_of(world).oracle(world)
    if indexes is None:
        raise BadInput("the oracle needs a world whose facts are known: a generated one, or the paper's universe.")
    store, counts = flat_store(given.documents), Counter[str]()
    for kind, text, members in indexes:
        if members:
            store.link(store.add(text), members)
            counts[kind] += 1
    return Built(store, notes={"indexes": dict(counts)})


BUILDERS: dict[str, Callable[[Given], Built]] = {
    "flat": build_flat,
    "bm25": build_flat,
    "graphrag": lambda given: graphs.build_graphrag(given.documents, seed=given.seed, summarise=given.summarise),
    "hipporag": lambda given: graphs.build_hipporag(given.documents),
    "raptor": lambda given: graphs.build_raptor(given.documents, given.embedder()),
    "lightrag": lambda given: graphs.build_lightrag(given.documents),
    "pages": lambda given: pages.build(given.documents),
    # Without documents, an exam measures what a reader knows or guesses.
    "nostore": lambda given: Built(Store(), notes={"left_out": len(given.documents)}),
    "oracle": build_oracle,
}


def build_arm(
    name: str,
    world: World,
    embedder: Callable[[], Embedder] = default_embedder,
    seed: int = 0,
    summarise: Summarise | None = None,
) -> Built:
    """Build an arm's store for a world. No arm sees the questions."""
    return BUILDERS[arm_named(name).name](Given(world.documents, world.facts, embedder, seed, summarise))


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
