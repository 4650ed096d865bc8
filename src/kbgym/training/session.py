"""Training sessions: an open store with its trace that plays, records, resumes and commits lessons.

Every lesson ends with a commit that is durable before the next one starts. Concurrent lessons share one store, and the
trace has their steps in the order in which they took effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from kbgym.errors import BadInput
from kbgym.gym.actions import Action, Observation
from kbgym.gym.calibration import calibrate
from kbgym.gym.environment import Step
from kbgym.gym.episode import Transcript, play
from kbgym.gym.grading import Grade
from kbgym.gym.policy import Agenda, Agent, Backward, Forward, IndexTask
from kbgym.gym.tools import Role
from kbgym.progress import ProgressCallback
from kbgym.search.engine import Engine
from kbgym.store import Store
from kbgym.store.guard import Judge
from kbgym.trace.events import TUNED, Acted, Began, Ended, Event, Graded, Noted, Phase
from kbgym.trace.live import LiveStore
from kbgym.training.exam import examine, summarise
from kbgym.training.lessons import Lesson, LessonState, Progress, schedule
from kbgym.training.run import Run, Settings
from kbgym.worlds.world import Question

EVAL = ("n", "f1", "em", "set_f1", "actions", "characters", "outcomes")  # fields of an evaluation kept in the trace


class Agents(msgspec.Struct, frozen=True):
    """The agents of a training run.

    Attributes:
        reader: Makes the policy of each forward pass.
        curator: Makes the policy of each backward pass.
        judge: Decides whether two documents are duplicates; None for the rule.
        described: The model names, parameters and prompt hashes recorded in the trace.
        agenda: Creates the agenda of the strategy `class`; without it, curators have none.
    """

    reader: Agent
    curator: Agent
    judge: Judge | None = None
    described: dict[str, Any] = {}
    agenda: Callable[[], Agenda] | None = None


def recorded_settings(settings: Settings, agents: Agents) -> dict[str, Any]:
    """Return the settings kept in the first event of a trace; later additions only if they are not the default."""
    later, items = ("search", "begins", "slots", "slot_threshold"), msgspec.to_builtins(settings).items()
    found = {name: value for name, value in items if name not in later or value != getattr(Settings(), name)}
    return {**found, "agents": agents.described} if agents.described else found


class Session:
    """An open store in training, kept in the run's folder or in the database at `url`.

    Evaluations at the end of an epoch exist only for a store in a folder.
    """

    def __init__(self, run: Run, agents: Agents, engine: Callable[[Store], Engine], url: str | None = None) -> None:
        """Open the store, replay its trace and create a search engine over it."""
        if run.settings.strategy == "class" and agents.agenda is None:
            raise BadInput("the strategy class needs an agenda: give Agents one, or let agents_named make them.")
        self.run, self.agents, self.settings = run, agents, run.settings
        self.lessons = schedule(run.world, run.settings)
        self.progress = Progress()
        self.tick: ProgressCallback | None = None
        self.clear()
        self.live = LiveStore(
            run.folder if url is None else url,
            engine,
            (self.progress, self),
            judge=agents.judge,
            ranking=self.settings.ranking,
            observations=self.settings.observations,
            embedder=self.settings.embedder,
            settings=recorded_settings(self.settings, agents),
            position=lambda: self.position,
        )

    @property
    def store(self) -> Store:
        return self.live.store

    @property
    def iteration(self) -> int:
        return self.live.iteration

    @property
    def position(self) -> int:
        """Return the number of finished lessons."""
        return self.progress.over

    def clear(self) -> None:
        self.agenda = self.agents.agenda() if self.agents.agenda else None
        self.grades: list[Graded] = []

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        """Follow the trace, live or replayed: update the agenda and the grades."""
        if isinstance(event, Graded):
            self.grades.append(event)
        if self.agenda is None:
            return
        if isinstance(event, Began) and event.phase == "forward":
            self.agenda.note_question(event.text, event.iteration)
        elif isinstance(event, Ended) and (event.phase == "backward" or event.outcome == "agent_failed"):
            self.agenda.release(event.iteration)
        elif isinstance(event, Acted):
            self.agenda.note_turn(event.action, event.result, store.look)

    # -- lessons ------------------------------------------------------------------------------------------------------

    def pending(self, lessons: Sequence[Lesson]) -> Iterator[list[Lesson]]:
        """Yield the unfinished lessons of each epoch, interrupted ones first."""
        for epoch in sorted({lesson.epoch for lesson in lessons}):
            left = [lesson for lesson in lessons if lesson.epoch == epoch and not self.progress.is_over(lesson)]
            if left:
                yield sorted(left, key=lambda lesson: lesson.key not in self.progress.begun)

    def answered(self, lesson: Lesson) -> list[Question]:
        """Return the questions of all finished lessons in order of the schedule, then that of `lesson`."""
        return [*(other.question for other in self.lessons if self.progress.is_over(other)), lesson.question]

    def state(self, lesson: Lesson) -> LessonState:
        return self.progress.begun[lesson.key]

    def index_tasks(self, lesson: Lesson) -> tuple[IndexTask, ...]:
        """Return the agenda's tasks for a lesson; none without an agenda."""
        return self.agenda.index_tasks(lesson.question.text, self.state(lesson).iteration) if self.agenda else ()

    async def begin(self, lesson: Lesson) -> LessonState:
        """Start a lesson, or return the state of one that was interrupted."""
        if lesson.key not in self.progress.begun:
            async with self.live.write():
                self.live.record(self._began(self.progress.last + 1, "forward", lesson))
        return self.state(lesson)

    async def play(self, phase: Phase, lesson: Lesson, agent: Agent, task: Forward | Backward) -> Transcript:
        """Play a pass on the store, continuing after its steps in the trace."""
        state, settings = self.state(lesson), self.settings
        role: Role = "reader" if phase == "forward" else "curator"
        budget = settings.forward_budget if phase == "forward" else settings.backward_budget
        past = state.forward if phase == "forward" else state.backward
        acting = _Recording(self.live, state.iteration, phase, len(past))
        return await play(agent(), acting, role, task, budget, settings.memory, past=past)

    async def grade(self, lesson: Lesson, forward: Transcript, grade: Grade) -> None:
        """Record the end of the forward pass, its grade, and the start of the backward pass."""
        number, question = self.state(lesson).iteration, lesson.question
        async with self.live.write():
            self.live.record(_ended(number, "forward", forward))
            self.live.record(Graded(number, question.id, question.golds, *grade, forward.answer))
            self.live.record(self._began(number, "backward", lesson))

    async def end(self, lesson: Lesson, phase: Phase, transcript: Transcript) -> None:
        """Record the end of the last pass of a lesson."""
        async with self.live.write():
            self.live.record(_ended(self.state(lesson).iteration, phase, transcript))

    async def commit(self, lesson: Lesson) -> None:
        """Make everything done so far durable, after an evaluation if the lesson ended its epoch."""
        if not self.live.shared:  # in a shared store every step was durable when its turn ended
            if self._ends_epoch(self.position):
                await self._calibrate()
                await self._evaluate(lesson.epoch)
            async with self.live.write():
                durable = self.live.commit()
            await asyncio.shield(durable)
        if self.tick:
            recent = self.grades[-20:]
            f1 = sum(grade.f1 for grade in recent) / max(1, len(recent))
            summary = f"forward F1 {f1:.2f}  documents {len(self.store):,}  links {self.store.links:,}"
            self.tick(self.position, len(self.lessons), summary)

    async def _calibrate(self) -> None:
        """Choose the threshold of the reserved slot on the train and eval questions and record it."""
        if self.settings.ranking != "slot":
            return
        world, live = self.run.world, self.live
        questions = [(one.text, one.support) for split in ("train", "eval") for one in world.split(split)]
        await live.environment.engine.prepare(text for text, _ in questions)
        if (threshold := calibrate(live.environment, questions)) is not None:
            tuned = {"slot_threshold": threshold}
            live.store.tune(tuned)
            live.record(Noted(self.iteration + 1, TUNED, tuned))

    async def evaluate_untrained(self) -> None:
        """Evaluate the store before the first lesson, unless it is shared: then it has no learning curve."""
        if self.position == 0 and not self.live.shared:
            await self._evaluate(0)

    async def _evaluate(self, epoch: int) -> None:
        """Ask the eval split on the current store for the learning curve; the test splits are never asked."""
        questions = self.run.world.split("eval") if self.settings.eval else ()
        if not questions:
            return
        engine = self.live.environment.engine
        rows = await examine(self.store, engine, questions, self.agents.reader, settings=self.settings)
        data = {name: value for name, value in msgspec.to_builtins(summarise(rows)).items() if name in EVAL}
        # It belongs to the commit that ends the epoch; before the first lesson there is no such commit.
        self.live.record(Noted(self.iteration + 1 if epoch else 0, "eval", {"epoch": epoch, **data}))

    def _began(self, iteration: int, phase: Phase, lesson: Lesson) -> Began:
        """Return the start event of a pass, with the name of the model even if a cassette replays it."""
        role, given = ("reader", self.settings.reader) if phase == "forward" else ("curator", self.settings.curator)
        agent = self.agents.described.get(role, {}).get("agent", given)
        return Began(iteration, phase, agent, lesson.question.id, lesson.question.text, lesson.epoch)

    def _ends_epoch(self, position: int) -> bool:
        """Return True if an epoch is over after `position` lessons."""
        around = [lesson.epoch for lesson in self.lessons[max(0, position - 1) : position + 1]]
        return position == len(self.lessons) or around[0] != around[-1]


class _Recording:
    """The live store as seen by a pass; each step is recorded when it takes effect."""

    def __init__(self, live: LiveStore, iteration: int, phase: Phase, taken: int) -> None:
        self._live, self._iteration, self._phase, self._taken = live, iteration, phase, taken

    @property
    def require_visible_ids(self) -> bool:
        return self._live.environment.require_visible_ids

    async def carry_out(self, action: Action) -> Step:
        live = self._live
        await live.prepare([action])
        async with live.write():
            step = await live.environment.carry_out(action)
            self._taken += 1
            acted = Acted(self._iteration, self._phase, self._taken, step.action, step.result, step.verdict)
            live.record(acted, step.observation)
        return step


def _ended(iteration: int, phase: Phase, transcript: Transcript) -> Ended:
    return Ended(iteration, phase, transcript.outcome, transcript.failure, transcript.usage)
