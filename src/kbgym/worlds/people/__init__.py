"""The people universe: `generate` makes a world, `pool` lists everything a template could ask in it.

A world is rebuilt from its seed, and its pools from its facts; the rest of the package sees only `World` values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kbgym.errors import BadInput
from kbgym.worlds.people.graph import PeopleGraph
from kbgym.worlds.people.invented import renamed
from kbgym.worlds.people.population import Person, population
from kbgym.worlds.people.questions import draw, question
from kbgym.worlds.people.sentences import fact_ids, write
from kbgym.worlds.people.templates import TEMPLATES, Template, template_named
from kbgym.worlds.splits import Sizes
from kbgym.worlds.world import Question, World

__all__ = [
    "NO_QUESTIONS",
    "TEMPLATES",
    "VERSION",
    "VERSIONS",
    "PeopleGraph",
    "Person",
    "Sizes",
    "Template",
    "generate",
    "pool",
    "template_named",
]

NO_QUESTIONS = Sizes(0, 0, 0, 0, 0)
HARD_BUDGET = 8
VERSIONS = (1, 2)
VERSION = VERSIONS[-1]  # of the benchmark


def generate(
    people: int = 500,
    seed: int = 0,
    sizes: Sizes | None = None,
    jobs: int | None = None,
    version: int = VERSION,
    hard: bool = False,
    words: Sequence[str] | None = None,
) -> World:
    """A world of so many people. The same arguments give the same bytes everywhere.

    Version 1 numbers its documents person by person, so that an id tells what a document says and whose it is, and
    asks for brothers where only first names tell that somebody is none. Since version 2 ids are codes in no order, and
    what no document states is not asked for. A `hard` world has larger classes and asks its readers to answer within
    eight actions, so that accuracy on the flat store leaves room. With `words` all names and values are
    other words, out of these and made up.
    """
    if version not in VERSIONS:
        raise BadInput(f"there is no version {version} of this benchmark; there are {', '.join(map(str, VERSIONS))}.")
    if hard and version < 2:
        raise BadInput("there is a hard world since version 2 of the benchmark.")
    persons = population(people, seed, jobs, hard)
    if words is not None:
        persons = renamed(persons, seed, words)
    documents = write(persons, seed if version > 1 else None)
    if version > 1:
        persons = tuple(map(_as_stated, persons))
    questions = draw(PeopleGraph(persons), fact_ids(documents), sizes or Sizes(), seed)
    facts: dict[str, Any] = {"kind": "people", "seed": seed, "people": [_plain(person) for person in persons]}
    if version > 1:
        facts["version"] = version
    if hard:
        facts["forward_budget"] = HARD_BUDGET
    return World(documents=documents, questions=questions, facts=facts)


def pool(world: World, template: str) -> Iterator[Question]:
    """Every instance of a template, lazily, as a question of the split "pool"."""
    chosen = template_named(template)
    graph, documents = PeopleGraph.from_facts(world.facts), fact_ids(world.documents)
    return (question(graph, documents, chosen, slots, "", "pool") for slots in chosen.instances(graph))


def _as_stated(person: Person) -> Person:
    """As the documents tell of somebody: whether a woman or a man stands only in "is the mother of"."""
    return person if person.children else msgspec.structs.replace(person, gender="")


def _plain(person: Person) -> dict[str, Any]:
    """A person as plain JSON values, the same before saving and after loading."""
    plain: dict[str, Any] = msgspec.to_builtins(person)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}
