"""A small world and everything to run the protocol on it; the hash embedder keeps it quick."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kbgym.api.factory import agents_named, embedder_named
from kbgym.search.factory import engine_for
from kbgym.training.run import Run, Settings
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate
from kbgym.worlds.world import World

SMALL = Settings(questions=20, epochs=2, embedder="hash")


@pytest.fixture(scope="session")
def small_world() -> World:
    return generate(people=80, seed=3)


@pytest.fixture
def start(small_world: World) -> Callable[..., Trainer]:
    """A trainer over a run folder, new or resumed."""

    def starting(folder: Path, settings: Settings = SMALL, world: World = small_world) -> Trainer:
        run = Run.open_or_create(folder, world, settings)
        engine = partial(engine_for, embedder=embedder_named(settings.embedder))
        return Trainer(run, agents_named(settings), engine)

    return starting
