"""The people benchmark: `generate` makes a world from a seed, `pool` lists every question a template can ask in it.

The rest of the package sees only `World` values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kbgym.canonical import decode, encode
from kbgym.errors import BadInput
from kbgym.worlds.people.graph import PeopleGraph
from kbgym.worlds.people.population import Person, population
from kbgym.worlds.people.questions import draw, question
from kbgym.worlds.people.sentences import fact_ids, write
from kbgym.worlds.people.templates import TEMPLATES, template_named
from kbgym.worlds.splits import Sizes
from kbgym.worlds.world import Question, World

__all__ = [
    "NO_QUESTIONS",
    "TEMPLATES",
    "VERSION",
    "PeopleGraph",
    "Sizes",
    "generate",
    "pool",
    "template_named",
    "world_of_people",
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
) -> World:
    """Make a world of fictional people. The same arguments give the same bytes everywhere.

    Args:
        sizes: Number of questions in each split.
        jobs: Number of different jobs; by default a tenth of `people`.
        version: Version 1 numbers its documents person by person, so that an id reveals its subject, and asks for
            brothers where only a first name tells that there is none. Version 2 has random ids and asks only for what
            documents state.
        hard: Make larger classes and limit readers to eight actions, so that accuracy on the flat store leaves room.
    """
    if version not in VERSIONS:
        raise BadInput(f"there is no version {version} of this benchmark; there are {', '.join(map(str, VERSIONS))}.")
    if hard and version < 2:
        raise BadInput("there is a hard world since version 2 of the benchmark.")
    world = world_of_people(population(people, seed, jobs, hard), seed, sizes or Sizes(), version)
    return msgspec.structs.replace(world, facts={**world.facts, "forward_budget": HARD_BUDGET}) if hard else world


def world_of_people(persons: Sequence[Person], seed: int, sizes: Sizes, version: int = VERSION) -> World:
    """Write the documents of a population and draw questions about it."""
    documents = write(persons, seed if version > 1 else None)
    if version > 1:  # a gender is stated only by "is the mother of" and "is the father of"
        persons = [one if one.children else msgspec.structs.replace(one, gender="") for one in persons]
    questions = draw(PeopleGraph(persons), fact_ids(documents), sizes, seed)
    plain = decode(encode(persons))
    facts: dict[str, Any] = {"kind": "people", "seed": seed, "people": plain}
    if version > 1:
        facts["version"] = version
    return World(documents=documents, questions=questions, facts=facts)


def pool(world: World, template: str) -> Iterator[Question]:
    """Yield every instance of a template as a question of the split "pool"."""
    chosen = template_named(template)
    graph, documents = PeopleGraph.from_facts(world.facts), fact_ids(world.documents)
    return (question(graph, documents, chosen, slots, "", "pool") for slots in chosen.instances(graph))
