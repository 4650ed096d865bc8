"""Replaying a run: 200 iterations, about 4,000 events, over 5,864 documents, in a fresh process.

    python benchmarks/replay.py

Prints Markdown. The run is synthetic (the actions of a busy curator, made without search or agents), its trace is real:
replay reads it, checks the chain, applies every action and compares every result and every commit.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kbgym.canonical import write_lines
from kbgym.gym.actions import Action, Add, Answer, Delete, Done, Edit, LinkMany, Read, Search, Unlink
from kbgym.gym.environment import Nearest, apply
from kbgym.gym.tools import PAGE_SIZE
from kbgym.store import source
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Graded, Phase
from kbgym.trace.folder import StoreFolder

REPLAYING = """
import json, sys, time
started = time.perf_counter()
from pathlib import Path
from kbgym.trace.folder import StoreFolder
imported = time.perf_counter()
folder = StoreFolder(Path(sys.argv[1]))
read = time.perf_counter()
store = folder.store()
done = time.perf_counter()
print(json.dumps({
    "events": len(folder.events), "documents": len(store), "links": store.links, "hash": store.fingerprint,
    "import": imported - started, "read": read - imported, "fold": done - read,
    "loaded": [name for name in ("onnxruntime", "numpy", "kbgym.search.embed") if name in sys.modules],
}))
"""


def write_run(folder: Path, documents: int, iterations: int, seed: int = 0) -> str:
    """A store folder with the trace of a training run; gives the last store's hash."""
    sentences = (source(f"d{n}", f"Person {n} lives in city {n % 20}.") for n in range(documents))
    write_lines(folder / "records.jsonl", sentences)
    opened = StoreFolder(folder)
    dice = random.Random(seed)
    store = opened.store()
    with opened.start("none", {"iterations": iterations}) as writer:
        for iteration in range(1, iterations + 1):
            events: list[Event] = []
            for phase in ("forward", "backward"):
                events.append(Began(iteration, phase, "synthetic", f"q{iteration}", f"Question {iteration}?"))
                for step, action in enumerate(_pass(phase, iteration, documents, dice), 1):
                    page = tuple(f"d{(iteration * 31 + step * 7 + k) % documents}" for k in range(PAGE_SIZE))
                    ids = tuple(id for id in page if id in store)
                    result = apply(store, action, Nearest(ids) if isinstance(action, Search) else None)
                    events.append(Acted(iteration, phase, step, action, result))
                events.append(Ended(iteration, phase, "answered" if phase == "forward" else "done"))
                if phase == "forward":
                    events.append(Graded(iteration, f"q{iteration}", ("x",), 1.0, 1.0, "x"))
            commit = Committed(iteration, iteration, store.fingerprint, len(store), store.links)
            writer.commit([*events, commit])
    return store.fingerprint


def _pass(phase: Phase, iteration: int, documents: int, dice: random.Random) -> list[Action]:
    def some() -> str:
        return f"d{dice.randrange(documents)}"

    looking: list[Action] = [Search(f"query {iteration}"), Search(f"query {iteration}", 2), Read(some()), Read(some())]
    if phase == "forward":
        return [*looking, Search("another"), Answer("x")]
    targets = tuple(some() for _ in range(12))
    index = f"n{iteration}"
    writing: list[Action] = [Add(f"Index number {iteration}."), LinkMany(index, targets), Unlink(index, targets[0])]
    return [*looking, *writing, Edit(some(), f"Edited {iteration}."), Delete(some()), Done()]


def replay(folder: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", REPLAYING, str(folder)], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=5_864)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5, help="the median of so many")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        expected = write_run(Path(name), options.documents, options.iterations)
        size = (Path(name) / "trace.jsonl").stat().st_size
        runs = sorted((replay(Path(name)) for _ in range(options.runs)), key=lambda run: run["read"] + run["fold"])
    run = runs[len(runs) // 2]
    same = all(run["hash"] == expected for run in runs)
    print(
        "| iterations | events | trace MB | read, s | apply and compare, s | replay, s | same hash | embedding loaded |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |")
    print(
        f"| {options.iterations} | {run['events']:,} | {size / 1e6:.1f} | {run['read']:.3f} | {run['fold']:.3f} |"
        f" {run['read'] + run['fold']:.3f} | {'yes' if same else 'NO'} | {', '.join(run['loaded']) or 'none'} |"
    )
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
