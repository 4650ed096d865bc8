"""int8 against float32 embedding: sentences per second in one run, and recall of supporting text.

    python benchmarks/embedding.py [--data FOLDER] [--rounds 15] [--goals]

The two take turns on the same texts, so that whatever else the machine does falls on both; a ratio is that of the
medians over the rounds, wall clock and processor time. recall@5 is benchmarks/recall.py's, by vectors, on the people
world, PhantomWiki's (seed 0) and, where the data is there, HotpotQA and MuSiQue. Prints three Markdown tables; with
`--goals` only the last: short sentences on all cores and a new query, each embedder at its best of the rounds.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from real_text import DATA, SETS
from recall import recall
from trained_text import world_of

from kbgym.api.factory import embedder_named
from kbgym.corpus.public import read_public
from kbgym.search.cache import cache_folder
from kbgym.search.factory import engine_for
from kbgym.search.minilm import GRAPHS, MiniLM
from kbgym.search.models import MINILM, find
from kbgym.worlds.people import generate
from kbgym.worlds.world import World


def worlds(data: Path) -> dict[str, World]:
    public = {name: data / file for name, file in SETS if (data / file).is_file()}
    made = {"people": generate(), "phantomwiki": world_of("phantomwiki", 0, data)}
    return made | {name: read_public(name, file, None, 0).world for name, file in public.items()}


def speed(name: str, texts: list[str], at_once: int, rounds: int) -> None:
    """One row: both embedders in turn on `at_once` other texts every round."""
    models = [MiniLM(find(MINILM, cache_folder()), cache_folder(), name=one) for one in GRAPHS]
    for model in models:
        model.embed(texts[:at_once])
    wall: list[list[float]] = [[], []]
    processor: list[list[float]] = [[], []]
    for number in range(rounds):
        some = texts[number * at_once : (number + 1) * at_once]
        for place, model in enumerate(models):
            started, used = time.perf_counter(), time.process_time()
            model.embed(some)
            wall[place].append(time.perf_counter() - started)
            processor[place].append(time.process_time() - used)
    slow, fast = (statistics.median(times) for times in wall)
    ratio = statistics.median(processor[0]) / statistics.median(processor[1])
    cosine = float(np.einsum("ij,ij->i", *(model.embed(texts[:200]) for model in models)).min())
    print(
        f"| {name}, {at_once} at once | {rounds} | {at_once / slow:.0f} | {at_once / fast:.0f} | {slow / fast:.2f} "
        f"| {ratio:.2f} | {cosine:.3f} |",
        flush=True,
    )


def goals(rounds: int) -> None:
    """Embed the sentences of benchmarks/search.py, a thousand at once, and unseen queries one at a time.

    Processor time stands beside the clock: what it would be if nobody else were on the machine.
    """
    models = [MiniLM(find(MINILM, cache_folder()), cache_folder(), name=one) for one in GRAPHS]
    cores = os.cpu_count() or 1
    many: list[list[tuple[float, float]]] = [[], []]
    one: list[list[tuple[float, float]]] = [[], []]
    for number in range(rounds):
        sentences = [f"Mara Tolland {number}{count:03} is the mother of Odo Fenn." for count in range(1_000)]
        queries = [f"Who is a friend of Odo Fenn {number}{count:02}?" for count in range(60)]
        for place, model in enumerate(models):
            model.embed(["warm"])
            many[place].append(timed(lambda model=model, some=sentences: model.embed(some)))
            waits = [timed(lambda model=model, query=query: model.embed([query])) for query in queries]
            one[place].append(tuple(statistics.median(times) for times in zip(*waits, strict=True)))
    heads = [f"{name}, {how}" for name in GRAPHS for how in ("clock", "processor")]
    print(f"| best of {rounds} rounds, {cores} cores | " + " | ".join(heads) + " | must be |")
    print("| --- |" + " ---: |" * 5)
    fastest = [
        (1_000 / min(wall), 1_000 * cores / min(used)) for wall, used in (zip(*rows, strict=True) for rows in many)
    ]
    print("| short sentences a second |" + "".join(f" {rate:,.0f} |" for both in fastest for rate in both) + " 1,500 |")
    shortest = [1000 * min(times) for rows in one for times in zip(*rows, strict=True)]
    print("| a new query, p50 |" + "".join(f" {wait:.1f} ms |" for wait in shortest) + " under 3 ms |")
    print(f"\n(one-minute load average {os.getloadavg()[0]:.1f})")


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    started, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--goals", action="store_true")
    given = parser.parse_args()
    if given.goals:
        goals(3)
        return
    found = worlds(given.data)
    print("| texts | rounds | float32 a second | int8 a second | ratio | ratio, processor time | least cosine |")
    print("|" + " --- |" * 7)
    for name, world in found.items():
        if len(world.documents) >= (count := 128 * given.rounds):
            texts = random.Random(0).sample([document.text for document in world.documents], count)
            speed(f"documents of {name}", texts, 128, given.rounds)
    asked = [question.text for world in found.values() for question in world.questions]
    speed("new queries", random.Random(0).sample(asked, 4 * given.rounds), 1, 4 * given.rounds)
    print("\n| recall@5 by vectors | documents | questions | float32 | int8 | difference (at most 0.01) |")
    print("|" + " --- |" * 6)
    for name, world in found.items():
        items = [(document.id, document.text) for document in world.documents]
        full, small = (recall(engine_for(items, embedder_named(one)), world.questions) for one in GRAPHS)
        asked_count = sum(bool(question.support) for question in world.questions)
        print(
            f"| {name} | {len(items):,} | {asked_count} | {full:.4f} | {small:.4f} | {small - full:+.4f} |", flush=True
        )
    print()
    goals(3)


if __name__ == "__main__":
    main()
