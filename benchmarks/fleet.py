"""Training fleets on one store in PostgreSQL: one trainer and more on Ray's workers, in turn, in the same run.

    OMP_NUM_THREADS=1 python benchmarks/fleet.py [--questions N] [--times N] [--thinks SECONDS]

A world of 80 people, strategy class, hash embedder. Once with the reference agents, which do nothing but compute, and
once with ones that think for so long before every action, as a model does. The trainers are running when the clock
starts, as far as Ray keeps them; every training begins anew on a store of its own, and is checked: every lesson once.

A watch stands on every trainer's turns: what an action takes outside of the turn and within, the wait for the disk at
its end, and what following another's action takes.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api.factory import agents_named
from kbgym.api.training import trainer_for
from kbgym.backends.postgres.writer import _FLUSH, PostgresWriter
from kbgym.engines.fleet import Fleet, train_one
from kbgym.experiments.engines import WorkEngine, opened
from kbgym.gym.actions import Action
from kbgym.gym.policy import View
from kbgym.store import Store, source
from kbgym.trace.backend import open_backend
from kbgym.trace.copying import save_store
from kbgym.trace.events import Began, Committed
from kbgym.trace.live import LiveStore
from kbgym.training.run import Run, Settings
from kbgym.worlds import people

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from postgres import MISSING, Cluster, installed

HERE = Path(__file__).resolve().parent
THINKS = "KBGYM_BENCHMARK_THINKS"


class ThinkingReader(ReferenceReader):
    """Takes its time."""

    async def act(self, view: View) -> Action:
        await asyncio.sleep(float(os.environ[THINKS]))
        return await super().act(view)


class ThinkingCurator(ReferenceCurator):
    """Takes its time."""

    async def act(self, view: View) -> Action:
        await asyncio.sleep(float(os.environ[THINKS]))
        return await super().act(view)


@dataclass
class Watched:
    """One trainer, in seconds; `held` is from having the turn to its end, with the disk's wait."""

    ended: int = 0
    held: float = 0.0
    turns: list[float] = field(default_factory=list)  # when each was over
    followed: int = 0  # actions of others
    batches: int = 0  # of such
    following: float = 0.0
    processor: float = 0.0  # from the first turn to the last, without the server's


@dataclass
class Trained:
    """A fleet that has trained, in seconds. Where all of it is under way it is steady: that is what is looked at."""

    seconds: float
    trainers: list[Watched]
    server: float  # processor time of the database

    @property
    def rate(self) -> float:
        """Turns a second from where the last trainer began to where the first had no lesson left; nan if never."""
        if not all(one.turns for one in self.trainers):
            return math.nan
        begin, end = max(one.turns[0] for one in self.trainers), min(one.turns[-1] for one in self.trainers)
        return (
            math.nan
            if end <= begin
            else sum(begin < turn <= end for one in self.trainers for turn in one.turns) / (end - begin)
        )

    @property
    def turns(self) -> int:
        return sum(len(one.turns) for one in self.trainers)

    def each(self, what: str) -> float:
        """Milliseconds of it a turn."""
        return 1000 * sum(getattr(one, what) for one in self.trainers) / self.turns


@contextmanager
def watching() -> Iterator[Watched]:
    """What this process does at a store in PostgreSQL while this is open."""
    seen, since = Watched(), 0.0
    begin, finish, follow = PostgresWriter._begin, PostgresWriter._finish, LiveStore._follow

    def begun(writer: PostgresWriter) -> Any:
        nonlocal since
        news = begin(writer)
        since = time.perf_counter()
        seen.processor = seen.processor or -time.process_time()
        return news

    def finished(writer: PostgresWriter) -> None:
        finish(writer)
        seen.turns.append(time.perf_counter())
        seen.held += seen.turns[-1] - since

    async def followed(live: LiveStore) -> None:
        arrived = live._turn.arrived if live._turn else []
        seen.followed += sum(isinstance(event, Committed) for event in arrived)
        seen.batches += bool(arrived)
        started = time.perf_counter()
        await follow(live)
        seen.following += time.perf_counter() - started

    with (
        patch.object(PostgresWriter, "_begin", begun),
        patch.object(PostgresWriter, "_finish", finished),
        patch.object(LiveStore, "_follow", followed),
    ):
        yield seen
    seen.processor += time.process_time()


def watch_one(fleet: Fleet, number: int) -> Watched:
    """`train_one`, watched."""
    with watching() as seen:
        seen.ended = train_one(fleet, number)
    return seen


def trained(engine: WorkEngine, cluster: Cluster, name: str, settings: Settings, trainers: int) -> Trained:
    """Train on a store of its own until every lesson is over, and check it."""
    world, url = people.generate(80, 3), cluster.url(name)
    save_store(Store(source(document.id, document.text) for document in world.documents), url)
    spent, started = server_processor(cluster), time.perf_counter()
    seen = list(engine.run(watch_one, Fleet(world, settings, url), range(trainers)))
    done = Trained(time.perf_counter() - started, seen, server_processor(cluster) - spent)
    place = open_backend(url)
    place.verify()
    taught = [event.question for event in place.events if isinstance(event, Began) and event.phase == "forward"]
    ended = sum(one.ended for one in seen)
    assert len(taught) == len(set(taught)) == settings.questions == ended, "a lesson was taught twice, or not"
    place.close()
    return done


def follow_all(engine: WorkEngine, cluster: Cluster, settings: Settings) -> float:
    """Milliseconds that an action of another trainer takes who follows a whole training at once."""
    world, url = people.generate(80, 3), cluster.url("followed")
    save_store(Store(source(document.id, document.text) for document in world.documents), url)

    async def look(live: LiveStore) -> None:
        async with live.looking():
            pass
        await live.close()

    with tempfile.TemporaryDirectory() as scratch, watching() as seen:
        run = Run.open_or_create(Path(scratch) / "run", world, settings)
        late = trainer_for(run, agents_named(settings, world=world), url)
        list(engine.run(train_one, Fleet(world, settings, url), range(1)))
        asyncio.run(look(late.live))
    return 1000 * seen.following / seen.followed


def server_processor(cluster: Cluster) -> float:
    """Seconds the server has used so far: its first process, those that are over, and those that are there."""
    first = (cluster.data / "postmaster.pid").read_text().split()[0]
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    ticks = 0
    for process in (first, *children):
        with suppress(OSError):  # it ended this moment
            numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, numbers[11:15] if process == first else numbers[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def flush(cluster: Cluster) -> float:
    """Milliseconds until the disk has a commit, where nobody else commits."""
    import psycopg

    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        times = []
        for _ in range(200):
            started = time.perf_counter()
            connection.execute(_FLUSH)
            times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def show_parts(found: dict[tuple[str, int], Trained], disk: float, follows: float) -> None:
    print("\n| agents | trainers | turns a second | an action, ms: outside the turn | within |", end="")
    print(" following | actions followed at once | processor | the server's |\n| --- |" + " ---: |" * 8)
    for (what, trainers), done in found.items():
        held, at_once = done.each("held"), done.each("followed") / (done.each("batches") or 1)
        print(f"| {what} | {trainers} | {done.rate:.0f} | {1000 * trainers / done.rate - held:.2f} |", end="")
        print(f" {held - disk:.2f} | {done.each('following'):.2f} | {at_once:.1f} |", end="")
        print(f" {done.each('processor'):.2f} | {1000 * done.server / done.turns:.2f} |")
    one = next(iter(found.values()))
    print(
        f"\n{one.turns / sum(trainer.ended for trainer in one.trainers):.1f} turns a lesson. Rates are of the time",
        end="",
    )
    print(f" in which all trainers were teaching. An action waits {disk:.2f} ms for the disk beside that, while others")
    print(f"have their turn. Followed all at once, an action of another's takes {follows:.3f} ms.")


def main() -> None:
    if installed() is None:
        sys.exit(MISSING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--thinks", default="0.02")
    chosen = parser.parse_args()
    os.environ[THINKS] = chosen.thinks
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.setdefault("RAY_worker_niceness", "0")
    plain = Settings(questions=chosen.questions, epochs=1, embedder="hash", eval=False, strategy="class")
    kinds: dict[str, tuple[dict[str, str], tuple[int, ...]]] = {
        "reference": ({}, (1, 2)),
        f"thinking {chosen.thinks} s an action": (
            {"reader": "fleet:ThinkingReader", "curator": "fleet:ThinkingCurator"},
            (1, 2, 4, 8),
        ),
    }
    cluster, best = Cluster(), dict[tuple[str, int], Trained]()
    try:
        print("| agents | trainers | until all lessons are over | one / so many |\n| --- | ---: | ---: | ---: |")
        with opened("ray", 8) as engine:
            trained(engine, cluster, "warm", plain, 8)
            for kind, (what, (players, fleets)) in enumerate(kinds.items()):
                settings = msgspec.structs.replace(plain, **players)
                for again in range(chosen.times):
                    for trainers in fleets:
                        done = trained(engine, cluster, f"f{kind}_{again}_{trainers}", settings, trainers)
                        best[what, trainers] = min(best.get((what, trainers), done), done, key=lambda one: one.seconds)
                for trainers in fleets:
                    seconds = best[what, trainers].seconds
                    ratio = best[what, 1].seconds / seconds
                    print(f"| {what} | {trainers} | {seconds:.1f} s | {ratio:.2f} |", flush=True)
            follows = follow_all(engine, cluster, plain)
        print(f"\n{chosen.questions} lessons, each taught once, every time; the shortest of {chosen.times}.")
        print(f"(one-minute load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
        show_parts(best, flush(cluster), follows)
    finally:
        cluster.remove()


if __name__ == "__main__":
    main()
