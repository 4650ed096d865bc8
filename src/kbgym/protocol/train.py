"""Training: one question at a time, answer, see the gold, edit the store, commit.

The end of every lesson is a commit of the trace, durable before the next lesson takes its place. Training that is
interrupted goes on where the trace ends and comes to the same bytes as training that was not. With a batch size above
one, so many lessons are under way at once on the one store, and the trace has their steps in the order they took
effect; a lesson that an interruption cut short is gone on with from its last committed step.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

import msgspec

from kbgym.agents.reference.agenda import Agenda
from kbgym.environment import Engine as SearchEngine
from kbgym.environment import Environment
from kbgym.episode import Transcript, play
from kbgym.grade import grade
from kbgym.policy import Agent, Backward, Forward, Turn, Verdict
from kbgym.protocol.exam import Tick, examine, summarise
from kbgym.protocol.lessons import Lesson, Progress, Underway, last_iteration, schedule
from kbgym.protocol.run import Run
from kbgym.store import Store
from kbgym.store.guard import Judge
from kbgym.tools import render
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Graded, Noted, Phase
from kbgym.trace.folder import StoreFolder
from kbgym.trace.log import Writer

STRATEGIES = ("paper", "class")


class Agents(msgspec.Struct, frozen=True):
    """Who plays. `described` is what the trace remembers of models: names, what they are asked with, prompt hashes."""

    reader: Agent
    curator: Agent
    judge: Judge | None = None
    described: dict[str, Any] = {}


class Trainer:
    """A run in progress: its store, its trace, and where it stands."""

    def __init__(self, run: Run, agents: Agents, engine: SearchEngine) -> None:
        self.run = run
        self.agents = agents
        self.settings = run.settings
        self.lessons = schedule(run.world, run.settings)
        folder = StoreFolder(run.folder)
        self.agenda = Agenda() if run.settings.strategy == "class" else None
        progress = Progress()

        def watch(event: Event, store: Store) -> None:
            progress(event, store)
            self._remember(event, store)

        self.store = folder.store(watch=watch)
        self.environment = Environment(self.store, engine, agents.judge)
        commits = [event for event in folder.events if isinstance(event, Committed)]
        begun = progress.lessons(folder.events)
        self.done = {lesson.key for lesson in self.lessons if lesson.key in begun and begun[lesson.key].finished}
        self._cut_short = {key: lesson for key, lesson in begun.items() if not lesson.finished}
        self.iteration = commits[-1].iteration if commits else 0
        self._given = last_iteration(folder.events)
        self.grades = [event for event in folder.events if isinstance(event, Graded)]
        self._pending: list[Event] = []
        self._mend_snapshots(folder, commits)
        settings = msgspec.to_builtins(run.settings)
        if agents.described:
            settings["agents"] = agents.described
        self.writer: Writer = folder.resume() if folder.reading else folder.start(run.settings.embedder, settings)

    @property
    def position(self) -> int:
        """How many lessons are over."""
        return len(self.done)

    def _mend_snapshots(self, folder: StoreFolder, commits: list[Committed]) -> None:
        """Write the snapshots of finished epochs that a crash between commit and snapshot left out."""
        for commit in commits:
            if self._ends_epoch(commit.position) and not self.run.has_snapshot(commit.iteration):
                self.run.snapshot(folder.store(commit.iteration), commit.iteration)

    def _ends_epoch(self, position: int) -> bool:
        """Whether an epoch is over once so many lessons are; none of the next begins before."""
        if position == len(self.lessons):
            return True
        return position > 0 and self.lessons[position - 1].epoch != self.lessons[position].epoch

    async def train(self, tick: Tick | None = None) -> None:
        """Go on until every lesson is learnt."""
        try:
            if not self.done:
                await self._evaluate(0)
            for epoch in range(1, self.settings.epochs + 1):
                left = [lesson for lesson in self.lessons if lesson.epoch == epoch and lesson.key not in self.done]
                # What was cut short comes first: that is where the trace ends.
                waiting = deque(sorted(left, key=lambda lesson: lesson.key not in self._cut_short))
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.settings.batch_size, len(waiting))):
                        group.create_task(self._work(waiting, tick))
        except* Exception as failures:
            raise failures.exceptions[0] from None
        finally:
            self.writer.close()

    async def _work(self, waiting: deque[Lesson], tick: Tick | None) -> None:
        """One place at the bench: the next lesson, as long as there is one."""
        while waiting:
            lesson = waiting.popleft()
            started = time.perf_counter()
            await self._teach(lesson)
            self.done.add(lesson.key)
            self.iteration += 1
            if self._ends_epoch(self.position):
                await self._evaluate(lesson.epoch)
            self._commit()
            self.run.timed("iteration", time.perf_counter() - started, iteration=self.iteration)
            if tick:
                tick(self.position, len(self.lessons), self._running())

    def _commit(self) -> None:
        """Everything done so far, by this lesson and by those still under way, is durable once this returns."""
        store = self.store
        self._pending.append(Committed(self.iteration, self.position, store.fingerprint, len(store), store.links))
        self.writer.commit(self._pending)
        self._pending = []
        if self._ends_epoch(self.position):
            self.run.snapshot(store, self.iteration)

    def _record(self, event: Event) -> None:
        self._pending.append(event)
        self._remember(event, self.store)

    def _remember(self, event: Event, store: Store) -> None:
        """Let the agenda hear of everything the trace holds, as it happened."""
        if self.agenda is None:
            return
        if isinstance(event, Began) and event.phase == "forward":
            self.agenda.note_question(event.text)
        elif isinstance(event, Acted):
            self.agenda.note_turn(event.action, render(event.result, lambda id: store[id].text))

    async def _teach(self, lesson: Lesson) -> None:
        """Forward, grade, backward; of a lesson that was cut short, what is left."""
        question = lesson.question
        begun = self._cut_short.pop(lesson.key, None)
        if begun is None:
            self._given += 1
            begun = Underway(self._given)
            self._record(self._began(begun, "forward", lesson))
        if begun.grade is None:
            forward = await self._play("forward", begun, Forward(question.text))
            if forward.outcome == "agent_failed":
                return
            f1, em = 0.0, 0.0
            if forward.answer is not None:
                f1, em = grade(forward.answer, question.golds, question.unanswerable)
            begun.grade = Graded(begun.iteration, question.id, question.golds, f1, em, forward.answer)
            begun.forward = list(forward.steps)
            self._record(begun.grade)
            self.grades.append(begun.grade)
            self._record(self._began(begun, "backward", lesson))
        graded, turns = begun.grade, tuple(Turn(step.action, step.observation) for step in begun.forward)
        verdict: Verdict = "out of budget" if graded.answer is None else "right" if graded.f1 == 1.0 else "wrong"
        agenda = self.agenda.errands(question.text) if self.agenda else ()
        await self._play("backward", begun, Backward(question.text, turns, graded.golds, graded.f1, verdict, agenda))

    def _began(self, begun: Underway, phase: Phase, lesson: Lesson) -> Began:
        """A model is called what it is, also when a cassette plays it."""
        role, given = ("reader", self.settings.reader) if phase == "forward" else ("curator", self.settings.curator)
        agent = self.agents.described.get(role, {}).get("agent", given)
        return Began(begun.iteration, phase, agent, lesson.question.id, lesson.question.text, lesson.epoch)

    async def _play(self, phase: Phase, begun: Underway, task: Forward | Backward) -> Transcript:
        settings = self.settings
        reads = phase == "forward"
        transcript = await play(
            self.agents.reader() if reads else self.agents.curator(),
            self.environment,
            "reader" if reads else "curator",
            task,
            settings.forward_budget if reads else settings.backward_budget,
            settings.memory,
            lambda number, step: self._record(
                Acted(begun.iteration, phase, number, step.action, step.result, step.verdict)
            ),
            begun.forward if reads else begun.backward,
        )
        self._record(Ended(begun.iteration, phase, transcript.outcome, transcript.failure, transcript.usage))
        return transcript

    async def _evaluate(self, epoch: int) -> None:
        """The eval split on the store as it is, for the per-epoch curve; the test splits are never touched."""
        questions = self.run.world.split("eval") if self.settings.eval else ()
        if not questions:
            return
        rows = await examine(self.store.copy(), self.environment.engine, questions, self.agents.reader)
        data = msgspec.to_builtins(summarise(rows))
        self._record(Noted(self.iteration, "eval", {"epoch": epoch, **data}))

    def _running(self) -> str:
        recent = self.grades[-20:]
        f1 = sum(grade.f1 for grade in recent) / max(1, len(recent))
        return f"forward F1 {f1:.2f}  documents {len(self.store):,}  links {self.store.links:,}"


def finished_store(run: Run) -> Store:
    return StoreFolder(run.folder).store()
