"""The people benchmark: `generate` makes a world from a seed, `pool` lists all questions of a template in it.

The rest of the package uses only `World` values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kbgym.canonical import decode, encode
from kbgym.worlds.people.graph import PeopleGraph
from kbgym.worlds.people.population import Person, population
from kbgym.worlds.people.questions import draw, question
from kbgym.worlds.people.sentences import fact_ids, write
from kbgym.worlds.people.templates import TEMPLATES, template_named
from kbgym.worlds.splits import Sizes
from kbgym.worlds.world import Question, World

__all__ = ["NO_QUESTIONS", "TEMPLATES", "PeopleGraph", "Sizes", "generate", "pool", "template_named", "world_of_people"]

NO_QUESTIONS = Sizes(0, 0, 0, 0, 0)
HARD_BUDGET = 8


def generate(people: int = 500, seed: int = 0, sizes: Sizes | None = None, hard: bool = False) -> World:
    """Generate a world of fictional people. The same arguments give the same bytes on every platform.

    Args:
        sizes: Number of questions in each split.
        hard: Make larger classes and limit readers to eight actions, so that accuracy on the flat store leaves room.
    """
    world = world_of_people(population(people, seed, hard), seed, sizes or Sizes())
    return msgspec.structs.replace(world, facts={**world.facts, "forward_budget": HARD_BUDGET}) if hard else world


def world_of_people(persons: Sequence[Person], seed: int, sizes: Sizes) -> World:
    """Return a world with the documents of a population and questions about it.

    Gender is stated only by "is the mother of" and "is the father of", so other people have none.
    """
    documents = write(persons, seed)
    persons = [one if one.children else msgspec.structs.replace(one, gender="") for one in persons]
    questions = draw(PeopleGraph(persons), fact_ids(documents), sizes, seed)
    facts = {"kind": "people", "seed": seed, "people": decode(encode(persons)), "version": 2}
    return World(documents=documents, questions=questions, facts=facts)


def pool(world: World, template: str) -> Iterator[Question]:
    """Yield every instance of a template as a question of the split "pool"."""
    chosen = template_named(template)
    graph, documents = PeopleGraph.from_facts(world.facts), fact_ids(world.documents)
    return (question(graph, documents, chosen, slots, "", "pool") for slots in chosen.instances(graph))
