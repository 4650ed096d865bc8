"""Steps a second of the Gymnasium environment: with queries that are known, and with new ones against the embedding's
own limit."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import gymnasium

from kbgym.api.factory import embedder_named
from kbgym.training.run import Settings
from kbgym.worlds.people import generate

MANY, EPISODES, ROUNDS = 32, 60, 14


def known(place: str) -> float:
    """One environment, episodes of searches that were made before and an answer."""
    env = gymnasium.make("kbgym.integrations.gymnasium:kbgym/Reader-v0", place=place).unwrapped
    calls = [json.dumps({"tool": "search", "query": f"Who works as a baker in town {n}?"}) for n in range(14)]
    calls.append('{"tool": "answer", "text": "nobody"}')
    for episode in range(EPISODES + 1):
        if episode == 1:  # the first one embeds
            began = time.perf_counter()
        env.reset(seed=episode)
        for call in calls:
            env.step(call)
    return EPISODES * len(calls) / (time.perf_counter() - began)


def new(place: str) -> tuple[float, float]:
    """Step many environments with unseen queries, and embed as many others alone in batches of the same size."""
    mark = time.time_ns()
    queries = [[f"Who of the guild {mark} {n} {k} is a friend of a baker?" for k in range(MANY)] for n in range(ROUNDS)]
    env = gymnasium.make_vec("kbgym.integrations.gymnasium:kbgym/Reader-v0", num_envs=MANY, place=place)
    env.reset(seed=0)
    began = time.perf_counter()
    for batch in queries:
        env.step([json.dumps({"tool": "search", "query": query}) for query in batch])
    steps = MANY * ROUNDS / (time.perf_counter() - began)
    alone = embedder_named(Settings().embedder).embedder
    began = time.perf_counter()
    for batch in queries:
        alone.embed([query.replace("guild", "order") for query in batch])
    return steps, MANY * ROUNDS / (time.perf_counter() - began)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "w"
        generate(500, 0).save(place)
        cached = known(str(place))
        steps, limit = new(str(place))
    print("| 500 people, 5,842 documents | steps a second |")
    print("| --- | ---: |")
    print(f"| one environment, known queries | {cached:,.0f} |")
    print(f"| {MANY} at once, new queries | {steps:,.0f} |")
    print(f"| the embedder alone | {limit:,.0f} ({limit / steps:.2f} times that) |")


if __name__ == "__main__":
    main()
