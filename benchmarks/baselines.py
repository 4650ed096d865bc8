"""Cost and structure of each arm: python benchmarks/baselines.py [--people N ...] [--paper FILE] [--exam] [--arms A
...]

Build time of every arm on generated worlds and, with --paper, on the paper's universe; the last column is the time as a
multiple of flat vectors' own price, embedding the same documents cold at the speed measured on a sample of them. With
--exam the reference reader takes the gradient's four groups (or the paper's two-slot questions) on each store.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kbgym.agents.registry import make_agent
from kbgym.analysis.health import coverage
from kbgym.baselines import ARMS, build_arm, engine_for_arm
from kbgym.search.embed import CachedEmbedder, default_embedder
from kbgym.training.exam import examine, summarise
from kbgym.training.lessons import schedule
from kbgym.training.probe import gradient, gradient_templates
from kbgym.training.run import Settings
from kbgym.worlds import people
from kbgym.worlds.people.paper import read
from kbgym.worlds.world import Question, World

SAMPLE = 400


def worlds(sizes: Sequence[int], paper: Path | None) -> Iterator[tuple[str, World, list[Question]]]:
    for size in sizes:
        world = people.generate(size, 0)
        trained = list(dict.fromkeys(question for _, question in schedule(world, Settings())))
        groups = gradient(world, trained, 34).groups
        yield f"{size:,} people", world, [question for group in groups.values() for question in group]
    if paper is not None:
        world = read(paper)
        templates = gradient_templates(world)
        yield "the paper's universe", world, [q for q in world.questions if q.template in templates]


def embedding_seconds(world: World, embedder: CachedEmbedder) -> float:
    """Estimate the time to embed all documents without a cache, from a sample."""
    texts = [document.text for document in world.documents[:: max(1, len(world.documents) // SAMPLE)]]
    started = time.perf_counter()
    embedder.embedder.embed(texts)
    return (time.perf_counter() - started) * len(world.documents) / len(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, nargs="*", default=[500])
    parser.add_argument("--paper", type=Path, help="The paper's universe file.")
    parser.add_argument("--exam", action="store_true", help="Let the reference reader sit the exam on each store.")
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    arguments = parser.parse_args()
    embedder = default_embedder()
    for title, world, questions in worlds(arguments.people, arguments.paper):
        cold = embedding_seconds(world, embedder)
        embedder.embed([document.text for document in world.documents])
        print(f"\n{title}: {len(world.documents):,} documents, embedded cold in about {cold:.1f} s\n")
        exam = " F1 | actions | characters |" if arguments.exam else ""
        print(f"| arm | documents | links | coverage | build s | of embedding |{exam}")
        print("| --- |" + " ---: |" * (8 if arguments.exam else 5))
        for name in arguments.arms:
            started = time.perf_counter()
            store = build_arm(name, world, lambda: embedder).store
            seconds = time.perf_counter() - started
            share = coverage(store).direct
            row = f"| {ARMS[name].label} | {len(store):,} | {store.links:,} | {share:.0%} | {seconds:.2f} |"
            row += f" {seconds / cold:.2f} |"
            if arguments.exam:
                engine = engine_for_arm(name, store, embedder)
                rows = asyncio.run(examine(store, engine, questions, make_agent("reference", "reader")))
                summary = summarise(rows)
                row += f" {summary.f1:.3f} | {summary.actions:.2f} | {summary.characters:,.0f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
