"""The people universe: `generate` makes a world, `pool` lists everything a template could ask in it.

A world is rebuilt from its seed, and its pools from its facts; the rest of the package sees only `World` values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kbgym.worlds.people.graph import PeopleGraph
from kbgym.worlds.people.population import Person, population
from kbgym.worlds.people.questions import draw, question
from kbgym.worlds.people.sentences import fact_ids, write
from kbgym.worlds.people.templates import TEMPLATES, Template, template_named
from kbgym.worlds.splits import Sizes
from kbgym.worlds.world import Question, World

__all__ = [
    "NO_QUESTIONS",
    "TEMPLATES",
    "PeopleGraph",
    "Person",
    "Sizes",
    "Template",
    "generate",
    "pool",
    "template_named",
]

NO_QUESTIONS = Sizes(0, 0, 0, 0, 0)


def generate(people: int = 500, seed: int = 0, sizes: Sizes | None = None, jobs: int | None = None) -> World:
    """A world of so many people. The same arguments give the same bytes everywhere."""
    persons = population(people, seed, jobs)
    documents = write(persons)
    questions = draw(PeopleGraph(persons), fact_ids(documents), sizes or Sizes(), seed)
    facts = {"kind": "people", "seed": seed, "people": [_plain(person) for person in persons]}
    return World(documents=documents, questions=questions, facts=facts)


def pool(world: World, template: str) -> Iterator[Question]:
    """Every instance of a template, lazily, as a question of the split "pool"."""
    chosen = template_named(template)
    graph, documents = PeopleGraph.from_facts(world.facts), fact_ids(world.documents)
    return (question(graph, documents, chosen, slots, "", "pool") for slots in chosen.instances(graph))


def _plain(person: Person) -> dict[str, Any]:
    """A person as plain JSON values, the same before saving and after loading."""
    plain: dict[str, Any] = msgspec.to_builtins(person)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}
