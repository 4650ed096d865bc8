"""A store in PostgreSQL: pgvector beside the exact index, copying there and back.

    python benchmarks/postgres.py [vectors]

The server is a private one from the package pgserver, on the same machine, with its usual durability (fsync on).
"""

from __future__ import annotations

import statistics
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

DIMENSIONS, PAGE, QUERIES = 384, 60, 100


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
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    cluster = Cluster("shared_buffers = 512MB", "max_wal_size = 4GB")
    try:
        copying(cluster, 100_000)
        print(
            "\n| vectors | by | filled | page of 60 | exact, in memory | recall@60 |"
            "\n| --- | --- | --- | --- | --- | --- |"
        )
        for count in (6_000, 20_000, most):
            vectors(cluster, count)
    finally:
        cluster.remove()


if __name__ == "__main__":
    main()
