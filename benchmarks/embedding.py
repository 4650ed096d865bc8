"""int8 beside float32: sentences a second in the same run, and how much of the supporting text each finds.

    python benchmarks/embedding.py [--data FOLDER] [--rounds 15]

The two take turns on the same texts, so that whatever else the machine does falls on both; a ratio is that of the
medians over the rounds, wall clock and processor time. recall@5 is benchmarks/recall.py's, by vectors, on the people
world (seed 0) and, where the data is there, HotpotQA and MuSiQue. Prints two Markdown tables.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from pathlib import Path

import numpy as np
from real_text import DATA, SETS
from recall import recall

from kbgym.artefact.parts import embedder_named
from kbgym.corpus.public import read_public
from kbgym.search.cache import cache_folder
from kbgym.search.choice import engine_of
from kbgym.search.minilm import GRAPHS, MiniLM, find
from kbgym.worlds.people import generate
from kbgym.worlds.world import World


def worlds(data: Path) -> dict[str, World]:
    public = {name: data / file for name, file in SETS if (data / file).is_file()}
    return {"people": generate()} | {name: read_public(name, file, None, 0).world for name, file in public.items()}


def speed(name: str, texts: list[str], at_once: int, rounds: int) -> None:
    """One row: both embedders in turn on `at_once` other texts every round."""
    models = [MiniLM(find(cache_folder()), cache_folder(), name=one) for one in GRAPHS]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    found = worlds(given.data)
    print("| texts | rounds | float32 a second | int8 a second | ratio | ratio, processor time | least cosine |")
    print("|" + " --- |" * 7)
    for name, world in found.items():
        texts = random.Random(0).sample([document.text for document in world.documents], 128 * given.rounds)
        speed(f"documents of {name}", texts, 128, given.rounds)
    asked = [question.text for world in found.values() for question in world.questions]
    speed("new queries", random.Random(0).sample(asked, 4 * given.rounds), 1, 4 * given.rounds)
    print("\n| recall@5 by vectors | documents | questions | float32 | int8 | difference (at most 0.01) |")
    print("|" + " --- |" * 6)
    for name, world in found.items():
        items = [(document.id, document.text) for document in world.documents]
        full, small = (recall(engine_of(items, embedder_named(one)), world.questions) for one in GRAPHS)
        asked_count = sum(bool(question.support) for question in world.questions)
        print(
            f"| {name} | {len(items):,} | {asked_count} | {full:.4f} | {small:.4f} | {small - full:+.4f} |", flush=True
        )


if __name__ == "__main__":
    main()
