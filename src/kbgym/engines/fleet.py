"""A training fleet: many trainers of one run at one store in PostgreSQL, wherever an engine starts them.

Each is an ordinary trainer with a scratch folder of its own; who has which lesson is settled at the store. So a trainer
that is lost costs nothing but the step it was at: the others, or the engine's next try, go on with its lesson.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from kbgym.agents.llm.connect import is_model
from kbgym.api.factory import agents_named
from kbgym.api.training import teach, trainer_for
from kbgym.errors import BadInput
from kbgym.experiments.engines import WorkEngine
from kbgym.store import Store
from kbgym.training.run import Run, Settings
from kbgym.worlds.world import World


class Fleet(msgspec.Struct, frozen=True):
    """What all trainers share. `begun` is the store it began with, where that was not the world's documents."""

    world: World
    settings: Settings
    url: str
    begun: Store | None = None


def train_fleet(engine: WorkEngine, fleet: Fleet) -> list[int]:
    """As many trainers as the engine has workers, until every lesson is over; gives how many lessons each ended."""
    players = (fleet.settings.reader, fleet.settings.curator, fleet.settings.judge)
    if any(map(is_model, players)):
        raise BadInput("a fleet of models has no common budget: run `kbgym train --store URL` in several processes.")
    return list(engine.run(train_one, fleet, range(engine.workers)))


def train_one(fleet: Fleet, number: int) -> int:
    """One trainer, in whatever process this is."""
    with tempfile.TemporaryDirectory(prefix="kbgym-trainer-") as scratch:
        run = Run.open_or_create(Path(scratch) / "run", fleet.world, fleet.settings, fleet.begun)
        trainer = trainer_for(run, agents_named(fleet.settings, world=fleet.world), fleet.url)
        teach(trainer)
        return trainer.ended
