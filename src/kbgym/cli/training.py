"""What the verbs that train have in common: the options, and how a run begins."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kbgym.agents.trust import remember
from kbgym.api.factory import agents_named
from kbgym.cli.common import agent_options, flags, forward_budget, say, search_options
from kbgym.errors import BadInput
from kbgym.gym.environment import RANKINGS
from kbgym.gym.observations import OBSERVATIONS
from kbgym.store import Store
from kbgym.training.run import Run, Settings
from kbgym.worlds.kinds import why_agent
from kbgym.worlds.world import World

training_options = flags(
    click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Settings as TOML."),
    click.option("--questions", type=click.IntRange(min=1), help="Training questions.  [default: 100, or all]"),
    click.option("--epochs", type=click.IntRange(min=1), help="How often each is asked.  [default: 2]"),
    click.option("--seed", type=int, help="Decides the order of the questions.  [default: 0]"),
    click.option("--strategy", help="What the curator works on: paper or class.  [default: paper]"),
    click.option("--ranking", type=click.Choice(RANKINGS), help="May indexes push documents out?  [default: paper]"),
    click.option("--gate", type=click.IntRange(min=0), help="Questions asked again before edits stay.  [0]"),
    click.option("--observations", type=click.Choice(OBSERVATIONS), help="What agents read.  [rich for real text]"),
    click.option("--batch-size", type=click.IntRange(min=1), help="Questions side by side.  [default: 1]"),
    click.option("--embedder", help="all-MiniLM-L6-v2[-int8] or hash for tests."),
    forward_budget,
    agent_options,
    search_options,
)


def players(settings: Settings) -> list[str]:
    """Everybody who plays in a training."""
    return [settings.reader, settings.curator, settings.judge]


def begin(
    out: Path, world: World, settings: Settings, given: Mapping[str, Any], store: Store | None = None
) -> tuple[Run, str | None]:
    """A run that is begun or gone on with, and who plays and why, said where the person did not choose."""
    agents_named(settings)  # refuses whom it does not know, before anything is written
    why = None if {"reader", "curator"} <= given.keys() else why_agent(world)
    run = Run.open_or_create(out, world, settings, store)
    say(why)
    with contextlib.suppress(BadInput):  # who is named here may play there later; if that is not kept, it is asked
        remember(str(out), players(settings))
    return run, why
