"""Time spent in a training run, measured against embedding in the same run.

    OMP_NUM_THREADS=1 python benchmarks/train.py

Three runs of 100 questions x 2 epochs by the reference agents: with nothing in the cache (documents and queries must be
embedded, as on a fresh machine), with the documents in it, with the queries too. Prints a Markdown table; times are
processor time.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbgym.api.factory import agents_named
from kbgym.search.embed import CachedEmbedder, default_embedder
from kbgym.search.factory import engine_for
from kbgym.trace.events import Acted
from kbgym.trace.folder import StoreFolder
from kbgym.training.run import Run, Settings
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate
from kbgym.worlds.world import World


class Timed:
    """An embedder that adds up the processor time spent in it."""

    def __init__(self, inner: CachedEmbedder) -> None:
        self._inner = inner
        self.name, self.dimensions = inner.name, inner.dimensions
        self.seconds = 0.0
        self.texts = 0

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        started = time.process_time()
        vectors = self._inner.embed(texts)
        self.seconds += time.process_time() - started
        self.texts += len(texts)
        return vectors


def train(world: World, strategy: str, cache: Path) -> tuple[int, float, float, int]:
    """Actions, seconds in all, seconds embedding, texts embedded."""
    settings = Settings(eval=False, strategy=strategy)
    with tempfile.TemporaryDirectory() as place:
        run = Run.open_or_create(Path(place) / "run", world, settings)
        timed = Timed(default_embedder(cache))
        started = time.process_time()
        engine = partial(engine_for, embedder=CachedEmbedder(timed))
        trainer = Trainer(run, agents_named(settings), engine)
        asyncio.run(trainer.train())
        spent = time.process_time() - started
        actions = sum(isinstance(event, Acted) for event in StoreFolder(run.folder).events)
    return actions, spent, timed.seconds, timed.texts


def main() -> None:
    world = generate(500, 0)
    print(
        "| strategy | not cached | actions | s in all | s embedding | all / embedding | other ms/action | actions/s |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for strategy in ("paper", "class"):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("everything", "queries", "nothing"):
                if state == "queries":
                    fresh = Path(cache) / "documents"
                    default_embedder(fresh).embed([document.text for document in world.documents])
                place = Path(cache) / ("all" if state == "everything" else "documents")
                actions, spent, embedding, _ = train(world, strategy, place)
                other = spent - embedding
                print(
                    f"| {strategy} | {state} | {actions:,} | {spent:.1f} | {embedding:.1f} | "
                    f"{spent / embedding:.2f} | {other / actions * 1000:.2f} | {actions / spent:,.0f} |"
                )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory {peak:,.0f} MiB.")


if __name__ == "__main__":
    main()
