"""Traffic for tests: questions whose keys are asked for very unevenly, and a curator that means harm."""

from __future__ import annotations

from math import prod
from random import Random

from kbgym.actions import Add, Done, LinkMany, Search
from kbgym.agents.base import Plan, PlannedPolicy, documents
from kbgym.agents.reference.language import index_text
from kbgym.agents.reference.members import belongs
from kbgym.agents.reference.questions import named_keys, parse_question
from kbgym.policy import Backward, View
from kbgym.serve.setup import Traffic
from kbgym.worlds.people import pool
from kbgym.worlds.world import World


def skewed_traffic(world: World, n: int, seed: int = 0) -> list[Traffic]:
    """Questions of the trained templates; the k-th most wanted key is asked for 1/k as often as the first."""
    dice = Random(f"{seed}:traffic")
    names = sorted({question.template for question in world.split("train")})
    pools = {name: list(pool(world, name)) for name in names}
    keys = sorted({key for questions in pools.values() for question in questions for key in question.keys})
    dice.shuffle(keys)
    weight = {key: 1 / rank for rank, key in enumerate(keys, 1)}
    weights = {name: [prod(weight[key] for key in question.keys) for question in pools[name]] for name in names}
    drawn = []
    for _ in range(n):
        name = dice.choice(names)
        question = dice.choices(pools[name], weights[name])[0]
        drawn.append(Traffic(question.text, question.golds))
    return drawn


class WrongLinks(PlannedPolicy):
    """For every key a question names, an index of the right name that links what does not belong under it."""

    def __init__(self) -> None:
        super().__init__(self._plan, lambda view: Done())

    def _plan(self, view: View) -> Plan:
        assert isinstance(view.task, Backward)
        query = parse_question(view.task.question)
        for key in dict.fromkeys(named_keys(query)) if query is not None else ():
            index = documents((yield Add(index_text(key))))
            found = documents((yield Search("lives in the city of")))
            yield LinkMany(index[0][0], tuple(id for id, text in found if not belongs(text, key)))
        return Done()
