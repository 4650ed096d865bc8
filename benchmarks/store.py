"""The store's cost by size: one change in a store of 6,000, 60,000 and 600,000 documents, and opening the largest.

    python benchmarks/store.py

Prints Markdown. A change is timed through `environment.apply`, as a replay does it; what a live environment adds to it
is one embedding and one search. Every figure is the best of several batches, in
microseconds of processor time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kbgym.canonical import write_lines
from kbgym.gym.actions import Action, Add, Delete, Edit, Error, Link, LinkMany, Unlink
from kbgym.gym.environment import apply
from kbgym.store import Record, Store, source

SIZES = (6_000, 60_000, 600_000)
BATCHES, BATCH = 15, 200


def synthetic(count: int) -> Iterator[Record]:
    """Sentences of usual length; every hundredth document is an index of thirty of the sentences just before it."""
    for number in range(count):
        if number % 100 == 99:
            targets = tuple(f"d{number - 1 - back}" for back in range(30))
            yield Record(f"d{number}", f"Index number {number} of thirty people.", targets, flag="authored")
        else:
            yield source(f"d{number}", f"Person {number} of family {number % 997} lives in city {number % 89}.")


def actions(size: int) -> dict[str, Callable[[int], Action]]:
    """For the n-th call of each kind an action that succeeds, spread over the whole store."""

    blocks = size // 100

    def somewhere(n: int) -> int:
        """Another sentence for every n below 60% of the size; never an index, never one of its targets."""
        return (n * 7919) % blocks * 100 + n // blocks % 60

    return {
        "add": lambda n: Add(f"A new sentence with number {n}."),
        "edit": lambda n: Edit(f"d{somewhere(n)}", f"An edited sentence with number {n}."),
        "link": lambda n: Link(f"d{somewhere(n)}", f"d{(somewhere(n) // 100) * 100 + 61}"),
        "link_many (40)": lambda n: LinkMany(f"n{n + 1}", tuple(f"d{somewhere(n * 40 + k)}" for k in range(40))),
        "unlink": lambda n: Unlink(f"d{somewhere(n)}", f"d{(somewhere(n) // 100) * 100 + 61}"),
        "delete": lambda n: Delete(f"n{n + 1}"),
    }


def change_costs(size: int, batches: int = BATCHES) -> dict[str, float]:
    """Microseconds a change of each kind; the index of texts, which the first change builds, is built before."""
    store = Store(synthetic(size))
    store.same_text("")
    costs = {}
    for name, make in actions(size).items():
        best = float("inf")
        for batch in range(batches):
            todo = [make(batch * BATCH + n) for n in range(BATCH)]
            started = time.process_time()
            results = [apply(store, action) for action in todo]
            best = min(best, time.process_time() - started)
            assert not any(isinstance(result, Error) for result in results), f"a benchmarked {name} failed"
        costs[name] = best / BATCH * 1e6
    return costs


OPENING = """
import json, sys, time
started = time.perf_counter()
from pathlib import Path
from kbgym.trace.folder import StoreFolder
store = StoreFolder(Path(sys.argv[1])).store()
seconds = time.perf_counter() - started
# Not ru_maxrss: a child begins with its parent's.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 2**20
found = {"documents": len(store), "links": store.links, "seconds": seconds, "cpu": time.process_time(), "gib": peak}
print(json.dumps(found))
"""


def opening(size: int) -> dict[str, float]:
    """Open a store of this size from its folder in a fresh process: seconds and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        write_lines(Path(folder) / "records.jsonl", synthetic(size))
        command = [sys.executable, "-c", OPENING, folder]
        found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="documents, separated by commas")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    costs = {size: change_costs(size) for size in sizes}
    print(f"| one change, µs | {' | '.join(f'{size:,}' for size in sizes)} | largest / smallest |")
    print(f"| --- |{' ---: |' * (len(sizes) + 1)}")
    for name in costs[sizes[0]]:
        row = [costs[size][name] for size in sizes]
        print(f"| {name} | {' | '.join(f'{cost:.1f}' for cost in row)} | {row[-1] / row[0]:.2f} |")
    print("\n| opening | documents | links | seconds | processor seconds | peak GiB |")
    print(f"| --- |{' ---: |' * 5}")
    for size in sizes:
        found = opening(size)
        print(
            f"| a folder, fresh process | {found['documents']:,} | {found['links']:,} | {found['seconds']:.2f} |"
            f" {found['cpu']:.2f} | {found['gib']:.2f} |"
        )


if __name__ == "__main__":
    main()
