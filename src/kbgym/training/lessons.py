"""The schedule of lessons in training, and the progress of each according to the trace.

A lesson is one question in one epoch: a forward pass, its grade, a backward pass. Several may run concurrently, and a
commit at the end of one keeps the steps of the others; so a lesson may have to be resumed after an interruption.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import msgspec

from kbgym.gym.actions import Observation
from kbgym.gym.environment import Step
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Genesis, Graded, RolledBack
from kbgym.trace.replay import effective
from kbgym.training.run import Settings
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.splits import training_subset
from kbgym.worlds.world import Question, World

LessonKey = tuple[int, str]


class Lesson(NamedTuple):
    """One question in one epoch."""

    epoch: int
    question: Question

    @property
    def key(self) -> LessonKey:
        return self.epoch, self.question.id


class LessonState(msgspec.Struct):
    """The recorded state of a lesson: its iteration, its steps and its grade, if any."""

    iteration: int
    forward: list[Step] = []
    backward: list[Step] = []
    grade: Graded | None = None
    finished: bool = False


def schedule(world: World, settings: Settings) -> list[Lesson]:
    """Return every lesson in order: each epoch has the same questions, shuffled."""
    questions = training_subset(world.split("train"), settings.questions, kind_of(world).difficulty)
    lessons: list[Lesson] = []
    for epoch in range(1, settings.epochs + 1):
        order = list(questions)
        Random(f"{settings.seed}:epoch:{epoch}").shuffle(order)
        lessons += [Lesson(epoch, question) for question in order]
    return lessons


class Progress:
    """A listener that follows a trace, replayed or live, and tracks the state of each lesson.

    Events that were rolled back do not count.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.begun: dict[LessonKey, LessonState] = {}
        self.over = 0  # number of finished lessons
        self.last = 0  # the highest iteration of any event
        self._of: dict[int, LessonState] = {}
        self._events: list[Event] = []
        self._read: dict[int, Observation] = {}  # observations, by the identity of an event in `_events`

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        self._events.append(event)
        if isinstance(event, Acted) and event.phase in ("forward", "backward"):
            self._read[id(event)] = observation
        if not isinstance(event, Genesis):
            self.last = max(self.last, event.iteration)
        if isinstance(event, RolledBack):
            self.begun, self._of, self.over = {}, {}, 0
            for kept in effective(self._events):
                self._fold(kept)
        else:
            self._fold(event)

    def _fold(self, event: Event) -> None:
        of = self._of
        match event:
            case Began(iteration, "forward", _, question, _, epoch):
                again = self.begun.get((epoch, question))
                self.over -= again is not None and again.finished
                of[iteration] = self.begun[epoch, question] = LessonState(iteration)
            case Acted(iteration, "forward" | "backward" as phase, _, action, result, verdict) if iteration in of:
                steps = of[iteration].forward if phase == "forward" else of[iteration].backward
                steps.append(Step(action, result, self._read[id(event)], verdict))
            case Graded(iteration) if iteration in of:
                of[iteration].grade = event
            case Ended(iteration, phase, outcome) if iteration in of:
                self.over -= of[iteration].finished
                of[iteration].finished = phase == "backward" or outcome == "agent_failed"
                self.over += of[iteration].finished

    def is_over(self, lesson: Lesson) -> bool:
        found = self.begun.get(lesson.key)
        return found is not None and found.finished
