"""The reserved slot: how precise it is as trained needs grow, what the threshold does, and what it costs.

    python benchmarks/slot.py [--needs 20,200,2000,10000] [--seed 21]

A need is a question of a generated world; its index holds the question and the sentence that answers it. It is asked
again in other words. Questions about people with no index show how often a slot is shown in vain. Prints Markdown.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence

import numpy as np

from kbgym.gym.environment import SLOT_THRESHOLD, Environment
from kbgym.search.embed import CachedEmbedder, default_embedder
from kbgym.search.factory import engine_for
from kbgym.search.index import ExactIndex
from kbgym.store import Record, Store, source
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.people import generate
from kbgym.worlds.world import Question

WORDINGS = {
    "job-of": "How does {} earn a living?",
    "hobby-of": "How does {} like to spend free time?",
    "city-of": "Where is the home of {}?",
}
THRESHOLDS = (0.3, 0.5, 0.6, 0.7, 0.8)
ASKED = 200
Asked = tuple[str, str]  # a question in other words, and its evidence


def needs(count: int, seed: int) -> tuple[dict[str, str], list[Question]]:
    """Return the documents of a world and its one-step questions in random order: some more than `count`."""
    world = generate(people=count // 3 + 100, seed=seed)
    found = [question for name in WORDINGS for question in kind_of(world).pool(world, name)]
    random.Random(seed).shuffle(found)
    return {document.id: document.text for document in world.documents}, found


def reworded(question: Question) -> Asked:
    return WORDINGS[question.template].format(question.keys[0].value), question.support[0]


def trained(documents: dict[str, str], questions: Sequence[Question], embedder: CachedEmbedder) -> Environment:
    """Return an environment with an index for each question."""
    ids = {question.support[0] for question in questions}
    records = [source(id, text) for id, text in documents.items() if id in ids]
    for number, question in enumerate(questions, 1):
        target = question.support[0]
        records.append(Record(f"n{number}", f"{question.text} {documents[target]}", (target,), flag="authored"))
    store = Store(records)
    return Environment(store, engine_for(store, embedder), ranking="slot")


def matches(environment: Environment, asked: Sequence[Asked]) -> list[tuple[float, bool]]:
    """Return the score of the best index for each question, and whether it points to the evidence."""
    assert environment.engine.trained is not None
    hits = [environment.engine.trained.match(text, 1)[0] for text, _ in asked]
    pairs = zip(hits, asked, strict=True)
    return [(score, target in environment.store[id].links) for (id, score), (_, target) in pairs]


def precision(sizes: Sequence[int], seed: int) -> None:
    embedder = default_embedder()
    documents, pool = needs(max(sizes), seed)
    print("| trained needs | threshold | shown, right | shown, wrong | nothing trained: shown in vain |")
    print(f"| {' | '.join(['---:'] * 5)} |")
    strangers = [reworded(question) for question in pool[-ASKED:]]
    for size in sizes:
        environment = trained(documents, pool[:size], embedder)
        known = [reworded(question) for question in pool[: min(size, ASKED)]]
        found, vain = matches(environment, known), matches(environment, strangers)
        for threshold in THRESHOLDS:
            right = np.mean([score >= threshold and hit for score, hit in found])
            wrong = np.mean([score >= threshold and not hit for score, hit in found])
            false = np.mean([score >= threshold for score, _ in vain])
            mark = " (default)" if threshold == SLOT_THRESHOLD else ""
            print(f"| {size:,} | {threshold:.2f}{mark} | {right:.3f} | {wrong:.3f} | {false:.3f} |", flush=True)


def cost(count: int = 100_000, dimensions: int = 384, rounds: int = 20) -> None:
    """Time the search among as many documents and indexes."""
    rows = np.random.default_rng(0).standard_normal((count, dimensions), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = ExactIndex(dimensions)
    index.put_many([f"n{number}" for number in range(count)], rows)
    times: dict[int, list[float]] = {5: [], 1: []}
    for number in range(rounds):
        for limit in times:
            start = time.perf_counter()
            index.search(rows[number], 0, limit)
            times[limit].append(time.perf_counter() - start)
    page, slot = (float(np.median(times[limit])) * 1e3 for limit in (5, 1))
    print(f"\nOf {count:,} vectors each: a page of documents {page:.1f} ms, the slot {slot:.1f} ms more.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--needs", default="20,200,2000,10000")
    parser.add_argument("--seed", type=int, default=21)
    arguments = parser.parse_args()
    precision([int(size) for size in arguments.needs.split(",")], arguments.seed)
    cost()
