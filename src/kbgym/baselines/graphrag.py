"""B2, GraphRAG style: communities of entities that occur together, one summary document per community.

Entities are found in the words; two are joined as often as a document names both; Leiden finds the communities, and one
of more than `size` entities is split again. A community's summary links to every document that names one of its
entities. The paper's authors joined people who occur together by union-find until a set had ten members, which makes
communities by the order of the documents and leaves many people alone; Leiden maximises modularity, so dense circles
stay together, and jobs, hobbies and cities are entities too, as GraphRAG has it. Only the smallest communities become
documents: there is no hierarchy of reports.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from kbgym.baselines.arm import Built, Summarise, flat_store
from kbgym.baselines.entities import by_entity, central, mentions, summary
from kbgym.errors import BadInput, Missing
from kbgym.worlds.world import Document

SIZE = 10

Pair = tuple[int, int]


def build(documents: Sequence[Document], size: int = SIZE, seed: int = 0, summarise: Summarise | None = None) -> Built:
    """Add one summary per community, written by `summarise` or else by a rule."""
    read = mentions([document.text for document in documents])
    named = {entity: places for entity, places in by_entity(read).items() if len(places) > 1}
    numbers = {entity: number for number, entity in enumerate(named)}
    entities = list(named)
    together: Counter[Pair] = Counter()
    for mention in read:
        present = sorted(numbers[entity] for entity in mention.entities if entity in numbers)
        together.update(combinations(present, 2))
    communities = leiden(len(entities), together, size, seed)
    store = flat_store(documents)
    groups, texts = [], []
    for community in communities:
        own = {entities[number] for number in community}
        members = sorted({place for entity in own for place in named[entity]})
        order = [entity for entity in central(read[place].entities for place in members) if entity in own]
        groups.append([documents[place] for place in members])
        texts.append(summary(order, len(members)))
    written = summarise([[one.text for one in group] for group in groups]) if summarise else [None] * len(groups)
    for group, text, better in zip(groups, texts, written, strict=True):
        store.link(store.add(better or text), [one.id for one in group])
    notes = {
        **({"written": sum(text is not None for text in written)} if summarise else {}),
        "communities": len(communities),
        "largest": max(map(len, communities), default=0),
        "alone": sum(len(community) == 1 for community in communities),
    }
    return Built(store, notes=notes)


def leiden(nodes: int, edges: Counter[Pair], size: int, seed: int) -> list[list[int]]:
    """Return sorted communities of at most `size` nodes."""
    try:
        import igraph
    except ImportError as error:
        raise Missing("communities need igraph; run: pip install 'kbgym[report]'.") from error
    if size < 1:
        raise BadInput(f"a community has at least one entity, not {size}.")
    if nodes == 0:
        return []
    pairs = sorted(edges)
    graph = igraph.Graph(n=nodes, edges=pairs)
    graph.es["weight"] = [edges[pair] for pair in pairs]
    graph.vs["number"] = list(range(nodes))
    # igraph draws from one generator for the whole process: ours for as long as this takes, then the usual one again.
    igraph.set_random_number_generator(random.Random(f"{seed}:leiden"))
    try:
        found = _split(graph, size)
    finally:
        igraph.set_random_number_generator(random)
    return sorted(sorted(community) for community in found)


def _split(graph: Any, size: int) -> list[list[int]]:
    """Run Leiden, and again at a finer resolution inside each community that is too large."""
    finished: list[list[int]] = []
    waiting = [(graph, 1.0)]
    while waiting:
        part, resolution = waiting.pop()
        if part.vcount() <= size and part is not graph:
            finished.append(part.vs["number"])
            continue
        parts = part.community_leiden("modularity", weights="weight", resolution=resolution, n_iterations=-1)
        finer = resolution * 2 if len(parts) == 1 else 1.0
        waiting += [(part.induced_subgraph(members), finer) for members in parts if members]
    return finished
