"""Baselines of linked documents and summaries: GraphRAG, HippoRAG, LightRAG and RAPTOR style.

GraphRAG style (B2): edges between entities are weighted by shared documents, Leiden finds communities, and those of
more than `SIZE` entities are split again. A community's summary links to every document that names one of its entities.
The paper's authors joined people by union-find until a set had ten members, which depends on the order of the
documents. Leiden maximises modularity, so dense groups stay together, and jobs, hobbies and cities are entities too.
Only the smallest communities become documents: there is no hierarchy of reports.

HippoRAG style (B3): any two documents that name the same person are linked both ways, unless more than `crowd`
documents name them; every name, job, city or other value in at least two documents has a hub, linked to all of
them and back. HippoRAG's retrieval, Personalized PageRank, is not part of a store.

LightRAG style: every entity and every relation seen from one end ("friend of Ann Bly") is a document if at least two
documents mention it, linked to its sources; entities also link to their relations.

RAPTOR style: similar documents are clustered and summarised, then the summaries, recursively up to a few roots.

Each summary is a document that links to the documents it summarises and is searched like any other. RAPTOR uses soft
clustering with a Gaussian mixture on reduced vectors, and a model writes the summaries. Here a document has one parent,
clusters come from two-means on the search vectors of the store, the vector of a summary is the mean of its documents,
and a rule writes its text.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbgym.baselines.arm import Built, Summarise, flat_store
from kbgym.baselines.entities import NAME, Entity, Mention, by_entity, central, mentions, summary
from kbgym.errors import BadInput, Missing
from kbgym.search.embed import Embedder
from kbgym.worlds.world import Document

SIZE = 10

Pair = tuple[int, int]


def build_graphrag(documents: Sequence[Document], seed: int = 0, summarise: Summarise | None = None) -> Built:
    """Add one summary per community, written by `summarise` or else by a rule."""
    read = mentions([document.text for document in documents])
    named = {entity: places for entity, places in by_entity(read).items() if len(places) > 1}
    numbers = {entity: number for number, entity in enumerate(named)}
    entities = list(named)
    together: Counter[Pair] = Counter()
    for mention in read:
        present = sorted(numbers[entity] for entity in mention.entities if entity in numbers)
        together.update(combinations(present, 2))
    communities = leiden(len(entities), together, SIZE, seed)
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
    # igraph has one generator for the process: use a seeded one here and restore the default afterwards.
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


CROWD = 40  # a name in more documents than this links none of them


def hub_text(entity: Entity) -> str:
    """Return a bare name, or a value after its kind ("job tailor").

    Measured with the reference reader on 274 two-slot questions: this, the bare value, "tailor job", "job is tailor"
    and "People whose job is tailor" all score 1.000, in 4.81 actions (4.84 for the bare value); of the former, this
    one makes the reader read least.
    """
    return entity.name if entity.kind == NAME else f"{entity.kind} {entity.name}"


def build_hipporag(documents: Sequence[Document], crowd: int = CROWD) -> Built:
    """Link documents that share a name and add one hub per entity."""
    read = mentions([document.text for document in documents])
    named = by_entity(read)
    hubs = {entity: places for entity, places in named.items() if len(places) > 1}
    neighbours = _neighbours(read, named, crowd)
    store = flat_store(documents)
    ids = [document.id for document in documents]
    hub_ids = {entity: store.add(hub_text(entity)) for entity in hubs}
    entities = [[entity for entity in mention.entities if entity in hubs] for mention in read]
    for entity, places in hubs.items():
        store.link(hub_ids[entity], [ids[place] for place in places])
    for place, id in enumerate(ids):
        store.link(id, [*(ids[other] for other in neighbours[place]), *(hub_ids[one] for one in entities[place])])
    notes = {
        "hubs": len(hubs),
        "links_between_documents": sum(map(len, neighbours)),
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


Relation = tuple[Entity, str]  # the entity and the wording


def build_lightrag(documents: Sequence[Document]) -> Built:
    read = mentions([document.text for document in documents])
    entities = {entity: places for entity, places in by_entity(read).items() if len(places) > 1}
    relations = _shared_relations(read)
    store = flat_store(documents)
    ids = [document.id for document in documents]
    relation_ids: dict[Entity, list[str]] = {}
    for (entity, text), places in relations.items():
        id = store.add(text)
        store.link(id, [ids[place] for place in places])
        relation_ids.setdefault(entity, []).append(id)
    for entity, places in entities.items():
        store.link(store.add(hub_text(entity)), [*(ids[place] for place in places), *relation_ids.get(entity, ())])
    # No document for a pair of entities: it would repeat its single source sentence.
    return Built(store, notes={"entities": len(entities), "relations": len(relations), "pairs": 0})


def _shared_relations(read: Sequence[Mention]) -> dict[Relation, list[int]]:
    """Map each relation of an entity to its documents, if there are at least two."""
    found: dict[Relation, dict[int, None]] = {}
    for place, mention in enumerate(read):
        for triple in mention.triples:
            subject, relation = triple.subject, triple.relation
            text = f"{subject.name} {relation}" if triple.verb else f"{relation} of {subject.name}"
            found.setdefault((subject, text), {})[place] = None
    return {relation: list(places) for relation, places in found.items() if len(places) > 1}


Vectors = NDArray[np.float32]
_ROUNDS = 12  # of two-means


def build_raptor(documents: Sequence[Document], embedder: Embedder, size: int = SIZE) -> Built:
    """Build the tree bottom-up until a level has no more than `size` nodes."""
    if size < 2:
        raise BadInput(f"a summary has at least two documents under it, not {size}.")
    read = mentions([document.text for document in documents])
    store = flat_store(documents)
    vectors = embedder.embed([document.text for document in documents])
    level = [(document.id, [place]) for place, document in enumerate(documents)]
    levels: list[int] = []
    while len(level) > size:
        sums = np.stack([vectors[under].mean(axis=0) for _, under in level])
        means = np.stack([mean / max(float(np.linalg.norm(mean)), 1e-12) for mean in sums])
        above: list[tuple[str, list[int]]] = []
        for group in clusters(means, size):
            nodes = [level[place] for place in group]
            under = [place for _, places in nodes for place in places]
            id = store.add(summary(central(read[place].entities for place in under), len(under)))
            store.link(id, [id for id, _ in nodes])
            above.append((id, under))
        level = above
        levels.append(len(level))
    return Built(store, notes={"levels": levels})


def clusters(vectors: Vectors, size: int) -> list[list[int]]:
    """Split rows into groups of at most `size` by repeated two-means, without randomness; rows have unit length."""
    finished: list[list[int]] = []
    waiting = [np.arange(len(vectors))] if len(vectors) else []
    while waiting:
        rows = waiting.pop()
        if len(rows) <= size:
            finished.append(sorted(int(row) for row in rows))
            continue
        left = _half(vectors[rows])
        waiting += [rows[left], rows[~left]]
    return sorted(finished)


def _half(rows: Vectors) -> NDArray[np.bool_]:
    """Return a mask of the left half: split along the principal axis, then refine by two-means."""
    centred = rows - rows.mean(axis=0)
    axis = centred[np.argmax((centred * centred).sum(axis=1))]
    for _ in range(_ROUNDS):
        axis = centred.T @ (centred @ axis)
        axis /= max(float(np.linalg.norm(axis)), 1e-30)
    left: NDArray[np.bool_] = centred @ axis > 0
    for _ in range(_ROUNDS):
        if left.all() or not left.any():
            break
        nearer = rows @ (rows[left].mean(axis=0) - rows[~left].mean(axis=0))
        middle = (_square(rows[left]) - _square(rows[~left])) / 2
        again = nearer > middle
        if (again == left).all():
            break
        left = again
    if left.all() or not left.any():  # all rows are equal, so any split is as good
        left = np.arange(len(rows)) < len(rows) // 2
    return left


def _square(rows: Vectors) -> float:
    mean = rows.mean(axis=0)
    return float(mean @ mean)
