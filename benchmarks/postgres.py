"""A store in PostgreSQL: pgvector beside the exact index, actions a second by clients, copying there and back.

    python benchmarks/postgres.py [--vectors N] [--additions N] [--before COMMIT]

The server is a private one from the package pgserver, on the same machine, with its usual durability (fsync on). With
`--before`, the clients of an earlier version take turns with ours: the same additions, one run after the other.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbgym.search.index import ExactIndex
from kbgym.search.pgvector import PgVectorIndex
from kbgym.store import Store, source
from kbgym.trace.copying import copy_store, save_store
from kbgym.trace.place import open_place
from kbgym.trace.postgres.place import PostgresStore

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from postgres import MISSING, Cluster, installed

HERE = Path(__file__).resolve().parents[1]
DIMENSIONS, PAGE, QUERIES = 384, 60, 100
LOADS = ((1, 1), (4, 1), (16, 1), (16, 4))  # processes, and clients of each


def rows(count: int, groups: int, seed: int) -> NDArray[np.float32]:
    """Unit rows in groups, as sentences lie around their subjects."""
    dice, centres = np.random.default_rng(seed), np.random.default_rng(99).standard_normal((groups, DIMENSIONS))
    made = centres[dice.integers(0, groups, count)] + 0.8 * dice.standard_normal((count, DIMENSIONS))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def median_ms(work: Callable[[NDArray[np.float32]], object], queries: NDArray[np.float32]) -> float:
    times = []
    for query in queries:
        started = time.perf_counter()
        work(query)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def vectors(cluster: Cluster, count: int) -> None:
    """A page of 60 and its recall, by graph and by looking at everything, beside the exact index in memory."""
    place = cluster.url(f"v{count}")
    save_store(Store([source("d0", "One.")]), place)
    opened = open_place(place)
    assert isinstance(opened, PostgresStore)
    groups = count // 150
    made, queries, model = rows(count, groups, 1), rows(QUERIES, groups, 2), ExactIndex(DIMENSIONS)
    ids = [f"d{number}" for number in range(count)]
    index = PgVectorIndex(opened.server.connection, DIMENSIONS)
    started = time.perf_counter()
    index.put_many(ids, made)
    filled = time.perf_counter() - started
    model.put_many(ids, made)
    graph = len(index) > index._exact_up_to
    built = 0.0
    if graph:
        started = time.perf_counter()
        index.build_graph()
        built = time.perf_counter() - started
    right = sum(
        len({id for id, _ in index.search(q, 0, PAGE)} & {id for id, _ in model.search(q, 0, PAGE)}) for q in queries
    )
    there = median_ms(lambda query: index.search(query, 0, PAGE), queries)
    here = median_ms(lambda query: model.search(query, 0, PAGE), queries)
    way = f"graph, built in {built:.0f} s" if graph else "every vector"
    print(
        f"| {count:,} | {way} | {filled:.1f} s | {there:.2f} ms | {here:.2f} ms | {right / (QUERIES * PAGE):.4f} |",
        flush=True,
    )
    opened.close()


# Knows what both versions have.
_CLIENT = """
import asyncio, os, sys, time
from kbgym.actions import Add
from kbgym.serve.acting import act
from kbgym.serve.sessions import Session
from kbgym.trace.live import LiveStore
from live_stores import NoSearch

where, name, clients, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

async def one(live, number):
    session = Session(f"{name}.{number}")
    for count in range(each):
        await act(live, session, Add(f"Sentence {count} of client {number} in process {name}."), "curator")

async def main():
    live = LiveStore(where, lambda store: NoSearch())
    print("ready", flush=True)
    sys.stdin.readline()
    spent = time.process_time()
    await asyncio.gather(*(one(live, number) for number in range(clients)))
    print(time.process_time() - spent, flush=True)
    os._exit(0)

asyncio.run(main())
"""


def actions(
    cluster: Cluster, version: Path, store: str, processes: int, clients: int, total: int
) -> tuple[float, float]:
    """Additions by so many processes to one store, each acknowledged before its client's next one.

    Gives how many there were a second, and the milliseconds of processor time one took of all processes together.
    """
    place = cluster.url(store)
    save_store(Store(source(f"d{n}", f"Document {n} of all.") for n in range(1000)), place)
    open_place(place).start("none", {}).close()
    each = total // (processes * clients)
    environment = {**os.environ, "PYTHONPATH": f"{version / 'src'}:{version / 'tests'}"}
    running = []
    for number in range(processes):
        command = [sys.executable, "-c", _CLIENT, place, f"p{number}", str(clients), str(each)]
        piped = subprocess.PIPE
        running.append(subprocess.Popen(command, stdin=piped, stdout=piped, text=True, env=environment))
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    started = time.perf_counter()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    spent = sum(float(process.communicate()[0]) for process in running)
    seconds = time.perf_counter() - started
    opened = open_place(place)
    opened.verify()
    made = processes * clients * each
    assert opened.iteration == made, "an acknowledged addition is missing"
    opened.close()
    return made / seconds, 1000 * spent / made


def writing(cluster: Cluster, versions: dict[str, Path], total: int, times: int = 3) -> None:
    """Each version in turn, several times; the best of each, for others are at work on the machine too."""
    print("| processes | clients of each |" + "".join(f" {name}, a second | processor, ms each |" for name in versions))
    print("| ---: | ---: |" + " ---: | ---: |" * len(versions))
    for processes, clients in LOADS:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in versions}
        for again in range(times):
            for name, version in versions.items():
                store = f"a_{name}_{processes}_{clients}_{again}"
                found[name].append(actions(cluster, version, store, processes, clients, total))
        cells = "".join(
            f" {max(row[0] for row in rows):,.0f} | {min(row[1] for row in rows):.2f} |" for rows in found.values()
        )
        print(f"| {processes} | {clients} |{cells}", flush=True)
    print(f"\n{total:,} additions a run, best of {times}; one-minute load average {os.getloadavg()[0]:.1f} on ", end="")
    print(f"{os.cpu_count()} cores. Processor time is the clients'.")


def checkout(commit: str, folder: Path) -> Path:
    packed = subprocess.run(
        ["git", "-C", str(HERE), "archive", commit, "src", "tests"], stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder


def copying(cluster: Cluster, count: int) -> None:
    """There and back, and opening: from the tables, and by replay."""
    with tempfile.TemporaryDirectory() as name:
        folder, place = Path(name) / "folder", cluster.url("copy")
        save_store(
            Store(source(f"d{n}", f"Document {n} says something of {n % 97}.") for n in range(count)), str(folder)
        )
        times = []
        for work in (
            lambda: copy_store(str(folder), place),
            lambda: open_place(place).store(),
            lambda: copy_store(place, str(Path(name) / "again")),
        ):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        same = (folder / "records.jsonl").read_bytes() == (Path(name) / "again" / "records.jsonl").read_bytes()
        assert same, "a copy there and back is other bytes"
        print(
            f"\n{count:,} documents: copied there in {times[0]:.1f} s, opened from the tables in {times[1]:.1f} s, ",
            end="",
        )
        print(f"copied back in {times[2]:.1f} s, the same bytes.", flush=True)


def main() -> None:
    if installed() is None:
        sys.exit(MISSING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--before", metavar="COMMIT")
    parser.add_argument("--additions", type=int, default=640)
    chosen = parser.parse_args()
    cluster = Cluster("shared_buffers = 512MB", "max_wal_size = 4GB")
    try:
        with tempfile.TemporaryDirectory() as name:
            before = {"before": checkout(chosen.before, Path(name))} if chosen.before else {}
            writing(cluster, {**before, "now": HERE}, chosen.additions)
        copying(cluster, 100_000)
        print(
            "\n| vectors | by | filled | page of 60 | exact, in memory | recall@60 |"
            "\n| --- | --- | --- | --- | --- | --- |"
        )
        for count in (6_000, 20_000, chosen.vectors):
            vectors(cluster, count)
    finally:
        cluster.remove()


if __name__ == "__main__":
    main()
