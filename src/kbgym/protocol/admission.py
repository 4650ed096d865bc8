"""Admission in training: the edits of a lesson stay only if questions asked again are answered no worse.

The panel is some of the eval split, drawn anew for every lesson, and the questions answered last, this lesson's own
among them; the test splits are never touched. It is asked on the store without and with the edits. Nothing is
remembered from lesson to lesson, so training that is interrupted comes to the same verdicts. What a refused pass looked
up stays in the trace as it happened; its edits are kept as notes, and the store never has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from kbgym.actions import Error, Found
from kbgym.environment import Advice, Environment, Nearest, Step, apply
from kbgym.episode import Transcript, play
from kbgym.grading import grade
from kbgym.policy import Agent, Backward, Forward
from kbgym.protocol.run import Settings
from kbgym.store import Store
from kbgym.tools import ROLES
from kbgym.trace.events import Acted, Event, Noted
from kbgym.worlds.world import Question

Record = Callable[[Event], None]
_EDITING = frozenset(ROLES["curator"]) - set(ROLES["reader"]) - {"done"}


class Verdict(msgspec.Struct, frozen=True):
    """Mean F1 of the panel without and with the edits; admitted when it did not fall."""

    asked: int
    before: float
    after: float

    @property
    def admitted(self) -> bool:
        return self.after >= self.before - 1e-9


class Admission:
    """Plays backward passes on trial; for one lesson at a time, because a trial owns the store while it lasts."""

    def __init__(self, settings: Settings, held_out: Sequence[Question], reader: Agent, curator: Agent) -> None:
        self.settings = settings
        self.held_out = tuple(held_out)
        self.reader, self.curator = reader, curator

    def panel(self, iteration: int, answered: Sequence[Question]) -> list[Question]:
        """As many held-out questions as the setting says, and as many of those answered last."""
        n = self.settings.admission
        draw = Random(f"{self.settings.seed}:admission:{iteration}")
        held_out = draw.sample(self.held_out, min(n, len(self.held_out)))
        recent = list(dict.fromkeys(reversed(answered)))[:n]
        return [*held_out, *(question for question in recent if question not in held_out)]

    async def lesson(
        self,
        environment: Environment,
        task: Backward,
        iteration: int,
        answered: Sequence[Question],
        record: Record,
    ) -> Transcript:
        """Play a backward pass. Afterwards the environment has the store with its edits or the one before them, and
        `record` was told of every step while the store was as the step left it."""
        settings = self.settings
        before = environment.store.copy()
        passed = await play(self.curator(), environment, "curator", task, settings.backward_budget, settings.memory)
        verdict = None
        if environment.store.fingerprint != before.fingerprint:
            verdict = await self._judge(environment, before, self.panel(iteration, answered))
        environment.become(before)
        for number, step in enumerate(passed.steps, 1):
            if verdict is None or verdict.admitted:
                environment.follow(apply(environment.store, step.action, _advice(step)))
                record(Acted(iteration, "backward", number, step.action, step.result, step.verdict))
            else:
                record(_refused(iteration, number, step, environment.store))
        if verdict is not None:
            said = {"question": task.question, "verdict": "admitted" if verdict.admitted else "quarantined"}
            record(Noted(iteration, "admission", {**said, **msgspec.to_builtins(verdict)}))
        return passed

    async def _judge(self, environment: Environment, before: Store, panel: Sequence[Question]) -> Verdict:
        after, count = environment.store, max(1, len(panel))
        with_edits = sum([await self._score(environment, question) for question in panel])
        environment.become(before)
        without = sum([await self._score(environment, question) for question in panel])
        environment.become(after)
        return Verdict(len(panel), round(without / count, 6), round(with_edits / count, 6))

    async def _score(self, environment: Environment, question: Question) -> float:
        budget, memory = self.settings.forward_budget, self.settings.memory
        passed = await play(self.reader(), environment, "reader", Forward(question.text), budget, memory)
        return 0.0 if passed.answer is None else grade(passed.answer, question.golds, question.unanswerable).f1


def _advice(step: Step) -> Advice:
    return Nearest(step.result.ids) if isinstance(step.result, Found) else step.verdict


def _refused(iteration: int, number: int, step: Step, store: Store) -> Event:
    """A step that holds without the edits as it happened, any other as a note."""
    looked = step.action.__struct_config__.tag not in _EDITING and not isinstance(step.result, Error)
    if looked and apply(store, step.action, _advice(step)) == step.result:
        return Acted(iteration, "backward", number, step.action, step.result, step.verdict)
    data = {"phase": "backward", "step": number, "action": step.action, "result": step.result}
    return Noted(iteration, "refused", msgspec.to_builtins(data))
