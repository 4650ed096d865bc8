"""A hundred times the paper's size: 10,000 training questions on 50,000 people, by words, with the reference agents.

    OMP_NUM_THREADS=1 python benchmarks/hundredfold.py [--questions N] [--people N] [--epochs N] [--folder DIR]

Makes the world, trains a store on it with the strategy `class`, and examines the flat and the trained store on questions
nobody was taught, by the reference reader and by one that does not know our wording. With `--folder` everything is kept
there, and whatever is interrupted goes on when it is run again: the seconds of all processes are added up. Prints
Markdown; `must be` is for the sizes of the first line.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import msgspec

from kbgym.analysis.audit import Auditor
from kbgym.analysis.clustered import Sampled, difference, ratio
from kbgym.analysis.coverage import coverage
from kbgym.artefact.making import teach, trainer_for
from kbgym.artefact.parts import agent_of, agents_named, embedder_named, engine_for
from kbgym.canonical import encode, read_lines
from kbgym.protocol.exam import Row, examine
from kbgym.protocol.run import Run, Settings
from kbgym.store import Store
from kbgym.sync import run_sync
from kbgym.trace.events import Acted, Event
from kbgym.trace.folder import StoreFolder
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.people import Sizes, generate
from kbgym.worlds.world import World

READERS = ("reference", "general")
SETS = ("test_in", "test_out")


class Stretch(msgspec.Struct, frozen=True):
    """Some lessons in a row: how many there were after them, and what they took."""

    lessons: int
    actions: int
    seconds: float
    processor: float
    searching: float
    peak: float


class Counting:
    """Follows a training and writes down what every stretch of it took."""

    def __init__(self, out: Path, every: int) -> None:
        self._out, self._every = out, every
        self.actions, self.searching = 0, 0.0
        self._before = Stretch(0, 0, time.time(), time.process_time(), 0.0, 0.0)

    def clear(self) -> None:
        """What a rollback undoes was done all the same."""

    def __call__(self, event: Event, store: Store, observation: str) -> None:
        self.actions += isinstance(event, Acted)

    def timed(self, engine: object, names: tuple[str, ...] = ("search", "nearest", "put")) -> None:
        """Add up the processor time an engine takes."""
        for name in names:
            setattr(engine, name, self._timed(getattr(engine, name)))

    def _timed(self, work):  # type: ignore[no-untyped-def]
        def call(*given, **named):  # type: ignore[no-untyped-def]
            started = time.thread_time()
            try:
                return work(*given, **named)
            finally:
                self.searching += time.thread_time() - started

        return call

    def _now(self, lessons: int) -> Stretch:
        return Stretch(lessons, self.actions, time.time(), time.process_time(), self.searching, peak())

    def tick(self, lessons: int, total: int, said: str) -> None:
        if lessons % self._every and lessons != total:
            return
        now, was = self._now(lessons), self._before
        spent = Stretch(
            lessons,
            now.actions - was.actions,
            now.seconds - was.seconds,
            now.processor - was.processor,
            now.searching - was.searching,
            now.peak,
        )
        self._before = now
        with self._out.open("ab") as out:
            out.write(encode(spent) + b"\n")


def peak() -> float:
    """The most memory this process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def train(world: World, folder: Path, settings: Settings) -> list[Stretch]:
    """Train what is not trained yet; the first stretch of a process has its opening of everything too."""
    counting = Counting(folder / "stretches.jsonl", max(1, settings.questions * settings.epochs // 100))
    run = Run.open_or_create(folder / "run", world, settings)
    trainer = trainer_for(run, agents_named(settings, world=world))
    if trainer.position < len(trainer.lessons):
        counting.timed(trainer.live.environment.engine)
        trainer.live.listeners.append(counting)
        counting.tick(trainer.position, trainer.position, "")
        teach(trainer, counting.tick)
    return list(read_lines(folder / "stretches.jsonl", Stretch))
