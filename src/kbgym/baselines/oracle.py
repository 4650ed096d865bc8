"""The oracle index: every index a perfect curator could ever build, made from the world's facts. The ceiling.

A hub for every person linked to all documents about them; an index for every job, hobby and city, and for each person's
friends, children and grandchildren. It sees facts, so it is no baseline: it says how much structure can give at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kbgym.baselines.arm import Built, flat_store
from kbgym.errors import BadInput
from kbgym.worlds.people.graph import Fact, Graph
from kbgym.worlds.people.population import Person
from kbgym.worlds.people.sentences import fact_ids
from kbgym.worlds.world import Document

ATTRIBUTES = {
    "job": "People whose job is {}",
    "hobby": "People whose hobby is {}",
    "city": "People who live in the city of {}",
}
RELATIONS = ("Friends of {}", "Children of {}", "Grandchildren of {}")


def build(documents: Sequence[Document], facts: Mapping[str, Any]) -> Built:
    if facts.get("kind") != "people":
        raise BadInput("the oracle needs a world whose facts are known: a generated one, or the paper's universe.")
    graph = Graph.from_facts(facts)
    told = fact_ids(documents)
    store = flat_store(documents)
    counts: dict[str, int] = {}
    about: dict[str, list[str]] = {}
    for document in documents:
        for person in document.about:
            about.setdefault(person, []).append(document.id)
    for kind, text, members in _indexes(graph, told, about):
        if members:
            store.link(store.add(text), members)
            counts[kind] = counts.get(kind, 0) + 1
    return Built(store, notes={"indexes": counts})


def _indexes(
    graph: Graph, told: Mapping[Fact, str], about: Mapping[str, list[str]]
) -> Iterator[tuple[str, str, list[str]]]:
    """(kind, text, members) of each index."""
    for kind, text in ATTRIBUTES.items():
        for (value,), people in sorted(graph.members((kind,)).items()):
            yield kind, text.format(value), [told[kind, person.id] for person in people]
    for person in graph.people:
        yield "person", person.name, about.get(person.id, [])
        for text, facts in zip(RELATIONS, _relations(graph, person), strict=True):
            yield text.partition(" ")[0].lower(), text.format(person.name), [told[fact] for fact in facts]


def _relations(graph: Graph, person: Person) -> tuple[list[Fact], list[Fact], list[Fact]]:
    """What tells a person's friends, children and grandchildren, the last by their own parents' documents."""
    grandchildren = [fact for child in person.children for fact in graph.childhood(child)]
    return graph.friendships(person.id), graph.childhood(person.id), grandchildren
