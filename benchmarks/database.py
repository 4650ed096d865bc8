"""Search among documents that lie in a database and are not held in memory, beside an engine that holds them all.

    OMP_NUM_THREADS=1 python benchmarks/database.py [--documents 10000 300000] [--queries 200] [--search KIND ...]

Made-up people with vectors of 384 numbers (`scale_words.py`), in a private PostgreSQL from the package pgserver on the
same machine. Filling is done by one process; then one process searches the database and another, on the exact index,
all texts in memory: a page of five for every query, none asked twice. Memory is what a process holds at the end, and
what it held when nothing was opened yet; the server's is not counted. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scale_words import FACTS, WordsEmbedder, questions, sentences

from kbgym.backends.postgres.base import DatabaseBase
from kbgym.backends.postgres.vectors import PgVectorIndex
from kbgym.backends.postgres.words import DatabaseWords
from kbgym.search.base import SEARCHES
from kbgym.search.embed import CachedEmbedder
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.trace.backend import save_store

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from bases import base_at
from postgres import MISSING, Cluster, installed

DEPTH = 10


def texts(count: int) -> dict[str, str]:
    said = sentences(-(-count // FACTS))
    return {f"d{number}": text for number, text in zip(range(count), said, strict=False)}


def resident() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def fill(base: DatabaseBase, kinds: list[str]) -> dict[str, float]:
    embedder = CachedEmbedder(WordsEmbedder())
    made = {"words": seconds(lambda: DatabaseWords(base)) if kinds != ["vectors"] else 0.0}
    for name, graph in (("vectors", False), ("graph", True)):
        made[name] = seconds(partial(PgVectorIndex, base, embedder, graph)) if kinds != ["words"] else 0.0
    return {**made, "resident": resident()}


def ask(base: DatabaseBase | None, asked: list[str], count: int, kinds: list[str]) -> dict[str, Any]:
    """Milliseconds of a page by kind, the pages, and memory; `base` is none where all texts are to be held."""
    embedder = CachedEmbedder(WordsEmbedder())
    embedder.embed(asked)
    found: dict[str, Any] = {"before": resident(), "opened": 0.0}
    items = list(texts(count).items()) if base is None else []
    for kind in kinds:
        started = time.perf_counter()
        engine = engine_for(items if base is None else Store.over(base), embedder, search=kind)
        found["opened"] += time.perf_counter() - started
        times = sorted(seconds(partial(engine.search, query, 0, 5)) * 1000 for query in asked)
        found[f"{kind} pages"] = [[id for id, _ in engine.search(query, 0, 5)] for query in asked]
        found[f"{kind} p50"], found[f"{kind} p99"] = statistics.median(times), times[len(times) * 99 // 100]
    found["resident"] = resident()
    if base is not None and kinds != ["words"]:
        near, exact = (PgVectorIndex(base, embedder, graph) for graph in (True, False))
        right = 0
        for query in asked[:50]:
            vector = embedder.embed([query])[0]
            truth = {id for id, _ in exact.search(vector, 0, DEPTH)}
            right += len(truth.intersection(id for id, _ in near.search(vector, 0, DEPTH)))
        found["recall"] = right / (DEPTH * len(asked[:50]))
    return found


def in_a_process(asked: list[str], *words: str) -> dict[str, Any]:
    given = json.dumps(asked).encode()
    environment = {**os.environ, **({"KBGYM_INDEX": "exact"} if words[-1] == "memory" else {})}
    command = [sys.executable, __file__, *words]
    done = subprocess.run(command, check=True, input=given, stdout=subprocess.PIPE, env=environment)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def recall(there: list[list[str]], here: list[list[str]]) -> float:
    """The mean share of the pages in memory that the pages from the database have."""
    return statistics.fmean(len({*a} & {*b}) / max(1, len(b)) for a, b in zip(there, here, strict=True))


def measure(cluster: Cluster, count: int, queries: int, kinds: list[str]) -> None:
    url, every = cluster.url(f"n{count}"), texts(count)
    save_store(Store(source(id, text) for id, text in every.items()), url)
    asked = list(dict.fromkeys(questions(list(every.values()), queries)))
    words = ("--documents", str(count), "--search", *kinds, "--url", url, "--work")
    made, there, here = (in_a_process(asked, *words, work) for work in ("fill", "database", "memory"))
    print(f"\n| {count:,} documents | in the database | in memory |\n| --- | ---: | ---: |")
    print(f"| filled: words, vectors, graph | {made['words']:.1f}, {made['vectors']:.1f}, {made['graph']:.1f} s | |")
    print(f"| MB held while filling | {made['resident']:.0f} | |")
    print(f"| opened, all three | {there['opened']:.2f} s | {here['opened']:.1f} s |")
    for kind in kinds:
        pages = (f"{found[f'{kind} p50']:.1f}, {found[f'{kind} p99']:.1f} ms" for found in (there, here))
        print(f"| a page by {kind}, p50 and p99 | {' | '.join(pages)} |")
        print(f"| recall@5 by {kind} | {recall(there[f'{kind} pages'], here[f'{kind} pages']):.4f} | |")
    if "recall" in there:
        print(f"| recall@{DEPTH} of the graph | {there['recall']:.4f} | |")
    held = (f"{found['resident']:.0f} of which {found['before']:.0f} before" for found in (there, here))
    print(f"| MB held by the process | {' | '.join(held)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 300_000])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--search", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    for hidden in ("work", "url"):
        parser.add_argument(f"--{hidden}", help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.work:
        count = given.documents[0]
        base = None if given.work == "memory" else base_at(given.url)
        asked = json.load(sys.stdin)
        filling = base is not None and given.work == "fill"
        print(json.dumps(fill(base, given.search) if filling else ask(base, asked, count, given.search)))
        sys.stdout.flush()
        os._exit(0)  # a pool's threads need not be waited for
    if installed() is None:
        sys.exit(MISSING)
    cluster = Cluster("shared_buffers = 1GB", "max_wal_size = 4GB")
    try:
        for count in given.documents:
            measure(cluster, count, given.queries, given.search)
    finally:
        cluster.remove()
    print(f"\nOne-minute load average {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
