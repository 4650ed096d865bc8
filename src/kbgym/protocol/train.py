"""Training: one question at a time, answer, see the gold, edit the store, commit.

Every iteration is one transaction of the trace, durable before the next begins. Training that is interrupted goes on
where the trace ends and comes to the same bytes as training that was not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from kbgym.agents.reference.agenda import Agenda
from kbgym.environment import Engine as SearchEngine
from kbgym.environment import Environment
from kbgym.episode import Transcript, play
from kbgym.grade import grade
from kbgym.policy import Agent, Backward, Forward, Verdict
from kbgym.protocol.exam import Tick, examine, summarise
from kbgym.protocol.run import Run, Settings
from kbgym.store import Store
from kbgym.store.guard import Judge
from kbgym.tools import render
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Graded, Noted, Phase
from kbgym.trace.folder import StoreFolder
from kbgym.trace.log import Writer
from kbgym.worlds.people import training_subset
from kbgym.worlds.world import Question, World

STRATEGIES = ("paper", "class")


class Agents(msgspec.Struct, frozen=True):
    """Who plays. `described` is what the trace remembers of models: names, what they are asked with, prompt hashes."""

    reader: Agent
    curator: Agent
    judge: Judge | None = None
    described: dict[str, Any] = {}


def schedule(world: World, settings: Settings) -> list[tuple[int, Question]]:
    """Every (epoch, question) in order: the same questions each epoch, in an order of that epoch's own."""
    questions = training_subset(world.split("train"), settings.questions)
    lessons: list[tuple[int, Question]] = []
    for epoch in range(1, settings.epochs + 1):
        order = list(questions)
        Random(f"{settings.seed}:epoch:{epoch}").shuffle(order)
        lessons += [(epoch, question) for question in order]
    return lessons


class Trainer:
    """A run in progress: its store, its trace, and where it stands."""

    def __init__(self, run: Run, agents: Agents, engine: SearchEngine) -> None:
        self.run = run
        self.agents = agents
        self.settings = run.settings
        self.lessons = schedule(run.world, run.settings)
        folder = StoreFolder(run.folder)
        self.agenda = Agenda() if run.settings.strategy == "class" else None
        self.store = folder.store(watch=self._remember)
        self.environment = Environment(self.store, engine, agents.judge)
        commits = [event for event in folder.events if isinstance(event, Committed)]
        self.iteration = commits[-1].iteration if commits else 0
        self.position = commits[-1].position if commits else 0
        self.grades = [event for event in folder.events if isinstance(event, Graded)]
        self._mend_snapshots(folder, commits)
        settings = msgspec.to_builtins(run.settings)
        if agents.described:
            settings["agents"] = agents.described
        self.writer: Writer = folder.resume() if folder.reading else folder.start(run.settings.embedder, settings)

    def _mend_snapshots(self, folder: StoreFolder, commits: list[Committed]) -> None:
        """Write the snapshots of finished epochs that a crash between commit and snapshot left out."""
        for commit in commits:
            if self._ends_epoch(commit.position) and not self.run.has_snapshot(commit.iteration):
                self.run.snapshot(folder.store(commit.iteration), commit.iteration)

    def _ends_epoch(self, position: int) -> bool:
        """Whether an epoch is over once so many lessons were taught."""
        if position == len(self.lessons):
            return True
        return position > 0 and self.lessons[position - 1][0] != self.lessons[position][0]

    async def train(self, tick: Tick | None = None) -> None:
        """Go on until every lesson is learnt."""
        size = max(1, self.settings.batch_size)
        try:
            while self.position < len(self.lessons):
                started = time.perf_counter()
                batch = self.lessons[self.position : self.position + size]
                await self._teach(batch)
                self.run.timed("iteration", time.perf_counter() - started, iteration=self.iteration)
                if tick:
                    tick(self.position, len(self.lessons), self._running())
        finally:
            self.writer.close()

    async def _teach(self, batch: Sequence[tuple[int, Question]]) -> None:
        """One transaction: the passes of a batch side by side, then the commit."""
        events: list[Event] = []
        if self.position == 0:
            await self._evaluate(0, events)
        lessons = [
            self._lesson(self.iteration + number, epoch, question, events)
            for number, (epoch, question) in enumerate(batch, 1)
        ]
        if len(lessons) == 1:
            await lessons[0]
        else:
            await asyncio.gather(*lessons)
        self.iteration += len(batch)
        self.position += len(batch)
        if self._ends_epoch(self.position):
            await self._evaluate(batch[-1][0], events)
        store = self.store
        events.append(Committed(self.iteration, self.position, store.fingerprint, len(store), store.links))
        self.writer.commit(events)
        self.grades += [event for event in events if isinstance(event, Graded)]
        if self._ends_epoch(self.position):
            self.run.snapshot(store, self.iteration)

    def _record(self, event: Event, events: list[Event]) -> None:
        events.append(event)
        self._remember(event, self.store)

    def _remember(self, event: Event, store: Store) -> None:
        """Let the agenda hear of everything the trace holds, as it happened."""
        if self.agenda is None:
            return
        if isinstance(event, Began) and event.phase == "forward":
            self.agenda.note_question(event.text)
        elif isinstance(event, Acted):
            self.agenda.note_turn(event.action, render(event.result, lambda id: store[id].text))

    async def _lesson(self, iteration: int, epoch: int, question: Question, events: list[Event]) -> None:
        """Forward, grade, backward."""
        settings = self.settings
        self._record(Began(iteration, "forward", settings.reader, question.id, question.text, epoch), events)
        forward = await self._play("forward", iteration, Forward(question.text), events)
        if forward.outcome == "agent_failed":
            return
        f1, em = 0.0, 0.0
        if forward.answer is not None:
            f1, em = grade(forward.answer, question.golds, question.unanswerable)
        events.append(Graded(iteration, question.id, question.golds, f1, em, forward.answer))
        verdict: Verdict = "out of budget" if forward.answer is None else "right" if f1 == 1.0 else "wrong"
        agenda = self.agenda.errands(question.text) if self.agenda else ()
        task = Backward(question.text, forward.turns, question.golds, f1, verdict, agenda)
        events.append(Began(iteration, "backward", settings.curator, question.id, question.text, epoch))
        await self._play("backward", iteration, task, events)

    async def _play(self, phase: Phase, iteration: int, task: Forward | Backward, events: list[Event]) -> Transcript:
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
                Acted(iteration, phase, number, step.action, step.result, step.verdict), events
            ),
        )
        events.append(Ended(iteration, phase, transcript.outcome, transcript.failure, transcript.usage))
        return transcript

    async def _evaluate(self, epoch: int, events: list[Event]) -> None:
        """The eval split on the store as it is, for the per-epoch curve; the test splits are never touched."""
        questions = self.run.world.split("eval") if self.settings.eval else ()
        if not questions:
            return
        rows = await examine(self.store.copy(), self.environment.engine, questions, self.agents.reader)
        data = msgspec.to_builtins(summarise(rows))
        events.append(Noted(self.iteration, "eval", {"epoch": epoch, **data}))

    def _running(self) -> str:
        recent = self.grades[-20:]
        f1 = sum(grade.f1 for grade in recent) / max(1, len(recent))
        return f"forward F1 {f1:.2f}  documents {len(self.store):,}  links {self.store.links:,}"


def finished_store(run: Run) -> Store:
    return StoreFolder(run.folder).store()
