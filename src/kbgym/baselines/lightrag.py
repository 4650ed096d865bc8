"""LightRAG style: a document for every entity and one for every relation of an entity, linked to their sources.

LightRAG searches a graph's nodes and edges as texts of their own and returns the passages behind them. Here a node is
the bare entity and an edge the relation seen from one end ("friend of Ann Bly"), as soon as two documents speak of it.
Entities also link to their relations.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbgym.baselines.arm import Built, flat_store
from kbgym.baselines.entities import Entity, Mention, by_entity, mentions
from kbgym.baselines.hipporag import hub_text
from kbgym.worlds.world import Document

Relation = tuple[Entity, str]  # whose, and how it is said


def build(documents: Sequence[Document]) -> Built:
    read = mentions([document.text for document in documents])
    entities = {entity: places for entity, places in by_entity(read).items() if len(places) > 1}
    relations = _relations(read)
    store = flat_store(documents)
    ids = [document.id for document in documents]
    relation_ids: dict[Entity, list[str]] = {}
    for (entity, text), places in relations.items():
        id = store.add(text)
        store.link(id, [ids[place] for place in places])
        relation_ids.setdefault(entity, []).append(id)
    for entity, places in entities.items():
        store.link(store.add(hub_text(entity)), [*(ids[place] for place in places), *relation_ids.get(entity, ())])
    # No document for two entities alone: it would repeat the one sentence it comes from.
    return Built(store, notes={"entities": len(entities), "relations": len(relations), "pairs": 0})


def _relations(read: Sequence[Mention]) -> dict[Relation, list[int]]:
    """Map each relation of an entity to its documents, if there are at least two."""
    found: dict[Relation, dict[int, None]] = {}
    for place, mention in enumerate(read):
        for triple in mention.triples:
            subject, relation = triple.subject, triple.relation
            text = f"{subject.name} {relation}" if triple.verb else f"{relation} of {subject.name}"
            found.setdefault((subject, text), {})[place] = None
    return {relation: list(places) for relation, places in found.items() if len(places) > 1}
