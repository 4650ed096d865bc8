"""Training: one question at a time, answer, see the gold, edit the store, commit.

The end of every lesson is a commit of the trace, durable before the next lesson takes its place. Training that is
interrupted goes on where the trace ends and comes to the same bytes as training that was not. With a batch size above
one, so many lessons are under way at once on the one store, and the trace has their steps in the order they took
effect; a lesson that an interruption cut short is resumed from its last committed step.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec

from kbgym.canonical import sweep
from kbgym.errors import BadInput
from kbgym.gym.actions import Action
from kbgym.gym.environment import Environment, SearchEngine, Step
from kbgym.gym.episode import Transcript, play
from kbgym.gym.grading import score
from kbgym.gym.policy import Agenda, Agent, Backward, Forward, PassVerdict, Turn
from kbgym.gym.tools import Role, check
from kbgym.progress import ProgressCallback
from kbgym.store import Store
from kbgym.store.guard import Judge
from kbgym.trace.backend import ConnectionLost, open_backend
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Graded, Noted, Phase
from kbgym.trace.folder import StoreFolder
from kbgym.trace.live import LiveStore
from kbgym.training.asking import qa_pairs
from kbgym.training.exam import examine, summarise
from kbgym.training.gate import GateQuestions, judged
from kbgym.training.lessons import Lesson, LessonState, Progress, schedule
from kbgym.training.run import Run, Settings
from kbgym.training.trial import land, refuse, trial
from kbgym.worlds.world import Question

EVAL = ("n", "f1", "em", "set_f1", "actions", "characters", "outcomes")  # what the trace keeps of an evaluation
READER: Role = "reader"
CURATOR: Role = "curator"
_LOOK_AGAIN = 0.1  # seconds until lessons are looked at again of which other trainers have all


class Agents(msgspec.Struct, frozen=True):
    """Who plays. `described` is what the trace remembers of models: names, what they are asked with, prompt hashes.

    `agenda` makes what the strategy `class` works from; without one a curator is given none.
    """

    reader: Agent
    curator: Agent
    judge: Judge | None = None
    described: dict[str, Any] = {}
    agenda: Callable[[], Agenda] | None = None


def remembered(settings: Settings, agents: Agents) -> dict[str, Any]:
    """What a trace's first line keeps of how it was made."""
    found: dict[str, Any] = msgspec.to_builtins(settings)
    for name in (
        "search",
        "per_source",
        "begins",
    ):  # said only where it is not the paper's, so that its traces stay as they are
        if found[name] == getattr(Settings(), name):
            del found[name]
    return {**found, "agents": agents.described} if agents.described else found


def join(url: str, initial: str | None, embedder: str, settings: dict[str, Any]) -> None:
    """See that a database store can be trained with others: begun with documents of this fingerprint (with any, where
    it is none) and with these settings, or new."""
    place = open_backend(url)
    try:
        if initial is not None and place.initial.fingerprint != initial:
            raise BadInput(f"{place.name} began with other documents than this world's.")
        if place.genesis is None:
            place.start(embedder, settings).close()
            return
        begun = place.genesis.settings
        # How many lessons one process has under way is its own affair.
        if other := [name for name in settings if name != "batch_size" and begun.get(name) != settings[name]]:
            values = "; ".join(f"{name} {begun.get(name)!r}, not {settings[name]!r}" for name in other)
            raise BadInput(f"{place.name} is being trained with {values}.")
    finally:
        place.close()


class Trainer:
    """A run in progress: its lessons, the live store they change, and who plays.

    `url` is a database that keeps the store, by default the run's own folder does. Several trainers of the same run may
    teach at one database, each lesson one of them; nobody evaluates or keeps snapshots there.
    """

    def __init__(
        self, run: Run, agents: Agents, engine: SearchEngine, url: str | None = None, known: Store | None = None
    ) -> None:
        """`known` is the store the engine was made over, where others may have changed it since."""
        self.run = run
        self.ended = 0  # lessons, by this trainer
        self.agents = agents
        self.settings = settings = run.settings
        self.lessons = schedule(run.world, settings)
        self.progress = Progress()
        if settings.strategy == "class" and agents.agenda is None:
            raise BadInput("the strategy class needs an agenda: give Agents one, or let agents_named make them.")
        self.clear()
        self.live = LiveStore(
            run.folder if url is None else url,
            lambda store: engine if known is None else _caught_up(engine, known, store),
            (self.progress, self),
            judge=agents.judge,
            ranking=settings.ranking,
            observations=settings.observations,
            embedder=settings.embedder,
            settings=remembered(settings, agents),
            position=lambda: self.position,
        )
        held_out = qa_pairs(run.world.split("eval")) if settings.admission else ()
        self.panel = GateQuestions(
            settings.admission, held_out, agents.reader, settings.seed, settings.forward_budget, settings.memory
        )
        if url is None:
            self._mend_snapshots()

    @property
    def store(self) -> Store:
        return self.live.store

    @property
    def iteration(self) -> int:
        return self.live.iteration

    @property
    def position(self) -> int:
        """How many lessons are over."""
        return self.progress.over

    def _mend_snapshots(self) -> None:
        """Write the snapshots of finished epochs that a crash left out, and remove what one left half written."""
        sweep(self.run.folder / "snapshots")
        folder = StoreFolder(self.run.folder)
        for commit in (event for event in folder.events if isinstance(event, Committed)):
            if self._ends_epoch(commit.position) and not self.run.has_snapshot(commit.iteration):
                self.run.snapshot(folder.store(commit.iteration), commit.iteration)

    def _ends_epoch(self, position: int) -> bool:
        """Whether an epoch is over once so many lessons are; none of the next begins before."""
        if position == len(self.lessons):
            return True
        return position > 0 and self.lessons[position - 1].epoch != self.lessons[position].epoch

    def clear(self) -> None:
        self.agenda = self.agents.agenda() if self.agents.agenda else None
        self.grades: list[Graded] = []

    def __call__(self, event: Event, store: Store, observation: str) -> None:
        """Whatever the trace holds, as it happens and as it is replayed: the agenda comes from it."""
        if isinstance(event, Graded):
            self.grades.append(event)
        if self.agenda is None:
            return
        if isinstance(event, Began) and event.phase == "forward":
            self.agenda.note_question(event.text, event.iteration)
        elif isinstance(event, Ended) and (event.phase == "backward" or event.outcome == "agent_failed"):
            self.agenda.give_back(event.iteration)
        elif isinstance(event, Acted):
            self.agenda.note_turn(event.action, observation)

    # -- lessons ------------------------------------------------------------------------------------------------------

    async def train(self, tick: ProgressCallback | None = None) -> None:
        """Go on until every lesson is learnt."""
        try:
            if self.position == 0:
                await self._evaluate(0)
            for epoch in range(1, self.settings.epochs + 1):
                # Again, because another trainer's last commits may be lost with a server that crashes.
                while left := [one for one in self.lessons if one.epoch == epoch and not self.progress.is_over(one)]:
                    # What was cut short comes first: that is where the trace ends.
                    waiting = deque(sorted(left, key=lambda lesson: lesson.key not in self.progress.begun))
                    async with asyncio.TaskGroup() as group:
                        for _ in range(min(self.settings.batch_size, len(waiting))):
                            group.create_task(self._work(waiting, tick))
        except* Exception as failures:
            raise failures.exceptions[0] from None
        finally:
            await self.live.close()

    async def _work(self, waiting: deque[Lesson], tick: ProgressCallback | None) -> None:
        """The next lesson, as long as there is one."""
        refused = 0  # in a row
        while waiting:
            lesson = waiting.popleft()
            if self.live.shared:
                refused = 0 if await self._share(lesson, waiting) else refused + 1
                if refused and refused >= len(waiting):
                    await asyncio.sleep(_LOOK_AGAIN)
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
        async with self.live.turn():
            durable = self.live.commit()
        await asyncio.shield(durable)
        if ends:
            self.run.snapshot(self.store, self.iteration)

    async def _share(self, lesson: Lesson, waiting: deque[Lesson]) -> bool:
        """Teach a lesson unless another trainer has it; then come back to it, in case that one dies over it."""
        if not await self.live.claim(_claim(lesson)):
            waiting.append(lesson)
            return False
        try:
            if not self.progress.is_over(lesson):
                await self._teach(lesson)
                self.ended += 1
        except (_TakenOver, ConnectionLost):  # what is left of it is taught from where the trace ends
            waiting.append(lesson)
        await self.live.release(_claim(lesson))
        return True

    @asynccontextmanager
    async def _turn(self, lesson: Lesson, taken: int | None = None) -> AsyncIterator[None]:
        """A turn of the store for a lesson, of which so many steps were taken here.

        Where the connection broke meanwhile, another trainer may have gone on with the lesson: then it is theirs.
        """
        async with self.live.turn():
            begun = self.progress.begun.get(lesson.key)
            there = len(begun.forward) + len(begun.backward) if begun is not None else 0
            moved = begun is not None and (begun.finished or (taken is not None and taken != there))
            if self.live.shared and (moved or not self.live.holds(_claim(lesson))):
                raise _TakenOver(lesson.question.id)
            yield

    async def _teach(self, lesson: Lesson) -> None:
        """Forward, grade, backward; of a lesson that was cut short, what is left."""
        question, live = lesson.question, self.live
        if lesson.key not in self.progress.begun:
            async with self._turn(lesson):
                live.record(self._began(self.progress.last + 1, "forward", lesson))
        begun = self.progress.begun[lesson.key]
        if begun.grade is None:
            forward = await self._play("forward", lesson, begun, Forward(question.text))
            async with self._turn(lesson):
                live.record(_ended(begun, "forward", forward))
                if forward.outcome == "agent_failed":
                    return
                f1, em = score(forward.answer, question.golds, question.unanswerable)
                live.record(Graded(begun.iteration, question.id, question.golds, f1, em, forward.answer))
                live.record(self._began(begun.iteration, "backward", lesson))
        backward = await self._backward(begun, lesson)
        async with self._turn(lesson):
            live.record(_ended(begun, "backward", backward))

    async def _backward(self, begun: LessonState, lesson: Lesson) -> Transcript:
        """A backward pass; with admission on trial, and recorded as what became of it."""
        task, settings, live = self._task(lesson.question, begun), self.settings, self.live
        if not settings.admission:
            return await self._play("backward", lesson, begun, task)
        made = await trial(live, self.agents.curator, task, settings.backward_budget, settings.memory)
        answered = [other.question for other in self.lessons if self.progress.is_over(other)]
        self.panel.answered = qa_pairs([*answered, lesson.question])
        made, verdict = await judged(self.panel, made, begun.iteration)
        async with self._turn(lesson):
            if verdict is not None and verdict["verdict"] == "quarantined":
                refuse(live, begun.iteration, "backward", made)
            else:
                await land(live, begun.iteration, "backward", made)
            if verdict is not None:
                live.record(Noted(begun.iteration, "admission", {"question": lesson.question.id, **verdict}))
        return made.transcript

    def _task(self, question: Question, begun: LessonState) -> Backward:
        assert begun.grade is not None
        answer, f1 = begun.grade.answer, begun.grade.f1
        verdict: PassVerdict = "out of budget" if answer is None else "right" if f1 == 1.0 else "wrong"
        turns = tuple(Turn(step.action, step.observation) for step in begun.forward)
        agenda = self.agenda.index_tasks(question.text, begun.iteration) if self.agenda else ()
        return Backward(question.text, turns, question.golds, f1, verdict, agenda)

    def _began(self, iteration: int, phase: Phase, lesson: Lesson) -> Began:
        """A model is called what it is, also when a cassette plays it."""
        role, given = ("reader", self.settings.reader) if phase == "forward" else ("curator", self.settings.curator)
        agent = self.agents.described.get(role, {}).get("agent", given)
        return Began(iteration, phase, agent, lesson.question.id, lesson.question.text, lesson.epoch)

    async def _play(self, phase: Phase, lesson: Lesson, begun: LessonState, task: Forward | Backward) -> Transcript:
        settings = self.settings
        if phase == "forward":
            policy, role, budget, past = self.agents.reader(), READER, settings.forward_budget, begun.forward
        else:
            policy, role, budget, past = self.agents.curator(), CURATOR, settings.backward_budget, begun.backward
        before = len(begun.forward) if phase == "backward" else 0
        acting = _Acting(self.live, begun.iteration, phase, len(past), lambda n: self._turn(lesson, before + n))
        return await play(policy, acting, role, task, budget, settings.memory, past=past)

    async def _evaluate(self, epoch: int) -> None:
        """The eval split on the store as it is, for the per-epoch curve; the test splits are never touched."""
        questions = self.run.world.split("eval") if self.settings.eval else ()
        if not questions or self.live.shared:
            return
        engine = self.live.environment.engine
        rows = await examine(self.store, engine, questions, self.agents.reader, settings=self.settings)
        data = {name: value for name, value in msgspec.to_builtins(summarise(rows)).items() if name in EVAL}
        # It belongs to the commit that ends the epoch; before the first lesson there is none yet.
        self.live.record(Noted(self.iteration + 1 if epoch else 0, "eval", {"epoch": epoch, **data}))

    def _running(self) -> str:
        recent = self.grades[-20:]
        f1 = sum(grade.f1 for grade in recent) / max(1, len(recent))
        return f"forward F1 {f1:.2f}  documents {len(self.store):,}  links {self.store.links:,}"


class _TakenOver(Exception):
    """Another trainer has the lesson."""


class _Acting:
    """What a pass acts on: the live store, where each step is recorded in the turn in which it took effect."""

    def __init__(
        self,
        live: LiveStore,
        iteration: int,
        phase: Phase,
        taken: int,
        turn: Callable[[int], AbstractAsyncContextManager[None]],
    ) -> None:
        self._live, self._iteration, self._phase, self._taken, self._turn = live, iteration, phase, taken, turn

    @property
    def require_visible_ids(self) -> bool:
        return self._live.environment.require_visible_ids

    async def step(self, action: Action, role: Role) -> Step:
        live, action = self._live, check(action, role)
        await live.prepare([action])
        async with self._turn(self._taken):
            step = await live.environment.carry_out(action)
            self._taken += 1
            acted = Acted(self._iteration, self._phase, self._taken, step.action, step.result, step.verdict)
            live.record(acted, step.observation)
        return step


def _claim(lesson: Lesson) -> str:
    return f"lesson {lesson.epoch} {lesson.question.id}"


def _caught_up(engine: SearchEngine, known: Store, now: Store) -> SearchEngine:
    """A search made over an earlier state of a store, brought to where the store is."""
    Environment(known, engine).sync_to(now)
    return engine


def _ended(begun: LessonState, phase: Phase, passed: Transcript) -> Ended:
    return Ended(begun.iteration, phase, passed.outcome, passed.failure, passed.usage)
