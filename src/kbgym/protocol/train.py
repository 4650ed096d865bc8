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

from kbgym.actions import Action
from kbgym.agents.reference.agenda import Agenda
from kbgym.environment import Engine as SearchEngine
from kbgym.environment import Environment, Step
from kbgym.episode import Transcript, play
from kbgym.grading import grade
from kbgym.policy import Agent, Backward, Forward, Turn, Verdict
from kbgym.protocol.admission import Admission
from kbgym.protocol.bench import Bench
from kbgym.protocol.exam import Tick, examine, summarise
from kbgym.protocol.lessons import Lesson, Progress, Underway, schedule
from kbgym.protocol.run import Run, Settings
from kbgym.store import Store
from kbgym.store.guard import Judge
from kbgym.tools import Role, render
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Graded, Noted, Phase
from kbgym.trace.folder import StoreFolder
from kbgym.trace.place import Place
from kbgym.worlds.world import Question

STRATEGIES = ("paper", "class")
READER: Role = "reader"
CURATOR: Role = "curator"
_LOOK_AGAIN = 0.1  # seconds until a lesson that another trainer has is looked at again


class Agents(msgspec.Struct, frozen=True):
    """Who plays. `described` is what the trace remembers of models: names, what they are asked with, prompt hashes."""

    reader: Agent
    curator: Agent
    judge: Judge | None = None
    described: dict[str, Any] = {}


def remembered(settings: Settings, agents: Agents) -> dict[str, Any]:
    """What a trace's first line keeps of how it was made."""
    found: dict[str, Any] = msgspec.to_builtins(settings)
    return {**found, "agents": agents.described} if agents.described else found


class Trainer:
    """A run in progress: its lessons, the bench they are taught at, and who plays.

    `place` is where the store is kept, by default the run's own folder. In a place that is shared several trainers of
    the same run teach the same lessons, each lesson one of them; nobody evaluates or keeps snapshots there.
    """

    def __init__(self, run: Run, agents: Agents, engine: SearchEngine, place: Place | None = None) -> None:
        self.run = run
        self.agents = agents
        self.settings = run.settings
        self.lessons = schedule(run.world, run.settings)
        self.progress = Progress()
        self.agenda = Agenda() if run.settings.strategy == "class" else None
        self.grades: list[Graded] = []
        place = StoreFolder(run.folder) if place is None else place
        environment = Environment(place.store(watch=self._hear), engine, agents.judge, run.settings.ranking)
        if isinstance(place, StoreFolder):
            self._mend_snapshots(place)
        settings = remembered(run.settings, agents)
        held_out = run.world.split("eval") if run.settings.admission else ()
        self.admission = Admission(run.settings, held_out, agents.reader, agents.curator)
        self.bench = Bench(place, environment, self._hear, lambda: self.position, run.settings.embedder, settings)

    @property
    def store(self) -> Store:
        return self.bench.store

    @property
    def iteration(self) -> int:
        return self.bench.iteration

    @property
    def position(self) -> int:
        """How many lessons are over."""
        return sum(self.progress.is_over(lesson) for lesson in self.lessons)

    def _mend_snapshots(self, folder: StoreFolder) -> None:
        """Write the snapshots of finished epochs that a crash between commit and snapshot left out."""
        for commit in (event for event in folder.events if isinstance(event, Committed)):
            if self._ends_epoch(commit.position) and not self.run.has_snapshot(commit.iteration):
                self.run.snapshot(folder.store(commit.iteration), commit.iteration)

    def _ends_epoch(self, position: int) -> bool:
        """Whether an epoch is over once so many lessons are; none of the next begins before."""
        if position == len(self.lessons):
            return True
        return position > 0 and self.lessons[position - 1].epoch != self.lessons[position].epoch

    def _hear(self, event: Event, store: Store) -> None:
        """Whatever the trace holds, as it happens and as it is replayed: the lessons and the agenda come from it."""
        self.progress(event, store)
        if isinstance(event, Graded):
            self.grades.append(event)
        if self.agenda is None:
            return
        if isinstance(event, Began) and event.phase == "forward":
            self.agenda.note_question(event.text, event.iteration)
        elif isinstance(event, Ended) and (event.phase == "backward" or event.outcome == "agent_failed"):
            self.agenda.give_back(event.iteration)
        elif isinstance(event, Acted):
            self.agenda.note_turn(event.action, render(event.result, lambda id: store[id].text))

    # -- lessons ------------------------------------------------------------------------------------------------------

    async def train(self, tick: Tick | None = None) -> None:
        """Go on until every lesson is learnt."""
        try:
            if self.position == 0:
                await self._evaluate(0)
            for epoch in range(1, self.settings.epochs + 1):
                left = [one for one in self.lessons if one.epoch == epoch and not self.progress.is_over(one)]
                # What was cut short comes first: that is where the trace ends.
                waiting = deque(sorted(left, key=lambda lesson: lesson.key not in self.progress.begun))
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.settings.batch_size, len(waiting))):
                        group.create_task(self._work(waiting, tick))
        except* Exception as failures:
            raise failures.exceptions[0] from None
        finally:
            self.bench.close()

    async def _work(self, waiting: deque[Lesson], tick: Tick | None) -> None:
        """One seat at the bench: the next lesson, as long as there is one."""
        while waiting:
            lesson = waiting.popleft()
            if self.bench.shared:
                await self._share(lesson, waiting)
            else:
                started = time.perf_counter()
                await self._teach(lesson)
                await self._finish(lesson)
                self.run.timed("iteration", time.perf_counter() - started, iteration=self.iteration)
            if tick:
                tick(self.position, len(self.lessons), self._running())

    async def _finish(self, lesson: Lesson) -> None:
        """Everything done so far, by this lesson and by those still under way, is durable once this returns."""
        ends = self._ends_epoch(self.position)
        if ends:
            await self._evaluate(lesson.epoch)
        self.bench.commit()
        if ends:
            self.run.snapshot(self.store, self.iteration)

    async def _share(self, lesson: Lesson, waiting: deque[Lesson]) -> None:
        """Teach a lesson unless another trainer has it; then come back to it, in case that one dies over it."""
        name = f"lesson {lesson.epoch} {lesson.question.id}"
        if not await self.bench.claim(name):
            waiting.append(lesson)
            await asyncio.sleep(_LOOK_AGAIN)
        else:
            if not self.progress.is_over(lesson):
                await self._teach(lesson)
            await self.bench.release(name)

    async def _teach(self, lesson: Lesson) -> None:
        """Forward, grade, backward; of a lesson that was cut short, what is left."""
        question, bench = lesson.question, self.bench
        if lesson.key not in self.progress.begun:
            async with bench.turn():
                bench.record(self._began(self.progress.last + 1, "forward", lesson))
        begun = self.progress.begun[lesson.key]
        if begun.grade is None:
            forward = await self._play("forward", begun, Forward(question.text))
            async with bench.turn():
                bench.record(_ended(begun, "forward", forward))
                if forward.outcome == "agent_failed":
                    return
                f1, em = 0.0, 0.0
                if forward.answer is not None:
                    f1, em = grade(forward.answer, question.golds, question.unanswerable)
                bench.record(Graded(begun.iteration, question.id, question.golds, f1, em, forward.answer))
                bench.record(self._began(begun.iteration, "backward", lesson))
        backward = await self._backward(begun, lesson)
        async with bench.turn():
            bench.record(_ended(begun, "backward", backward))

    async def _backward(self, begun: Underway, lesson: Lesson) -> Transcript:
        """A backward pass; with admission on trial, and recorded as what became of it."""
        task = self._task(lesson.question, begun)
        if not self.settings.admission:
            return await self._play("backward", begun, task)
        answered = [other.question for other in self.lessons if self.progress.is_over(other)] + [lesson.question]
        return await self.admission.lesson(self.bench.environment, task, begun.iteration, answered, self.bench.record)

    def _task(self, question: Question, begun: Underway) -> Backward:
        assert begun.grade is not None
        answer, f1 = begun.grade.answer, begun.grade.f1
        verdict: Verdict = "out of budget" if answer is None else "right" if f1 == 1.0 else "wrong"
        turns = tuple(Turn(step.action, step.observation) for step in begun.forward)
        agenda = self.agenda.errands(question.text, begun.iteration) if self.agenda else ()
        return Backward(question.text, turns, question.golds, f1, verdict, agenda)

    def _began(self, iteration: int, phase: Phase, lesson: Lesson) -> Began:
        """A model is called what it is, also when a cassette plays it."""
        role, given = ("reader", self.settings.reader) if phase == "forward" else ("curator", self.settings.curator)
        agent = self.agents.described.get(role, {}).get("agent", given)
        return Began(iteration, phase, agent, lesson.question.id, lesson.question.text, lesson.epoch)

    async def _play(self, phase: Phase, begun: Underway, task: Forward | Backward) -> Transcript:
        settings = self.settings
        if phase == "forward":
            policy, role, budget, past = self.agents.reader(), READER, settings.forward_budget, begun.forward
        else:
            policy, role, budget, past = self.agents.curator(), CURATOR, settings.backward_budget, begun.backward
        acting = _Acting(self.bench, begun.iteration, phase, len(past))
        return await play(policy, acting, role, task, budget, settings.memory, past=past)

    async def _evaluate(self, epoch: int) -> None:
        """The eval split on the store as it is, for the per-epoch curve; the test splits are never touched."""
        questions = self.run.world.split("eval") if self.settings.eval else ()
        if not questions or self.bench.shared:
            return
        engine, ranking = self.bench.environment.engine, self.settings.ranking
        rows = await examine(self.store.copy(), engine, questions, self.agents.reader, ranking=ranking)
        data = msgspec.to_builtins(summarise(rows))
        # It belongs to the commit that ends the epoch; before the first lesson there is none yet.
        self.bench.record(Noted(self.iteration + 1 if epoch else 0, "eval", {"epoch": epoch, **data}))

    def _running(self) -> str:
        recent = self.grades[-20:]
        f1 = sum(grade.f1 for grade in recent) / max(1, len(recent))
        return f"forward F1 {f1:.2f}  documents {len(self.store):,}  links {self.store.links:,}"


class _Acting:
    """What a pass acts on: the bench, where each step is recorded in the turn in which it took effect."""

    def __init__(self, bench: Bench, iteration: int, phase: Phase, taken: int) -> None:
        self._bench, self._iteration, self._phase, self._taken = bench, iteration, phase, taken

    async def step(self, action: Action, role: Role) -> Step:
        async with self._bench.turn():
            step = await self._bench.environment.step(action, role)
            self._taken += 1
            self._bench.record(Acted(self._iteration, self._phase, self._taken, step.action, step.result, step.verdict))
        return step


def _ended(begun: Underway, phase: Phase, passed: Transcript) -> Ended:
    return Ended(begun.iteration, phase, passed.outcome, passed.failure, passed.usage)


def finished_store(run: Run) -> Store:
    return StoreFolder(run.folder).store()
