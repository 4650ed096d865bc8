"""Online learning: a question is answered first, its gold may come later, and what is learnt is staged first.

The forward pass is committed when the question is answered, the grade when the gold comes, the backward pass when it
has landed: each is durable by itself, so a crash loses nothing that was answered, and goes on with what was not learnt.
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
from kbgym.search.live import LiveEngine
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
from kbgym.trace.live import LiveStore
from kbgym.trace.snapshot import Snapshot
from kbgym.training.asking import QAPair
from kbgym.training.gate import Gate, judged, settle
from kbgym.training.loop import backward_task
from kbgym.training.run import Settings
from kbgym.training.staged import TRIES, StagedEdits, forward, record_forward, stage, unchanged


class Online:
    """Questions in, golds in, edits out."""

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
                gate.answered(QAPair(asked.id, asked.question, asked.golds, abstain(asked.golds)))

    def warm(self) -> None:
        """Have the embedding model opened beside the loop, before the first text that needs it."""
        if isinstance(engine := self.live.environment.engine, LiveEngine):
            engine.embedding.warm()

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, question: str, client: str, id: str | None = None) -> Asked:
        """The serving reader answers."""
        settings = self.settings
        transcript, base = await forward(self.live, self.reader, question, settings.forward_budget, settings.memory)
        return await self._answered(question, settings.reader, client, transcript, base, id)

    async def open(self, question: str, client: str) -> OpenQuestion:
        """The client's own agent will answer, on the store as it is now."""
        async with self.live.read():
            base = self.live.snapshot()
        return self.open_questions.add(question, client, base, self.settings.forward_budget)

    async def act(self, id: str, client: str, action: Action) -> Step:
        """One action of a client's own agent for its open question; the last one of the budget ends the question."""
        opened = self.open_questions.find(id, client)
        step = await opened.act(action)
        if opened.is_over:
            await self._close(opened)
        return step

    async def close(self, id: str, client: str, answer: str) -> Asked:
        """The client's own agent has answered."""
        opened = self.open_questions.find(id, client)
        await opened.act(Answer(answer))
        return await self._close(opened)

    async def report(self, question: str, client: str, actions: Sequence[Action], answer: str) -> Asked:
        """The client's own agent has answered elsewhere: its searches and reads are done again here, and recorded."""
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
        """The right answer: grade, and teach in the background."""
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
            self.gate.answered(QAPair(id, asked.question, golds, abstain(golds)))
        self.worker.wake()
        return self.questions.asked[id]

    # -- learning -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Learn in the background from now on, beginning with what an earlier process left."""
        self.worker.start()

    async def stop(self) -> None:
        await self.worker.stop()

    async def learn(self) -> None:
        """Teach everything that has its gold and was not taught yet."""
        while (lesson := self.questions.next_lesson()) is not None:
            await self.worker.attempt(lesson)

    async def _set_aside(self, id: str, reason: str) -> None:
        """A lesson that fails for a reason of its own is not tried again, and the trace says why."""
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
        task = backward_task(asked.question, turns, asked.golds, asked.f1 or 0.0, asked.answer, index_tasks)
        await self.backward(task, "backward", id, asked.question, self.settings.backward_budget, curator)

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
    """Whether the right answer is that there is none."""
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
