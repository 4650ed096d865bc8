"""The gain of a curator's pass: how much better readers answer fresh questions on the edited store.

It is a reward for training curators by reinforcement learning. With the reference reader it is exact and costs no model
calls. Half of the fresh questions share a key with the question of the pass, if there are enough; the rest are drawn at
random, so that clutter lowers the reward. They are drawn after the pass, and not from the world's splits if it can list
its pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from random import Random

import msgspec

from kbgym.errors import BadInput
from kbgym.gym.environment import Environment
from kbgym.gym.policy import Agent, Backward
from kbgym.integrations.tool_calls import PassByCalls
from kbgym.search.live import LiveEngine
from kbgym.store import Store
from kbgym.training.gate import ask
from kbgym.training.loop import backward_task
from kbgym.training.run import Settings
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Question, World


class Gain(msgspec.Struct, frozen=True):
    """Mean F1 and actions of the readers of `n` fresh questions, on the store before and after the pass."""

    n: int
    f1_before: float
    f1_after: float
    actions_before: float
    actions_after: float

    def reward(self, price: float) -> float:
        """Return the growth of a reader's reward, which is its F1 minus a price per action."""
        return self.f1_after - self.f1_before + price * (self.actions_before - self.actions_after)


class CuratorLesson(PassByCalls):
    """One curator's pass on a private copy of the store."""

    def __init__(self, environment: Environment, task: Backward, budget: int, question: Question) -> None:
        super().__init__(environment, "curator", task, budget)
        self.environment, self.question = environment, question


class Curation:
    """Curators' passes on copies of one store."""

    def __init__(
        self, world: World, store: Store, engine: LiveEngine, reader: Agent, settings: Settings, k: int = 8
    ) -> None:
        if k < 1:
            raise BadInput(f"{k} fresh questions tell nothing; ask for one or more.")
        self._world, self._store, self._engine, self._reader, self._k = world, store.as_frozen(), engine, reader, k
        self.settings = settings
        self._base = self._environment(self._store)
        self._known: dict[str, tuple[float, int]] = {}

    async def lesson(self, question: Question) -> CuratorLesson:
        """Play the reader's pass on a question and return the curator's pass that follows it."""
        settings = self.settings
        passed, grade = await ask(question, self._base, self._reader, settings.forward_budget, settings.memory)
        task = backward_task(question.text, passed.turns, question.golds, grade.f1, passed.answer)
        return CuratorLesson(self._environment(self._store.copy()), task, settings.backward_budget, question)

    async def gain(self, lesson: CuratorLesson, seed: int) -> Gain:
        """Ask fresh questions on the store before and after the curator's pass."""
        fresh = self._fresh(lesson.question, seed)
        before = [await self._scored(question, self._base) for question in fresh]
        if lesson.environment.store.fingerprint == self._store.fingerprint:
            after = before
        else:
            after = [await self._scored(question, lesson.environment) for question in fresh]
        means = [sum(score[part] for score in scores) / len(fresh) for part in (0, 1) for scores in (before, after)]
        return Gain(len(fresh), *means)

    def _environment(self, store: Store) -> Environment:
        ranking, shown = self.settings.ranking, self.settings.observations
        return Environment(store, self._engine.overlay(), ranking=ranking, observations=shown)

    async def _scored(self, question: Question, environment: Environment) -> tuple[float, int]:
        known = self._known if environment is self._base else {}
        if question.text not in known:
            settings = self.settings
            passed, grade = await ask(question, environment, self._reader, settings.forward_budget, settings.memory)
            known[question.text] = grade.f1, len(passed.steps)
        return known[question.text]

    def _fresh(self, question: Question, seed: int) -> Sequence[Question]:
        others = [other for other in self._pool if other.text != question.text]
        near = [other for other in others if not set(question.keys).isdisjoint(other.keys)]
        drawn = Random(f"{seed}:{question.id}:fresh")
        chosen = drawn.sample(near, min(len(near), (self._k + 1) // 2))
        rest = [other for other in others if other not in chosen]
        return chosen + drawn.sample(rest, min(len(rest), self._k - len(chosen)))

    @cached_property
    def _pool(self) -> list[Question]:
        """Return the questions of the pools that are in no split; the training questions if the pools are unknown."""
        world, kind = self._world, kind_of(self._world)
        trained = world.split("train")
        if not kind.has_pools:
            return list(trained)
        asked = {question.text for question in world.questions}
        templates = sorted({question.template for question in trained})
        listed = (question for template in templates for question in kind.pool(world, template))
        return [question for question in listed if question.text not in asked]
