"""Every index a perfect curator could build in the people universe, from its facts.

A hub for every person with all documents about them; an index for every job, hobby and city, and for each person's
friends, children and grandchildren.
"""

from __future__ import annotations

from collections.abc import Iterator

from kbgym.worlds.people.graph import PeopleGraph
from kbgym.worlds.people.sentences import fact_ids
from kbgym.worlds.world import World

ATTRIBUTES = {
    "job": "People whose job is {}",
    "hobby": "People whose hobby is {}",
    "city": "People who live in the city of {}",
}


def indexes(world: World) -> Iterator[tuple[str, str, list[str]]]:
    """(kind, text, documents under it) of each index; the last is empty where a person has nobody of that relation."""
    graph, told = PeopleGraph.from_facts(world.facts), fact_ids(world.documents)
    about: dict[str, list[str]] = {}
    for document in world.documents:
        for id in document.about:
            about.setdefault(id, []).append(document.id)
    for kind, text in ATTRIBUTES.items():
        for (value,), people in sorted(graph.members((kind,)).items()):
            yield kind, text.format(value), [told[kind, person.id] for person in people]
    for person in graph.people:
        yield "person", person.name, about.get(person.id, [])
        grandchildren = [fact for child in person.children for fact in graph.childhood(child)]
        relations = {
            "Friends": graph.friendships(person.id),
            "Children": graph.childhood(person.id),
            "Grandchildren": grandchildren,  # told by their own parents' documents
        }
        for relation, facts in relations.items():
            yield relation.lower(), f"{relation} of {person.name}", [told[fact] for fact in facts]
