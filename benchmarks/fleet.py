"""A training fleet on one store in PostgreSQL: one trainer and two on Ray's workers, in turn, in the same run.

    OMP_NUM_THREADS=1 python benchmarks/fleet.py [--questions N] [--times N] [--thinks SECONDS]

A world of 80 people, strategy class, hash embedder. Once with the reference agents, which do nothing but compute, and
once with ones that think for so long before every action, as a model does. The trainers are running when the clock
starts, as far as Ray keeps them; every training begins anew on a store of its own, and is checked: every lesson once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

import msgspec

from kbgym.actions import Action
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.experiment.engines import WorkEngine, opened
from kbgym.experiment.fleet import Fleet, train_one
from kbgym.policy import View
from kbgym.protocol.run import Settings
from kbgym.store import Store, source
from kbgym.trace.copying import save_store
from kbgym.trace.events import Began
from kbgym.trace.place import open_place
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


def trained(engine: WorkEngine, cluster: Cluster, name: str, settings: Settings, trainers: int) -> float:
    """Seconds until every lesson was over."""
    world, url = people.generate(80, 3), cluster.url(name)
    save_store(Store(source(document.id, document.text) for document in world.documents), url)
    started = time.perf_counter()
    ended = list(engine.run(train_one, Fleet(world, settings, url), range(trainers)))
    seconds = time.perf_counter() - started
    place = open_place(url)
    place.verify()
    taught = [event.question for event in place.events if isinstance(event, Began) and event.phase == "forward"]
    assert len(taught) == len(set(taught)) == settings.questions == sum(ended), "a lesson was taught twice, or not"
    place.close()
    return seconds


def main() -> None:
    if installed() is None:
        sys.exit(MISSING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--thinks", default="0.05")
    chosen = parser.parse_args()
    os.environ[THINKS] = chosen.thinks
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.setdefault("RAY_worker_niceness", "0")
    plain = Settings(questions=chosen.questions, epochs=1, embedder="hash", eval=False, strategy="class")
    kinds = {
        "reference": {},
        f"thinking {chosen.thinks} s an action": {
            "reader": "fleet:ThinkingReader",
            "curator": "fleet:ThinkingCurator",
        },
    }
    cluster = Cluster()
    try:
        print("| agents | one trainer | two trainers | one / two |\n| --- | ---: | ---: | ---: |")
        with opened("ray", 2) as engine:
            trained(engine, cluster, "warm", plain, 2)
            for kind, (what, players) in enumerate(kinds.items()):
                settings = msgspec.structs.replace(plain, **players)
                found: dict[int, list[float]] = {1: [], 2: []}
                for again in range(chosen.times):
                    for trainers, rows in found.items():
                        rows.append(trained(engine, cluster, f"f{kind}_{again}_{trainers}", settings, trainers))
                one, two = (statistics.median(rows) for rows in found.values())
                print(f"| {what} | {one:.1f} s | {two:.1f} s | {one / two:.2f} |", flush=True)
        print(f"\n{chosen.questions} lessons, each taught once, every time; medians of {chosen.times}.")
        print(f"(one-minute load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    finally:
        cluster.remove()


if __name__ == "__main__":
    main()
