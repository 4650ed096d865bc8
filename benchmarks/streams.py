"""Streams of questions whose keys are asked for unevenly, and curators that mean harm; for benchmarks and tests.

No question of a test split is ever drawn, so that an exam on one stays an exam.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from random import Random

from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.language import belongs, facts, index_text, is_index, keys_of
from kbgym.agents.reference.questions import named_keys, parse_question
from kbgym.agents.reference.searching import query_for
from kbgym.gym.actions import Action, Add, Delete, Done, Edit, LinkMany, Read, Search, Unlink
from kbgym.gym.observations import documents
from kbgym.gym.policy import Agent, Backward, PlannedPolicy, Steps, View
from kbgym.index_keys import IndexKey
from kbgym.serving.learning.setup import Traffic
from kbgym.worlds.people import pool
from kbgym.worlds.world import World


def skewed_traffic(world: World, n: int, seed: int = 0) -> list[Traffic]:
    """Questions of the trained templates; the k-th most wanted key is asked for 1/k as often as the first."""
    dice = Random(f"{seed}:traffic")
    names = sorted({question.template for question in world.split("train")})
    kept_back = {question.text for question in world.questions if question.split != "train"}
    pools = {name: [question for question in pool(world, name) if question.text not in kept_back] for name in names}
    keys = sorted({key for questions in pools.values() for question in questions for key in question.keys})
    dice.shuffle(keys)
    weight = {key: 1 / rank for rank, key in enumerate(keys, 1)}
    weights = {name: [prod(weight[key] for key in question.keys) for question in pools[name]] for name in names}
    drawn = []
    for _ in range(n):
        name = dice.choice([name for name in names if pools[name]])
        question = dice.choices(pools[name], weights[name])[0]
        drawn.append(Traffic(question.text, question.golds, keys=question.keys))
    return drawn


def keys_named(view: View) -> list[IndexKey]:
    assert isinstance(view.task, Backward)
    query = parse_question(view.task.question)
    return list(dict.fromkeys(named_keys(query))) if query is not None else []


class Harmful(PlannedPolicy):
    """A curator that works through the keys of a question, and does to each what `harm` says."""

    def __init__(self) -> None:
        super().__init__(self._plan, lambda view: Done())

    def _plan(self, view: View) -> Steps[Action]:
        for key in keys_named(view):
            yield from self.harm(key)
        return Done()

    def harm(self, key: IndexKey) -> Iterator:  # type: ignore[type-arg]
        raise NotImplementedError


def strangers(key: IndexKey) -> Steps[Action]:
    """Documents that do not belong under a key."""
    found = documents((yield Search("lives in the city of")))
    return [id for id, text in found if facts(text) and not belongs(text, key)]  # type: ignore[return-value]


class WrongIndexes(Harmful):
    """An index of the right name that links what does not belong under it."""

    def harm(self, key: IndexKey) -> Iterator:  # type: ignore[type-arg]
        index = documents((yield Add(index_text(key))))
        yield LinkMany(index[0][0], tuple((yield from strangers(key))))  # type: ignore[arg-type]


class WrongLinks(Harmful):
    """Wrong links under every index near the key that exists; a wrong index where none does."""

    def harm(self, key: IndexKey) -> Iterator:  # type: ignore[type-arg]
        found = documents((yield Search(index_text(key))))
        wrong = tuple((yield from strangers(key)))
        indexes = [id for id, text in found if not facts(text)]
        for id in indexes[:3]:
            yield LinkMany(id, wrong)
        if not indexes:
            made = documents((yield Add(index_text(key))))
            yield LinkMany(made[0][0], wrong)


class Replaced(Harmful):
    """The members of the key's index are unlinked and strangers linked in their place."""

    def harm(self, key: IndexKey) -> Iterator:  # type: ignore[type-arg]
        found = documents((yield Search(query_for(key))))
        wrong = tuple((yield from strangers(key)))
        for id, text in found:
            if is_index(text, key):
                for target, _ in documents((yield Read(id)))[1:][:6]:
                    yield Unlink(id, target)
                yield LinkMany(id, wrong)


class Deletes(Harmful):
    """Whatever a search for the key shows is deleted, indexes first."""

    def harm(self, key: IndexKey) -> Iterator:  # type: ignore[type-arg]
        found = documents((yield Search(query_for(key))))
        for id, _ in sorted(found, key=lambda hit: bool(facts(hit[1])))[:3]:
            yield Delete(id)


class Edits(Harmful):
    """Sentences about the key are turned into others."""

    def harm(self, key: IndexKey) -> Iterator:  # type: ignore[type-arg]
        found = documents((yield Search(query_for(key))))
        for (id, text), (_, other) in pairwise(found[:4]):
            if facts(text) and facts(other):
                name, value = facts(text)[0].about, facts(other)[0].value
                yield Edit(id, text.replace(facts(text)[0].value, value) if value not in text else f"{name} retired.")


class Lies(Harmful):
    """New sentences that state what is not so."""

    def harm(self, key: IndexKey) -> Iterator:  # type: ignore[type-arg]
        if key.kind == "person":
            yield Add(f"{key.value}'s job is swindler.")
            yield Add(f"{key.value} is a friend of Nobody Atall.")
        else:
            yield Add(f"Nobody Atall's {key.kind} is {key.value}.")


class Stowaway(ReferenceCurator):
    """Good work, and in its company a wrong index of a key the question does not name."""

    def _plan_pass(self, view: View) -> Steps[Action]:
        named = keys_named(view)
        good = super()._plan_pass(view)
        seen, sent = [], None
        while True:
            try:
                action = good.send(sent)  # type: ignore[arg-type]
            except StopIteration:
                break
            sent = yield action
            seen += documents(sent)
        other = [key for _, text in seen for key in keys_of(facts(text)) if key not in named]
        if other:
            yield from WrongIndexes().harm(other[len(other) // 2])
        return Done()


class Halves(Harmful):
    """An index of the right name with one right link: what it says is true, and it is not whole."""

    def harm(self, key: IndexKey) -> Iterator:  # type: ignore[type-arg]
        found = documents((yield Search(query_for(key))))
        right = [id for id, text in found if belongs(text, key)]
        if right:
            made = documents((yield Add(index_text(key))))
            yield LinkMany(made[0][0], tuple(right[:1]))


HARMFUL: dict[str, Agent] = {
    "wrong indexes": WrongIndexes,
    "wrong links": WrongLinks,
    "members replaced": Replaced,
    "deletes": Deletes,
    "edits": Edits,
    "lies": Lies,
    "stowaway": Stowaway,
    "one link only": Halves,
}
