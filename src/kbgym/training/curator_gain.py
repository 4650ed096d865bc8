"""What a curator's pass is worth: what readers of questions nobody asked gain by it, on the store it leaves.

For people who train curators by reinforcement. The reader is given; with the reference reader the gain is exact and
costs no model. Half of the fresh questions share a key with the one the pass came from, where there are as many; the
rest come from anywhere, so that clutter costs. They are drawn after the pass, and never from the world's own splits
where it can list what it could ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from random import Random

import msgspec

from kbgym.errors import BadInput
from kbgym.gym.environment import Environment
from kbgym.gym.policy import Agent, Backward
from kbgym.search.live import LiveEngine
from kbgym.store import Store
from kbgym.training.asking import ask, qa_pairs
from kbgym.training.loop import backward_task
from kbgym.training.run import Settings
from kbgym.training.tool_calls import PassByCalls
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Question, World


class Gain(msgspec.Struct, frozen=True):
    """Mean F1 and actions of the readers of `n` fresh questions, on the store as it was and as it is now."""

    n: int
    f1_before: float
    f1_after: float
    actions_before: float
    actions_after: float

    def reward(self, price: float) -> float:
        """What a reader's reward, its F1 less a price an action, has grown by."""
        return self.f1_after - self.f1_before + price * (self.actions_before - self.actions_after)


class CuratorLesson(PassByCalls):
    """One curator's pass on a copy of the store that nobody else sees."""

    def __init__(self, environment: Environment, task: Backward, budget: int, question: Question) -> None:
        super().__init__(environment, "curator", task, budget)
        self.environment, self.question = environment, question


class Curation:
    """Curators' passes on one store, which stays as it is."""

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
        """The reader's pass on the question, and the curator's that is to follow it."""
        (asking,) = qa_pairs([question])
        settings = self.settings
        passed, grade = await ask(asking, self._base, self._reader, settings.forward_budget, settings.memory)
        task = backward_task(question.text, passed.turns, question.golds, grade.f1, passed.answer)
        return CuratorLesson(self._environment(self._store.copy()), task, settings.backward_budget, question)

    async def gain(self, lesson: CuratorLesson, seed: int) -> Gain:
        """What the next readers gain by what the curator left."""
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
        if environment is self._base and question.text in self._known:
            return self._known[question.text]
        (asking,), settings = qa_pairs([question]), self.settings
        passed, grade = await ask(asking, environment, self._reader, settings.forward_budget, settings.memory)
        if environment is self._base:
            self._known[question.text] = grade.f1, len(passed.steps)
        return grade.f1, len(passed.steps)

    def _fresh(self, question: Question, seed: int) -> Sequence[Question]:
        others = [other for other in self._pool if other.text != question.text]
        near = [other for other in others if not set(question.keys).isdisjoint(other.keys)]
        drawn = Random(f"{seed}:{question.id}:fresh")
        chosen = drawn.sample(near, min(len(near), (self._k + 1) // 2))
        rest = [other for other in others if other not in chosen]
        return chosen + drawn.sample(rest, min(len(rest), self._k - len(chosen)))

    @cached_property
    def _pool(self) -> list[Question]:
        """What training could have asked and no split does; where that is not known, the training questions."""
        world, kind = self._world, kind_of(self._world)
        trained = world.split("train")
        if not kind.has_pools:
            return list(trained)
        asked = {question.text for question in world.questions}
        templates = sorted({question.template for question in trained})
        listed = (question for template in templates for question in kind.pool(world, template))
        return [question for question in listed if question.text not in asked]
