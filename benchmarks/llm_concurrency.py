"""Concurrency of an exam over a slow model against the ideal, and the gain of batches in training.

A local server plays the reference agents with a fixed latency a turn. The ideal is the larger of (turns x latency /
concurrency) and the longest chain of turns; both ratios are measured in this one run.

    python benchmarks/llm_concurrency.py [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from kbgym.agents.llm.connect import Models, Options
from kbgym.agents.llm.policy import LLMAgent
from kbgym.api.factory import embedder_named
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.training.exam import examine
from kbgym.training.run import Run, Settings
from kbgym.training.session import Agents
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate, pool

TWO_SLOTS = (
    "job-and-city",
    "job-and-hobby",
    "common-friend",
    "friends-with-job",
    "older-of-two",
    "spouse-of-job-city",
)
SERVER = Path(__file__).parent.parent / "tests" / "fault_server.py"


@contextmanager
def server(latency: float) -> Iterator[str]:
    """The server in a process of its own, so that it takes no time from the client."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "--latency", str(latency)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def exam(questions: int, concurrency: int, latency: float, people: int) -> dict[str, Any]:
    """An exam of so many questions, and how its time compares with the ideal."""
    world = generate(people, seed=0)
    store = Store(source(document.id, document.text) for document in world.documents)
    engine = Engine(HashEmbedder())
    engine.load((record.id, record.text) for record in store)
    # As many of each two-slot template, which is what the gradient's exams are made of.
    pools = [list(islice(pool(world, template), questions)) for template in TWO_SLOTS]
    asked = [question for row in zip(*pools, strict=False) for question in row][:questions]

    async def run(url: str) -> tuple[float, float, list[int]]:
        models = Models(Options(base_url=url, concurrency=concurrency))
        agent = LLMAgent(models, "llm:local/reference", "reader")
        try:
            # The first request pays for imports and connections, which belong to no exam.
            await examine(store, engine, asked[:1], agent, concurrency=1)
            began, worked = time.perf_counter(), time.process_time()
            rows = await examine(store, engine, asked, agent, concurrency=len(asked))
            return (
                time.perf_counter() - began,
                time.process_time() - worked,
                [row.actions for row in rows],
            )
        finally:
            await models.close()

    with server(latency) as url:
        seconds, processor, turns = asyncio.run(run(url))
    ideal = max(sum(turns) * latency / concurrency, max(turns) * latency)
    return {
        "questions": len(turns),
        "concurrency": concurrency,
        "latency": latency,
        "turns": sum(turns),
        "longest": max(turns),
        "seconds": round(seconds, 2),
        "ideal": round(ideal, 2),
        "ratio": round(seconds / ideal, 3),
        "processor_ms_a_turn": round(1000 * processor / sum(turns), 2),
    }


def training(questions: int, latency: float, people: int, sizes: tuple[int, ...] = (1, 8)) -> dict[str, Any]:
    """The same training with one question at a time and with several side by side."""
    world = generate(people, seed=0)
    seconds: dict[int, float] = {}

    async def run(url: str, size: int, folder: Path) -> float:
        settings = Settings(questions=questions, epochs=1, embedder="hash", eval=False, batch_size=size)
        made = Run.open_or_create(folder, world, settings)
        models = Models(Options(base_url=url, concurrency=size))
        agents = Agents(LLMAgent(models, "llm:local/m", "reader"), LLMAgent(models, "llm:local/m", "curator"))
        engine = partial(engine_for, embedder=embedder_named("hash"))
        trainer = Trainer(made, agents, engine)
        began = time.perf_counter()
        try:
            await trainer.train()
        finally:
            await models.close()
        return time.perf_counter() - began

    with server(latency) as url, tempfile.TemporaryDirectory() as scratch:
        for size in sizes:
            seconds[size] = asyncio.run(run(url, size, Path(scratch) / str(size)))
    return {
        "questions": questions,
        "latency": latency,
        **{f"seconds_{size}": round(took, 2) for size, took in seconds.items()},
        "speedup": round(seconds[sizes[0]] / seconds[sizes[-1]], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--questions", type=int, default=136)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--lessons", type=int, default=32)
    parser.add_argument("--people", type=int, default=500)
    options = parser.parse_args()
    result = {
        "exam": exam(options.questions, options.concurrency, options.latency, options.people),
        "training": training(options.lessons, options.latency, options.people),
    }
    if options.json:
        print(json.dumps(result))
    else:
        for name, values in result.items():
            print(name, *(f"{key} {value}" for key, value in values.items()), sep="  ")


if __name__ == "__main__":
    main()
