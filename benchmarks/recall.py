"""Recall of supporting sentences with the question as query, by vectors, by words and by both.

    python benchmarks/recall.py [WORLD...] [--embedder NAME] [--depth 5]

recall@5 is the share of a question's supports among the first five hits, a mean over the questions that have supports.
Both together must reach the better of the two, less 0.01. Without a world, those of `trained_text.py`. Prints a
Markdown table.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from trained_text import DATA, SETS, world_of

from kbgym.api.factory import embedder_named
from kbgym.search.base import SEARCHES
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for
from kbgym.worlds.world import Question, World


def recall(engine: Engine, questions: Sequence[Question], depth: int = 5) -> float:
    shares = [
        len({id for id, _ in engine.search(question.text, 0, depth)} & set(question.support))
        / len(set(question.support))
        for question in questions
        if question.support
    ]
    return sum(shares) / len(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="*", type=Path)
    parser.add_argument("--embedder", default="")
    parser.add_argument("--depth", type=int, default=5)
    given = parser.parse_args()
    embedder = embedder_named(given.embedder)
    print(f"| world ({embedder.name}) | documents | questions | {' | '.join(SEARCHES)} | less than the better part |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    worlds = {folder.name: World.load(folder) for folder in given.worlds} or {
        name: world_of(name, 0, DATA) for name in SETS
    }
    for name, world in worlds.items():
        texts = [(document.id, document.text) for document in world.documents]
        found = [recall(engine_for(texts, embedder, None, kind), world.questions, given.depth) for kind in SEARCHES]
        asked = sum(bool(question.support) for question in world.questions)
        less = max(0.0, max(found[:2]) - found[2])
        shown = " | ".join(f"{share:.4f}" for share in found)
        print(f"| {name} | {len(texts):,} | {asked} | {shown} | {less:.4f} (at most 0.01) |", flush=True)


if __name__ == "__main__":
    main()
