"""Online learning: a question is answered first, its expected answer may come later, and the gate judges the edits.

The forward pass is committed when the question is answered, the grade when the expected answer comes, the backward pass
when it was applied or rejected. Each is durable by itself: a crash loses no answer, and learning resumes.
Expected answers come from clients; the store's own answer never becomes one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from kbgym.gym.actions import Action, Answer
from kbgym.gym.environment import Step
from kbgym.gym.episode import Transcript
from kbgym.gym.grading import abstains, score
from kbgym.gym.policy import Agent, Backward, Policy, View
from kbgym.serving.learning.agenda import AgendaFollower
from kbgym.serving.learning.question_log import (
    Asked,
    OpenQuestion,
    OpenQuestions,
    QuestionLog,
    Refusal,
    new_id,
)
from kbgym.serving.learning.teacher import Teacher
from kbgym.serving.learning.worker import Worker
from kbgym.trace.corrections import Corrections
from kbgym.trace.events import Began, Ended, Graded, Noted, Phase
from kbgym.trace.live import LiveStore, Snapshot
from kbgym.training.gate import Gate, judged, qa_pair, settle
from kbgym.training.loop import NOTHING_LEARNT, backward_task, suffices
from kbgym.training.run import Settings
from kbgym.training.staged import TRIES, StagedEdits, forward, record_forward, stage, unchanged


class Online:
    """Answer questions, take expected answers and learn from them."""

    def __init__(
        self,
        live: LiveStore,
        questions: QuestionLog,
        agenda: AgendaFollower,
        corrections: Corrections,
        reader: Agent,
        curator: Agent,
        settings: Settings,
        gate: Gate | None = None,
    ) -> None:
        self.live, self.questions, self.agenda, self.gate = live, questions, agenda, gate
        self.settings = settings
        self.reader, self.curator = reader, curator
        self.corrections = corrections
        self.open_questions = OpenQuestions()
        self.worker = Worker(lambda: self.questions.next_lesson(), self._lesson, self._set_aside)
        self.admitted = self.refused = 0
        for asked in questions.asked.values():
            if gate is not None and asked.golds:
                gate.answered(qa_pair(asked.id, asked.question, asked.golds, abstain(asked.golds)))

    def warm(self) -> None:
        """Load the embedding model in the background."""
        self.live.environment.engine.warm()

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, question: str, client: str, id: str | None = None) -> Asked:
        """Have the serving reader answer a question."""
        settings = self.settings
        transcript, base = await forward(self.live, self.reader, question, settings.forward_budget, settings.memory)
        return await self._answered(question, settings.reader, client, transcript, base, id)

    async def open(self, question: str, client: str) -> OpenQuestion:
        """Open a question for the client's own agent, on the store as it is now."""
        async with self.live.read():
            base = self.live.snapshot()
        return self.open_questions.add(question, client, base, self.settings.forward_budget)

    async def act(self, id: str, client: str, action: Action) -> Step:
        """Take an action for an open question; the last one of the budget ends the question."""
        opened = self.open_questions.find(id, client)
        step = await opened.act(action)
        if opened.is_over:
            await self._close(opened)
        return step

    async def close(self, id: str, client: str, answer: str) -> Asked:
        """Answer an open question."""
        opened = self.open_questions.find(id, client)
        await opened.act(Answer(answer))
        return await self._close(opened)

    async def report(self, question: str, client: str, actions: Sequence[Action], answer: str) -> Asked:
        """Record an answer given elsewhere; the searches and reads that led to it are repeated here."""
        opened = await self.open(question, client)
        for action in actions[: opened.budget - 1]:
            await opened.act(action)
        await opened.act(Answer(answer))
        return await self._close(opened)

    async def _close(self, opened: OpenQuestion) -> Asked:
        self.open_questions.close(opened.id)
        client, base = opened.client, opened.base
        return await self._answered(opened.question, client, client, opened.transcript, base, opened.id)

    async def _answered(
        self, question: str, agent: str, client: str, transcript: Transcript, base: Snapshot, id: str | None
    ) -> Asked:
        live = self.live
        async with live.write():
            number, id = live.iteration + 1, id or new_id()
            record_forward(live, Began(number, "forward", agent, id, question), transcript, base)
            live.record(Noted(number, "asked", {"question": id, "by": client}))
            durable = live.commit()
        await asyncio.shield(durable)
        return self.questions.asked[id]

    # -- feedback -----------------------------------------------------------------------------------------------------

    def find(self, id: str, client: str | None = None) -> Asked:
        """Return a question by id; with `client`, only one that client asked."""
        found = self.questions.asked.get(id)
        if found is None or (client is not None and found.client != client):
            raise Refusal("missing", f"there is no question {id[:80]!r} among the latest.")
        return found

    async def gold(self, id: str, golds: tuple[str, ...]) -> Asked:
        """Grade a question by its expected answers and teach it in the background."""
        live = self.live
        async with live.write():
            asked = self.find(id)
            if asked.golds or asked.outcome == "agent_failed":
                raise Refusal(
                    "conflict",
                    f"question {id} has its gold already."
                    if asked.golds
                    else f"question {id} was never answered: the agent failed.",
                )
            f1, em = score(asked.answer, golds, abstain(golds))
            live.record(Graded(live.iteration + 1, id, golds, f1, em, asked.answer))
            durable = live.commit()
        await asyncio.shield(durable)
        if self.gate is not None:
            self.gate.answered(qa_pair(id, asked.question, golds, abstain(golds)))
        self.worker.wake()
        return self.questions.asked[id]

    # -- learning -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start learning in the background, beginning with lessons an earlier process left."""
        self.worker.start()

    async def stop(self) -> None:
        await self.worker.stop()

    async def learn(self) -> None:
        """Teach every graded question that was not taught yet."""
        while (lesson := self.questions.next_lesson()) is not None:
            await self.worker.attempt(lesson)

    async def _set_aside(self, id: str, reason: str) -> None:
        """Record that a lesson failed for its own reasons, so that it is not retried."""
        live = self.live
        async with live.write():
            live.record(Noted(live.iteration + 1, "set aside", {"question": id, "reason": reason[:500]}))
            durable = live.commit()
        await asyncio.shield(durable)

    async def _lesson(self, id: str) -> None:
        asked = self.questions.asked[id]
        index_tasks = (
            self.agenda.index_tasks(self.live.store, asked.question) if self.settings.strategy == "class" else ()
        )
        turns, curator = self.questions.turns.get(id, ()), None
        if (lesson := self.corrections.lessons.get(id)) is not None:
            curator = cooperative(lambda: Teacher(lesson, self.live.store))
        if curator is None and suffices(self.settings, turns, asked.f1 or 0.0, index_tasks):
            await self._end(id, asked.question, NOTHING_LEARNT)
            return
        task = backward_task(asked.question, turns, asked.golds, asked.f1 or 0.0, asked.answer, index_tasks)
        await self.backward(task, "backward", id, asked.question, self.settings.backward_budget, curator)

    async def _end(self, id: str, text: str, passed: Transcript) -> None:
        """Record a backward pass that changed nothing."""
        live = self.live
        async with live.write():
            number = live.iteration + 1
            live.record(Began(number, "backward", self.settings.curator, id, text))
            live.record(Ended(number, "backward", passed.outcome))
            durable = live.commit()
        await asyncio.shield(durable)

    async def backward(
        self, task: Backward, phase: Phase, id: str, text: str, budget: int, curator: Agent | None = None
    ) -> StagedEdits:
        """Play a curator's pass on a copy, have the gate judge it, and apply it or record it as rejected."""
        live, settings = self.live, self.settings
        for attempt in range(1, TRIES + 1):
            made = await stage(live, curator or self.curator, task, budget, settings.memory)
            verdict = await judged(self.gate, made, live.iteration, id)
            await live.prepare([step.action for step in made.edits])
            async with live.write():
                refused = verdict is not None and verdict["verdict"] == "quarantined"
                fresh = unchanged(live, made)
                if not fresh and not refused:
                    if attempt < TRIES:
                        continue
                    reason = "documents it builds on were changed by others each time it was played"
                    verdict = {"verdict": "quarantined", "reason": reason}
                number = live.iteration + 1
                live.record(Began(number, phase, "teacher" if curator else settings.curator, id, text))
                if await settle(live, number, phase, id, made, verdict):
                    self.admitted += made.changed
                else:
                    self.refused += 1
                passed = made.transcript
                live.record(Ended(number, phase, passed.outcome, passed.failure, passed.usage))
                live.commit()
            break
        await live.durable()
        return made


def abstain(golds: tuple[str, ...]) -> bool:
    """Return True if the expected answer is that there is none."""
    return bool(golds) and all(abstains(gold) for gold in golds)


class _Cooperative:
    """A policy that yields to other tasks before every action, because a rule-based policy never awaits anything."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def usage(self) -> Any:
        return getattr(self._policy, "usage", None)

    async def act(self, view: View) -> Action:
        await asyncio.sleep(0)
        return await self._policy.act(view)


def cooperative(agent: Agent) -> Agent:
    """Return the agent with policies that yield to the event loop before every action."""
    return lambda: _Cooperative(agent())
