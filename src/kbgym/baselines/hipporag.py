"""B3, HippoRAG-2 style: documents that name the same entity are linked, and every entity gets a hub.

A link runs both ways between every two documents that name the same person (any capitalised name, in a corpus that is
not about people), unless the name stands in more than `crowd` documents; every name, job, hobby, city or other value
named in at least two documents gets one hub, linked to all of them and back. The words decide everything: building
costs no token. HippoRAG's own retrieval, Personalized PageRank, is not part of a store; `order="pagerank"` uses it for
what a store does have, the order in which a read shows a document's links.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from kbgym.baselines.arm import Built, flat_store, link_all
from kbgym.baselines.entities import NAME, Entity, Mention, by_entity, mentions
from kbgym.errors import Missing
from kbgym.worlds.world import Document

CROWD = 40  # a name in more documents than this joins none of them
DAMPING = 0.5  # HippoRAG's value: half of all steps restart, so a walk stays near its origin


def hub_text(entity: Entity) -> str:
    """Return a bare name, or a value after its kind ("job tailor").

    Measured with the reference reader on 274 two-slot questions: this, the bare value, "tailor job", "job is tailor"
    and "People whose job is tailor" all score 1.000, in 4.81 actions (4.84 for the bare value); of the former, this
    one makes the reader read least.
    """
    return entity.name if entity.kind == NAME else f"{entity.kind} {entity.name}"


def build(documents: Sequence[Document], crowd: int = CROWD, order: Literal["corpus", "pagerank"] = "corpus") -> Built:
    """Link documents that share a name and add one hub per entity."""
    read = mentions([document.text for document in documents])
    named = by_entity(read)
    hubs = {entity: places for entity, places in named.items() if len(places) > 1}
    neighbours = _neighbours(read, named, crowd)
    store = flat_store(documents)
    ids = [document.id for document in documents]
    hub_ids = {entity: store.add(hub_text(entity)) for entity in hubs}
    entities = [[entity for entity in mention.entities if entity in hubs] for mention in read]
    if order == "pagerank":
        numbers = {entity: number for number, entity in enumerate(hubs)}
        graph = [[numbers[entity] for entity in some] for some in entities]
        neighbours = rank_neighbours(graph, len(hubs), neighbours)
    pairs = sum(map(len, neighbours))
    link_all(store, {hub_ids[entity]: [ids[place] for place in places] for entity, places in hubs.items()})
    for place, id in enumerate(ids):
        store.link(id, [*(ids[other] for other in neighbours[place]), *(hub_ids[one] for one in entities[place])])
    notes = {
        "hubs": len(hubs),
        "links_between_documents": pairs,
        "links_of_hubs": 2 * sum(map(len, hubs.values())),
        "crowded_names": sum(len(places) > crowd for entity, places in named.items() if entity.kind == NAME),
    }
    return Built(store, notes=notes)


def _neighbours(read: Sequence[Mention], named: dict[Entity, list[int]], crowd: int) -> list[list[int]]:
    """List for each document the others that share a name with it, in corpus order."""
    found: list[set[int]] = [set() for _ in read]
    for entity, places in named.items():
        if entity.kind == NAME and len(places) <= crowd:
            for one, other in combinations(places, 2):
                found[one].add(other)
                found[other].add(one)
    return [sorted(others) for others in found]


def rank_neighbours(
    graph: Sequence[Sequence[int]], entities: int, neighbours: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Sort the neighbours of each document by Personalized PageRank from it, ties in the given order.

    The graph joins documents and entities; `graph[d]` lists the entities that document d names.
    """
    try:
        import igraph
    except ImportError as error:
        raise Missing("ordering links by PageRank needs igraph; run: pip install 'kbgym[report]'.") from error
    first = len(graph)
    edges = [(place, first + entity) for place, some in enumerate(graph) for entity in some]
    walks = igraph.Graph(n=first + entities, edges=edges)
    found: list[list[int]] = []
    for place, others in enumerate(neighbours):
        if len(others) > 1:
            scores = walks.personalized_pagerank(others, directed=False, damping=DAMPING, reset_vertices=[place])
            # Rounded because the last bits of a sum differ between machines.
            others = [others[at] for at in np.argsort(-np.round(scores, 9), kind="stable")]
        found.append(list(others))
    return found
