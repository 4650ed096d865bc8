"""`kbgym train`: a world and settings in, a run folder with a trained store out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.agents.judge import LLMJudge
from kbgym.analysis.coverage import coverage
from kbgym.cli.common import Tick, agent_options, emit, output_options, progress, settings_from
from kbgym.cli.spending import Spending, spending_options, with_spend
from kbgym.environment import RANKINGS
from kbgym.errors import BadInput
from kbgym.llm.connect import Models
from kbgym.protocol.bench import join
from kbgym.protocol.run import Run, Settings
from kbgym.protocol.session import agents_named, check, embedder_named, engine_for
from kbgym.protocol.train import Trainer, remembered
from kbgym.store import ledger
from kbgym.trace.folder import StoreFolder
from kbgym.trace.place import Place, is_url, shown
from kbgym.worlds.pools import has_pools
from kbgym.worlds.world import World


@click.command("train")
@click.option("--world", "world_folder", required=True, type=click.Path(path_type=Path), help="The world to train on.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The run folder; run again to resume.")
@click.option("--store", "url", help="Train the store at this postgresql:// URL, perhaps with others.  [the run's own]")
@click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Settings as TOML.")
@click.option("--questions", type=click.IntRange(min=1), help="How many training questions.  [default: 100, or all]")
@click.option("--epochs", type=click.IntRange(min=1), help="How often each is asked.  [default: 2]")
@click.option("--seed", type=int, help="Decides the order of the questions.  [default: 0]")
@click.option("--strategy", help="What the curator works on: paper or class.  [default: paper]")
@click.option("--ranking", type=click.Choice(RANKINGS), help="May indexes push documents out?  [default: paper]")
@click.option("--admission", type=click.IntRange(min=0), help="Questions asked again before edits stay.  [default: 0]")
@click.option("--batch-size", type=click.IntRange(min=1), help="Questions side by side.  [default: 1]")
@click.option("--embedder", help="all-MiniLM-L6-v2, or hash for tests.  [default: all-MiniLM-L6-v2]")
@agent_options
@spending_options
@output_options
def command(
    world_folder: Path,
    out: Path,
    url: str | None,
    config: Path | None,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Train a store: answer each question, see the gold, edit the store, commit.

    Interrupted training goes on when the same command is run again.

    \b
    Example:
      kbgym generate --seed 0 --out worlds-out/w0
      kbgym train --world worlds-out/w0 --out runs/r0 --questions 100 --epochs 2
    """
    spending = Spending(flags)
    world = World.load(world_folder)
    settings = settings_from(config, flags, len(world.split("train")))
    check(settings, world)
    run = Run.open_or_create(out, world, settings)
    names = [settings.reader, settings.curator, settings.judge]
    with spending.models(names, run.folder / "cassette.jsonl") as models:
        trainer = train_run(run, settings, quiet or as_json, models, spending, url)
    store = trainer.store
    counted = ledger(store)
    f1 = sum(grade.f1 for grade in trainer.grades) / max(1, len(trainer.grades))
    share = coverage(store).direct
    result = {
        "run": str(out),
        "iterations": trainer.iteration,
        "coverage": round(share, 4),
        "links": counted.links,
        "authored": counted.authored,
        "forward_f1": round(f1, 4),
        "settings": msgspec.to_builtins(settings),
    }
    where = shown(url) if url else out
    text = (
        f"{where}: {trainer.iteration} iterations by {settings.reader}/{settings.curator}, forward F1 {f1:.3f}.\n"
        f"The store has {counted.authored} authored documents and {counted.links:,} links, "
        f"covering {share:.1%} of {counted.origins:,} originals.\n" + _next(out, url, world_folder, has_pools(world))
    )
    emit(result, as_json, quiet, text)


def _next(out: Path, url: str | None, world: Path, pools: bool) -> str:
    if url is not None:
        return f"Next: kbgym exam '{shown(url)}' --world {world} --set test_in"
    if pools:
        return f"Next: kbgym probe {out} && kbgym exam {out} --set trained"
    return f"Next: kbgym exam {out} --set test_in && kbgym exam {out}@0 --set test_in"


def train_run(
    run: Run,
    settings: Settings,
    quiet: bool,
    models: Models | None = None,
    spending: Spending | None = None,
    url: str | None = None,
) -> Trainer:
    """Train a run to its end, with bars for the embedding and the training."""
    agents = agents_named(settings, models)
    place: Place = StoreFolder(run.folder)
    if url is not None:
        if not is_url(url):
            raise BadInput(f"--store {url} is no postgresql:// URL; without it the run's own folder keeps the store.")
        if settings.admission:
            raise BadInput("admission judges one lesson at a time, which a store shared with others does not allow.")
        place = join(url, place.initial, settings.embedder, remembered(settings, agents))
    with progress("embedding", quiet) as tick:
        engine = engine_for(place.store(), embedder_named(settings.embedder), tick)
    trainer = Trainer(run, agents, engine, place)
    if spending is not None:
        left = len(trainer.lessons) - trainer.position
        evaluations = len(run.world.split("eval")) * (settings.epochs + 1) if settings.eval and left else 0
        spending.confirm(settings.reader, {"forward": left, "exam": evaluations})
        spending.confirm(settings.curator, {"backward": left})
    with progress("training", quiet) as tick:
        asyncio.run(_train(trainer, agents.judge, with_spend(tick, models)))
    return trainer


async def _train(trainer: Trainer, judge: object, tick: Tick) -> None:
    """A judge that cannot judge stops the run before it begins: an inert one would go unnoticed."""
    if isinstance(judge, LLMJudge) and trainer.position < len(trainer.lessons):
        await judge.self_test()
    await trainer.train(tick)
