"""Cost of search as ratios to a limit or a peer measured in the same run; prints a Markdown table.

    OMP_NUM_THREADS=1 python benchmarks/search.py [--quick]

The limit of an exact search is one pass over the matrix (`matrix @ query`); the peer is in-memory chroma on the same
vectors. Timed pairs alternate, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbgym.errors import Missing
from kbgym.search.cache import VectorCache
from kbgym.search.embed import CachedEmbedder, HashEmbedder, default_embedder, keys
from kbgym.search.engine import Engine
from kbgym.search.index import ExactIndex, VectorIndex
from kbgym.search.minilm import MiniLM
from kbgym.search.models import MINILM, find

Rows = NDArray[np.float32]
DIMENSIONS = 384
FIRST = "Ada Bela Cleo Dario Edda Finn Greta Hugo Iris Jonas Kaja Lars Mara Nils Odo Pia Quinn Rosa Sven Tilda".split()
LAST = "Tolland Fenn Ravenscroft Marsh Hale Quill Ostrow Pell Rook Sayer Thorne Usher Vane Wick Yarrow Zell".split()


def unit_rows(count: int, seed: int) -> Rows:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSIONS), dtype=np.float32)
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows


def filled(count: int) -> tuple[ExactIndex, Rows]:
    rows = unit_rows(count, 0)
    index = ExactIndex(DIMENSIONS)
    index.put_many([f"d{number}" for number in range(count)], rows)
    return index, rows


def queries(rows: Rows, count: int) -> list[Rows]:
    noisy = rows[:count] + 0.5 * unit_rows(min(count, len(rows)), 1)
    return [row / np.linalg.norm(row) for row in noisy]


def alternating(rounds: int, *works: Callable[[int], object]) -> list[float]:
    """Median seconds of each piece of work, taken in turn."""
    taken: list[list[float]] = [[] for _ in works]
    for number in range(rounds):
        for work, times in zip(works, taken, strict=True):
            start = time.perf_counter()
            work(number)
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in taken]


def row(what: str, ours: str, against: str, ratio: str, bound: str) -> None:
    print(f"| {what} | {ours} | {against} | {ratio} | {bound} |", flush=True)


def brute(rows: Rows, query: Rows) -> list[str]:
    scores = (rows.astype(np.float64) * query).sum(axis=1)
    return [f"d{place}" for place in sorted(range(len(rows)), key=lambda place: (-scores[place], f"d{place}"))[:5]]


def against_the_limit(count: int, rounds: int) -> None:
    index, rows = filled(count)
    asked = queries(rows, 50)
    ours, limit = alternating(
        rounds,
        lambda number: index.search(asked[number % 50], 0, 5),
        lambda number: rows @ asked[number % 50],
    )
    right = all([id for id, _ in index.search(query, 0, 5)] == brute(rows, query) for query in asked[:3])
    note = "same as brute force" if right else "DIFFERS FROM BRUTE FORCE"
    what = f"search, {count:,} vectors ({note})"
    row(what, f"{ours * 1e3:.3f} ms", f"one pass: {limit * 1e3:.3f} ms", f"{ours / limit:.2f}", "at most 1.5")


def sentence_rows(count: int) -> tuple[str, Rows, list[Rows]]:
    """Vectors of made-up sentences and questions, on which a graph search is easier than on random ones."""
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    told = ("'s job is tailor.", " lives in the city of Eastmere.", " is the mother of Odo Fenn.", "'s hobby is chess.")
    texts = [f"{names[number % len(names)]}{told[number // len(names) % 4]} ({number})" for number in range(count)]
    embedder = default_embedder()
    asked = embedder.embed([f"Who is a friend of {name}?" for name in names[:50]])
    return "sentence vectors", embedder.embed(texts), list(asked)


def against_chroma(count: int, rounds: int, sentences: bool) -> None:
    kind, rows = "random vectors", unit_rows(count, 0)
    asked = queries(rows, 50)
    if sentences:
        try:
            kind, rows, asked = sentence_rows(count)
        except Missing as error:
            row("search among sentence vectors", "", str(error), "", "")
            return
    index = ExactIndex(DIMENSIONS)
    index.put_many([f"d{number}" for number in range(count)], rows)
    try:
        import chromadb
        from chromadb.config import Settings
    except ImportError:
        row(
            f"search, {count:,} vectors", "", "chroma: pip install -c constraints.txt chromadb", "", "chroma at least 2"
        )
        return
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    # Clients of one process share their collections, hence the name.
    peer = client.create_collection(
        kind.replace(" ", "-"), embedding_function=None, configuration={"hnsw": {"space": "ip"}}
    )
    for start in range(0, count, 5000):  # chroma refuses larger batches
        part = range(start, min(start + 5000, count))
        peer.upsert(ids=[f"d{number}" for number in part], embeddings=rows[part.start : part.stop])

    def query(number: int, **options: Any) -> Any:
        return peer.query(query_embeddings=asked[number % 50][None], n_results=5, **options)

    ours, theirs, bare = alternating(
        rounds,
        lambda number: index.search(asked[number % 50], 0, 5),
        query,
        lambda number: query(number, include=["distances"]),
    )
    found = sum(
        len({id for id, _ in index.search(one, 0, 5)} & set(query(number)["ids"][0]))
        for number, one in enumerate(asked)
    )
    row(
        f"search, {count:,} {kind}; chroma finds {found / 2.5:.0f}% of the true five",
        f"{ours * 1e3:.3f} ms",
        f"chroma's query: {theirs * 1e3:.3f} ms (distances only {bare * 1e3:.3f})",
        f"chroma {theirs / ours:.1f} times ours (distances only {bare / ours:.1f})",
        "at least 2",
    )


def edits(counts: list[int], rounds: int) -> None:
    base = 0.0
    for count in counts:
        index, rows = filled(count)

        def cycle(number: int, index: VectorIndex = index, rows: Rows = rows, count: int = count) -> None:
            index.put("new", rows[number % 50])
            index.put(f"d{(number * 7919) % count}", rows[number % 50])
            index.remove("new")

        (taken,) = alternating(rounds, cycle)
        base = base or taken
        note = f"{counts[0]:,}: {base * 1e6:.1f} us"
        row(
            f"add, edit and remove one, {count:,} vectors", f"{taken * 1e6:.1f} us", note, f"{taken / base:.2f}", "flat"
        )
        del index, rows


def cache(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = unit_rows(min(count, 10_000), 2)
        store = VectorCache(Path(folder))
        texts = [f"A text about number {number}, as long as a short sentence." for number in range(count)]

        class Never:
            name, dimensions = "never", DIMENSIONS

            def embed(self, texts: object) -> Rows:
                raise AssertionError("everything is cached")

        start = time.perf_counter()
        for at in range(0, count, len(rows)):
            some = texts[at : at + len(rows)]
            store.put(keys("never", some), rows[: len(some)])
        written = time.perf_counter() - start
        store.close()
        engine = Engine(CachedEmbedder(Never(), VectorCache(Path(folder))))
        start = time.perf_counter()
        engine.load((f"d{number}", text) for number, text in enumerate(texts))
        taken = time.perf_counter() - start
        start = time.perf_counter()
        (Path(folder) / "vectors-1.sqlite3").read_bytes()
        limit = time.perf_counter() - start
        row(
            f"warm load, {count:,} texts (filling the cache took {written:.1f} s)",
            f"{taken:.2f} s",
            f"reading the file: {limit:.2f} s",
            f"{taken / limit:.1f}",
            "",
        )


def embedding(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        texts = [f"Mara Tolland {number} is the mother of Odo Fenn." for number in range(count)]
        try:
            model = MiniLM(find(MINILM, Path(folder)), Path(folder))
        except Missing as error:
            row("embedding", "", str(error), "", "")
            return
        model.embed(["warm up"])
        (batch,) = alternating(1, lambda number: model.embed(texts))
        (alone,) = alternating(30, lambda number: model.embed([f"Who is a friend of Odo Fenn {number}?"]))
        cached = default_embedder(Path(folder))
        cached.embed(texts[:64])
        (hit,) = alternating(200, lambda number: cached.embed([texts[number % 64]]))
        row(
            f"embed {count:,} short sentences",
            f"{count / batch:.0f} a second",
            f"one at a time: {1 / alone:.0f} a second",
            f"{alone * count / batch:.1f}",
            "",
        )
        row("embed a query", f"remembered: {hit * 1e6:.0f} us", f"new: {alone * 1e3:.1f} ms", f"{hit / alone:.3f}", "")
        (hashed,) = alternating(3, lambda number: HashEmbedder().embed(texts))
        row("hash embedder (tests)", f"{count / hashed:.0f} a second", "", "", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds, for a short look")
    quick = parser.parse_args().quick
    print("| what | ours | limit or peer | ratio | must be |\n| --- | --- | --- | --- | --- |")
    against_the_limit(5864, 200 if quick else 1000)
    against_the_limit(20_000 if quick else 100_000, 50)
    against_chroma(5864, 100 if quick else 300, sentences=False)
    if not quick:
        against_chroma(5864, 300, sentences=True)
    edits([6000, 60_000] if quick else [6000, 60_000, 600_000], 500)
    cache(5900)
    if not quick:
        cache(600_000)
    embedding(200 if quick else 1000)


if __name__ == "__main__":
    main()
