"""`kbgym train`: its options, the start or resumption of a run, and the verb."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from kbgym.agents.external.agent import KEPT
from kbgym.agents.trust import remember
from kbgym.analysis.health import coverage
from kbgym.api import beginning, open, teach, trainer_for
from kbgym.api.factory import CASSETTE, agents_named, training_settings
from kbgym.cli.common import Printed, progress, say, settings_given, verb
from kbgym.cli.exam import Where, engine_options
from kbgym.cli.settings import flags, option, options
from kbgym.cli.spending import Spending, spending_options, training_plan, used_by_commands, with_spend
from kbgym.errors import BadInput
from kbgym.experiments.controls import CONTROLS, controlled
from kbgym.store import Store, ledger
from kbgym.trace import shown
from kbgym.trace.events import Ended
from kbgym.training.run import Run, Settings
from kbgym.training.trainer import Trainer
from kbgym.worlds.kinds import kind_of, why_agent
from kbgym.worlds.world import World

training_options = flags(
    options("training_questions", "epochs", "seed", "strategy", "ranking", "gate", "observations", "batch_size"),
    options("embedder", "forward_budget", "slots", "slot_threshold"),
    options("agent", "reader", "curator", "judge", "search"),
)


def players(settings: Settings) -> list[str]:
    """Return the names of all agents in a training."""
    return [settings.reader, settings.curator, settings.judge]


def begin(
    out: Path, world: World, settings: Settings, given: Mapping[str, Any], store: Store | None = None
) -> tuple[Run, str | None]:
    """Start or resume a run; return it, and why these agents play if the user did not choose."""
    agents_named(settings)  # rejects unknown agents before anything is written
    why = None if {"reader", "curator"} <= given.keys() else why_agent(world)
    run = Run.open_or_create(out, world, settings, store)
    say(why)
    with contextlib.suppress(BadInput):  # if trust cannot be saved, the user is asked again
        remember(str(out), players(settings))
    return run, why


@verb("train")
@option("world", "--world", "world_folder", required=True, help="The world to train on.")
@option("run", "--out", "out", required=True, help="The run folder; run again to resume.")
@options("store")
@click.option("--control", type=click.Choice(CONTROLS), help="Train as a control, which should gain nothing.")
@options("eval")
@training_options
@engine_options
@spending_options
def command(
    world_folder: Path, out: Path, store: str | None, begins: str | None, control: str | None, **flags: Any
) -> Printed:
    """Train a store: answer each question, see the gold, edit the store, commit.

    Run the same command again to resume interrupted training.

    \b
    Example:
      kbgym generate --people 500 --seed 0 --out worlds-out/w0
      kbgym train --world worlds-out/w0 --out runs/r0 --questions 100 --epochs 2
      kbgym baseline hipporag --world worlds-out/w0 --out stores/b3
      kbgym train --world worlds-out/w0 --out runs/b3 --from stores/b3
      kbgym train --world worlds-out/w0 --out runs/wrong --control wrong-answers
    """
    spending, where, url = Spending(flags), Where(flags), store
    if not where.is_here and url is None:
        raise BadInput("--set engine=ray has many trainers at one store in a database: name it with --set store=URL.")
    world = World.load(world_folder, elsewhere=url is not None)
    given = settings_given(flags)
    begun, said = beginning(begins, world) if begins is not None else (None, None)
    settings = training_settings(world, out, **given, **({"begins": said} if said else {}))
    if control:
        if begins is not None:
            raise BadInput("a control is trained on the world's documents: leave --from out.")
        world, settings, begun = controlled(world, control, settings)
    run, why = begin(out, world, settings, given, begun)
    if url is not None and not where.is_here:
        _as_a_fleet(where, run, url, begun)
    with spending.models(players(settings), run.folder / CASSETTE) as models:
        with progress("embedding") as tick:
            agents = agents_named(settings, models, world=world, kept=run.folder / KEPT)
            trainer = trainer_for(run, agents, url, tick)
        left = len(trainer.lessons) - trainer.position
        evaluations = len(world.split("eval")) * (settings.epochs + 1) if settings.eval and left else 0
        spending.confirm_all(training_plan(settings, left, evaluations))
        with progress("training") as tick:
            teach(trainer, with_spend(tick, models, settings.batch_size))
    result, text = _outcome(trainer, shown(url) if url else str(out), why)
    text += _next(out, url, world_folder, kind_of(world).has_pools)

    def passes() -> Iterator[dict[str, Any] | None]:
        with open(url or out) as opened:
            yield from (event.usage for event in opened.events if isinstance(event, Ended))

    used, spent = used_by_commands(players(settings), passes())
    return {"run": str(out), **result, **used}, text + spent


def _outcome(trainer: Trainer, place: str, why: str | None) -> tuple[dict[str, Any], str]:
    """Return the outcome of a training, as a result and as text."""
    settings, counted, share = trainer.settings, ledger(trainer.store), coverage(trainer.store).direct
    f1 = sum(grade.f1 for grade in trainer.grades) / max(1, len(trainer.grades))
    result = {
        "iterations": trainer.iteration,
        "coverage": round(share, 4),
        "links": counted.links,
        "authored": counted.authored,
        "forward_f1": round(f1, 4),
        "settings": settings,
        "agents": why or f"{settings.reader} reads, {settings.curator} curates.",
    }
    text = (
        f"{place}: {trainer.iteration} iterations by {settings.reader}/{settings.curator}, forward F1 {f1:.3f}.\n"
        f"The store has {counted.authored} authored documents and {counted.links:,} links, "
        f"covering {share:.1%} of {counted.origins:,} originals.\n"
    )
    return result, text


def _as_a_fleet(where: Where, run: Run, url: str, store: Store | None) -> None:
    """Have the engine's workers play all lessons."""
    from kbgym.engines.fleet import Fleet, train_fleet

    with where.opened() as engine:
        train_fleet(engine, Fleet(run.world, run.settings, url, store))


def _next(out: Path, url: str | None, world: Path, pools: bool) -> str:
    if url is not None:
        return f"Next: kbgym exam '{shown(url)}' --world {world} --set test_in"
    if pools:
        return f"Next: kbgym probe {out} && kbgym exam {out} --set trained"
    return f"Next: kbgym exam {out} --set test_in && kbgym exam {out}@0 --set test_in"
