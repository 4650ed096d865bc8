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
from kbgym.baselines.arm import Built, flat_store
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


def build_arm(name: str, world: World, embedder: Callable[[], Embedder] = default_embedder, seed: int = 0) -> Built:
    """Build an arm's store for a world. No arm sees the questions; only the oracle uses the world's facts."""
    documents = world.documents
    match arm_named(name).name:
        case "graphrag":
            return graphs.build_graphrag(documents, seed=seed)
        case "hipporag":
            return graphs.build_hipporag(documents)
        case "raptor":
            return graphs.build_raptor(documents, embedder())
        case "lightrag":
            return graphs.build_lightrag(documents)
        case "pages":
            return pages.build(documents)
        case "nostore":  # an exam then measures what a reader knows or guesses
            return Built(Store(), notes={"left_out": len(documents)})
        case "oracle":
            return build_oracle(World(documents, facts=world.facts))
    return Built(flat_store(documents))


def build_oracle(world: World) -> Built:
    indexes = kind_of(world).oracle(world)
    if indexes is None:
        raise BadInput("the oracle needs a world whose facts are known: a generated one, or the paper's universe.")
    store, counts = flat_store(world.documents), Counter[str]()
    for kind, text, members in indexes:
        if members:
            store.link(store.add(text), members)
            counts[kind] += 1
    return Built(store, notes={"indexes": dict(counts)})


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
