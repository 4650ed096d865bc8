"""Fleet training: many workers train one run on a shared store in PostgreSQL; an engine distributes the lessons.

A worker is an ordinary trainer with its own scratch folder. Each lesson belongs to exactly one task, so that
workers never compete. The engine runs a lost worker's task again; it resumes where the trace ends.
"""

from __future__ import annotations

import tempfile
from itertools import groupby
from pathlib import Path

import msgspec

from kbgym.agents.llm.connect import is_model
from kbgym.api.factory import agents_named
from kbgym.api.training import teach, trainer_for
from kbgym.errors import BadInput
from kbgym.experiments.engines import WorkEngine
from kbgym.store import Store
from kbgym.training.lessons import Lesson, schedule
from kbgym.training.run import Run, Settings
from kbgym.worlds.world import World

LESSONS = 4  # per task: few enough to balance the load, enough to amortize opening the store


class Fleet(msgspec.Struct, frozen=True):
    """The run that all workers train; `begun` is its initial store if that is not the world's documents."""

    world: World
    settings: Settings
    url: str
    begun: Store | None = None


def train_fleet(engine: WorkEngine, fleet: Fleet) -> None:
    """Teach every lesson once; an epoch begins when the previous one has ended."""
    players = (fleet.settings.reader, fleet.settings.curator, fleet.settings.judge)
    if any(map(is_model, players)):
        raise BadInput("a fleet of models has no common budget: train in one process with a larger batch_size.")
    for _, group in groupby(schedule(fleet.world, fleet.settings), key=lambda lesson: lesson.epoch):
        lessons = tuple(group)
        tasks = [lessons[start : start + LESSONS] for start in range(0, len(lessons), LESSONS)]
        for _ in engine.run(teach_task, fleet, tasks):
            pass


def teach_task(fleet: Fleet, lessons: tuple[Lesson, ...]) -> int:
    """Teach the lessons of one task, in a worker process, and return their number."""
    with tempfile.TemporaryDirectory(prefix="kbgym-trainer-") as scratch:
        run = Run.open_or_create(Path(scratch) / "run", fleet.world, fleet.settings, fleet.begun)
        trainer = trainer_for(run, agents_named(fleet.settings, world=fleet.world), fleet.url)
        teach(trainer, lessons=lessons)
    return len(lessons)
