"""Online learning: a question is answered first, its expected answer may come later, and the gate judges the edits.

The forward pass is committed when the question is answered, the grade when the expected answer comes, the backward pass
when it was applied or rejected. Each is durable by itself: a crash loses no answer, and learning resumes.
Expected answers come from clients; the store's own answer never becomes one. Learning in the background survives any
failure: a transient one, such as a full disk, is retried with exponential backoff; a lesson that fails for a reason of
its own is set aside with that reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kbgym.errors import Failed
from kbgym.gym.actions import Action, Answer
from kbgym.gym.environment import Step
from kbgym.gym.episode import Transcript
from kbgym.gym.grading import abstains, score
from kbgym.gym.policy import Agent, Backward, Policy, View
from kbgym.serving.clients import PerClient, Refusal
from kbgym.serving.learning.agenda import AgendaFollower
from kbgym.serving.learning.question_log import MOST_OPEN, Asked, OpenQuestion, QuestionLog, new_id
from kbgym.serving.learning.teacher import Teacher
from kbgym.trace.corrections import Corrections
from kbgym.trace.events import Began, Ended, Event, Graded, Noted, Phase
from kbgym.trace.live import LiveStore
from kbgym.training.gate import Gate, judged, qa_pair, settle
from kbgym.training.lessons import Lesson
from kbgym.training.loop import answer, backward_task, learn
from kbgym.training.run import Settings
from kbgym.training.staged import TRIES, record_forward, stage, unchanged

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a failed lesson is tried again
_logger = logging.getLogger("kbgym.learning")


class Online:
    """Answer questions, take expected answers and learn from them.

    `failures` are consecutive failures of learning in the background.
    """

    def __init__(
        self,
        live: LiveStore,
        questions: QuestionLog,
        corrections: Corrections,
        reader: Agent,
        curator: Agent,
        settings: Settings,
        gate: Gate | None = None,
        agenda: AgendaFollower | None = None,
    ) -> None:
        self.live, self.questions, self.corrections, self.gate = live, questions, corrections, gate
        self.reader, self.curator, self.settings, self.agenda = reader, curator, settings, agenda
        self.open_questions: PerClient[OpenQuestion] = PerClient(MOST_OPEN)
        self.admitted = self.refused = self.failures = 0
        self._wake = asyncio.Event()
        self._learning: asyncio.Task[None] | None = None
        for asked in questions.asked.values():
            if gate is not None and asked.golds:
                gate.answered(qa_pair(asked.id, asked.question, asked.golds, abstain(asked.golds)))

    def warm(self) -> None:
        """Load the embedding model in the background."""
        self.live.environment.engine.warm()

    async def record(self, events: Callable[[int], Sequence[Event]]) -> None:
        """Record the events of the next iteration as one transaction, and wait until it is durable."""
        live = self.live
        async with live.write():
            for event in events(live.iteration + 1):
                live.record(event)
            durable = live.commit()
        await asyncio.shield(durable)

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, question: str, client: str, id: str | None = None) -> Asked:
        """Have the serving reader answer a question."""
        opened = await self._opened(question, client, id)
        passed = await answer(Lesson(0, qa_pair(opened.id, question, ())), self.reader, opened)
        return await self._answered(opened, self.settings.reader, passed)

    async def open(self, question: str, client: str) -> OpenQuestion:
        """Open a question for the client's own agent, on the store as it is now."""
        opened = await self._opened(question, client)
        self.open_questions[client][opened.id] = opened
        return opened

    def opened(self, id: str, client: str) -> OpenQuestion:
        """Return a client's own open question. Raise Refusal if it has none of that id."""
        if (found := self.open_questions[client].get(id)) is None:
            raise Refusal("missing", f"there is no open question {id[:80]!r}.")
        return found

    async def act(self, id: str, client: str, action: Action) -> Step:
        """Take an action for an open question; the last one of the budget ends the question."""
        opened = self.opened(id, client)
        step = await opened.act(action)
        if opened.is_over:
            await self._close(opened)
        return step

    async def close(self, id: str, client: str, answer: str) -> Asked:
        """Answer an open question."""
        await self.act(id, client, Answer(answer))
        return self.questions.asked[id]

    async def report(self, question: str, client: str, actions: Sequence[Action], answer: str) -> Asked:
        """Record an answer given elsewhere; the searches and reads that led to it are repeated here."""
        opened = await self._opened(question, client)
        for action in actions[: opened.budget - 1]:
            await opened.act(action)
        await opened.act(Answer(answer))
        return await self._close(opened)

    async def _opened(self, question: str, client: str, id: str | None = None) -> OpenQuestion:
        async with self.live.read():
            return OpenQuestion(id or new_id(), question, client, self.live.snapshot(), self.settings)

    async def _close(self, opened: OpenQuestion) -> Asked:
        self.open_questions[opened.client].pop(opened.id, None)
        return await self._answered(opened, opened.client, opened.transcript)

    async def _answered(self, opened: OpenQuestion, agent: str, transcript: Transcript) -> Asked:
        live, id = self.live, opened.id
        async with live.write():
            number = live.iteration + 1
            record_forward(live, Began(number, "forward", agent, id, opened.question), transcript, opened.base)
            live.record(Noted(number, "asked", {"question": id, "by": opened.client}))
            durable = live.commit()
        await asyncio.shield(durable)
        return self.questions.asked[id]

    def look(self, id: str, client: str | None = None) -> Asked:
        """Return a question by id, open or answered; with `client`, only one that client asked."""
        opened = next((mine[id] for mine in self.open_questions.values() if id in mine), None)
        return self.find(id, client) if opened is None or client not in (None, opened.client) else opened.asked

    # -- feedback -----------------------------------------------------------------------------------------------------

    def find(self, id: str, client: str | None = None) -> Asked:
        """Return a question by id; with `client`, only one that client asked."""
        found = self.questions.asked.get(id)
        if found is None or (client is not None and found.client != client):
            raise Refusal("missing", f"there is no question {id[:80]!r} among the latest.")
        return found

    async def gold(self, id: str, golds: tuple[str, ...]) -> Asked:
        """Grade a question by its expected answers and teach it in the background."""

        def graded(number: int) -> Sequence[Event]:
            asked = self.find(id)
            if asked.golds:
                raise Refusal("conflict", f"question {id} has its gold already.")
            if asked.outcome == "agent_failed":
                raise Refusal("conflict", f"question {id} was never answered: the agent failed.")
            return [Graded(number, id, golds, *score(asked.answer, golds, abstain(golds)), asked.answer)]

        await self.record(graded)
        asked = self.questions.asked[id]
        if self.gate is not None:
            self.gate.answered(qa_pair(id, asked.question, golds, abstain(golds)))
        self._wake.set()
        return asked

    # -- learning -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start learning in the background, beginning with lessons an earlier process left."""
        self._learning = asyncio.get_running_loop().create_task(self._learn_on())

    async def stop(self) -> None:
        if self._learning is not None:
            self._learning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._learning

    @property
    def is_learning(self) -> bool:
        return self._learning is not None and not self._learning.done()

    async def learn(self) -> None:
        """Teach every graded question that was not taught yet."""
        while (id := self.questions.next_lesson()) is not None:
            await self._attempt(id)

    async def _learn_on(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.learn()
            except Exception as error:  # learning continues after any error
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.failures)
                self.failures += 1
                _logger.warning("learning failed, tried again in %.1f s: %s: %s", pause, type(error).__name__, error)
                await asyncio.sleep(pause)
            else:
                self.failures = 0
                await self._wake.wait()

    async def _attempt(self, id: str) -> None:
        """Teach a lesson. Raise transient failures; set the lesson aside for any other."""
        try:
            await self._lesson(id)
        except (Failed, OSError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            _logger.error("the lesson of %s is set aside: %s", id, reason)
            await self.record(lambda number: [Noted(number, "set aside", {"question": id, "reason": reason[:500]})])

    async def _lesson(self, id: str) -> None:
        asked, settings, live = self.questions.asked[id], self.settings, self.live
        agenda = self.agenda.index_tasks(live.store, asked.question) if self.agenda is not None else ()
        turns = self.questions.turns.get(id, ())
        task = backward_task(asked.question, turns, asked.golds, asked.f1 or 0.0, asked.answer, agenda)
        curate = partial(self.curate, id=id, text=asked.question)
        if (lesson := self.corrections.lessons.get(id)) is not None:  # a person's lesson is never skipped
            await curate(task, curator=cooperative(lambda: Teacher(lesson, live.store)))
        else:
            await learn(settings, task, curate)
        if id in self.questions.to_learn:  # there was nothing to learn
            began = partial(Began, phase="backward", agent=settings.curator, question=id, text=asked.question)
            await self.record(lambda number: [began(number), Ended(number, "backward", "done")])

    async def curate(
        self,
        task: Backward,
        phase: Phase = "backward",
        id: str = "",
        text: str = "",
        curator: Agent | None = None,
        budget: int | None = None,
    ) -> Transcript:
        """Play a curator's pass on a copy, have the gate judge it, and apply it or record it as rejected."""
        live, settings = self.live, self.settings
        for attempt in range(1, TRIES + 1):
            made = await stage(live, curator or self.curator, task, budget or settings.backward_budget, settings.memory)
            verdict = await judged(self.gate, made, live.iteration, id)
            await live.prepare([step.action for step in made.edits])
            async with live.write():
                refused = verdict is not None and verdict["verdict"] == "quarantined"
                if not refused and not unchanged(live, made):
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
        return made.transcript


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
