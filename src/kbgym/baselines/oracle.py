"""The oracle index: every index a perfect curator could ever build, made from the world's facts. The ceiling.

The kind of world knows which indexes those are. It sees facts, so it is no baseline: it says how much structure can
give at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kbgym.baselines.arm import Built, flat_store
from kbgym.errors import BadInput
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Document, World


def build(documents: Sequence[Document], facts: Mapping[str, Any]) -> Built:
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
