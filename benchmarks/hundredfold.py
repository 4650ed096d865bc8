"""A hundred times the paper's size: 10,000 training questions on 50,000 people, by words, with the reference agents.

    OMP_NUM_THREADS=1 python benchmarks/hundredfold.py [--questions N] [--people N] [--epochs N] [--folder DIR]

Makes the world, trains a store on it with the strategy `class`, audits it, and examines the flat and the trained store
on questions nobody was taught, by the reference reader and by one that does not know our wording. With `--folder`
everything is kept there, and what was interrupted goes on when it is run again; the seconds of all processes are added
up. `--lessons N` stops after so many, to measure a part. Prints Markdown; what must be is for the sizes above.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from kbgym.analysis.audit import Auditor
from kbgym.analysis.health import coverage
from kbgym.analysis.verdict import judge, shared_keys
from kbgym.api.factory import agent_of, agents_named, embedder_named
from kbgym.api.training import teach, trainer_for
from kbgym.canonical import encode, read_lines
from kbgym.gym.actions import Observation
from kbgym.search.factory import engine_for
from kbgym.store import Store, ledger
from kbgym.sync import run_sync
from kbgym.trace.events import Acted, Event
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import Row, examine
from kbgym.training.run import Run, Settings
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.people import Sizes, generate
from kbgym.worlds.world import World

READERS = ("reference", "neutral:overlap")
SETS = ("test_in", "test_out")
TESTED = 300  # questions in each; an exam may ask fewer
SEED = 0


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
        """Count rolled-back work as done."""

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        self.actions += isinstance(event, Acted)

    def timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same, with the processor time it takes added up."""

        def call(*given: Any, **named: Any) -> Any:
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


class Enough(Exception):
    """Raised after the requested number of lessons."""


def train(world: World, folder: Path, settings: Settings, most: int = 0) -> list[Stretch]:
    """Train what is not trained yet, up to `most` lessons; a stretch without actions is the opening of a process."""
    lessons, out = most or settings.questions * settings.epochs, folder / "stretches.jsonl"
    run = Run.open_or_create(folder / "run", world, settings)
    if StoreFolder(run.folder).position >= lessons:
        return list(read_lines(out, Stretch))
    counting = Counting(out, max(1, settings.questions * settings.epochs // 100))
    trainer = trainer_for(run, agents_named(settings, world=world))

    def tick(done: int, total: int, said: str) -> None:
        counting.tick(done, total, said)
        if done >= lessons:
            raise Enough

    engine: Any = trainer.live.environment.engine
    for name in ("search", "nearest", "put"):
        setattr(engine, name, counting.timed(getattr(engine, name)))
    trainer.live.listeners.append(counting)
    counting.tick(trainer.position, trainer.position, "")
    with suppress(Enough):
        teach(trainer, tick)
    return list(read_lines(out, Stretch))


def examined(
    store: Store, world: World, settings: Settings, asked: int, folder: Path
) -> dict[tuple[str, str], list[Row]]:
    """Rows by reader and question set; those of an earlier process are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    engine = engine_for(store, embedder_named(settings.embedder), search=settings.search)
    rows = {}
    for reader in READERS:
        for name in SETS:
            out = folder / f"{reader.replace(':', '-')}-{name}.jsonl"
            questions = world.split(name)[:asked]
            rows[reader, name] = run_sync(examine(store, engine, questions, agent_of(reader, "reader"), out, settings))
    return rows


def print_training(stretches: list[Stretch], world: World, store: Store) -> None:
    lessons, actions = stretches[-1].lessons, sum(one.actions for one in stretches)
    seconds, processor = (sum(getattr(one, name) for one in stretches) for name in ("seconds", "processor"))
    print(f"| {lessons:,} lessons on {len(world.documents):,} documents | measured | must be |")
    print("| --- | ---: | ---: |")
    print(f"| seconds of the clock, on a machine shared with others | {seconds:,.0f} | under 3,600 |")
    print(f"| processor seconds | {processor:,.0f} | |")
    print(f"| of which searching | {sum(one.searching for one in stretches):,.0f} | |")
    print(f"| peak memory of the process that trains | {max(one.peak for one in stretches):.2f} GiB | under 4 GiB |")
    print(f"| actions | {actions:,} | |")
    taught = [one for one in stretches if one.actions]
    some = max(1, len(taught) // 10)
    for what, part in (("first", taught[:some]), ("last", taught[-some:])):
        done = sum(one.actions for one in part) or 1
        spent, searching = sum(one.processor for one in part), sum(one.searching for one in part)
        shares = f"{(spent - searching) / done * 1e3:.2f}, {searching / done * 1e3:.2f}"
        print(f"| ms an action beside search, searching: the {what} tenth | {shares} | flat |")
    counted, audit, covered = ledger(store), Auditor(store, kind_of(world).truth(world)).audit(), coverage(store)
    print(f"| index documents, links | {counted.authored:,}, {counted.links:,} | |")
    print(f"| covered: originals that an index links to | {covered.direct:.1%} | |")
    if audit.total is not None:
        print(f"| index precision, recall | {audit.total.precision:.4f}, {audit.total.recall:.4f} | |")
        print("\n| key | indexes | links each | precision | recall |\n| --- | ---: | ---: | ---: | ---: |")
    for row in audit.table:
        print(f"| {row.group} | {row.n:,} | {row.degree:.1f} | {row.precision:.4f} | {row.recall:.4f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lessons", type=int, default=0)
    parser.add_argument("--asked", type=int, default=TESTED)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        if not (folder / "world").exists():
            generate(given.people, SEED, Sizes(given.questions, TESTED, TESTED)).save(folder / "world")
        world = World.load(folder / "world")
        settings = Settings(
            questions=given.questions,
            epochs=given.epochs,
            strategy="class",
            search="words",
            embedder="none",
            eval=False,
        )
        stretches = train(world, folder, settings, given.lessons)
        place = StoreFolder(folder / "run")
        print_training(stretches, world, place.store())
        arms = {
            "flat": examined(place.store(0), world, settings, given.asked, folder / "flat"),
            "trained": examined(place.store(), world, settings, given.asked, folder / f"at-{stretches[-1].lessons}"),
        }
    print("\n| reader, questions | n | actions over flat | actions | F1 | F1 minus flat |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    keys = shared_keys(world)
    for (reader, name), rows in arms["trained"].items():
        found = judge(rows, arms["flat"][reader, name], keys)
        rho, f1 = found.rho, found.accuracy
        print(
            f"| {reader}, {name} | {found.n} | {rho.value:.3f} [{rho.low:.2f}, {rho.high:.2f}] | "
            f"{found.actions_flat:.1f} → {found.actions_trained:.1f} | {found.f1_flat:.3f} → {found.f1_trained:.3f} | "
            f"{f1.value:+.3f} [{f1.low:+.3f}, {f1.high:+.3f}] |"
        )
    print(f"\nOne-minute load average at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; seed {SEED}.")


if __name__ == "__main__":
    main()
