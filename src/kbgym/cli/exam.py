"""`kbgym exam`: a frozen store, an independent reader, a set of questions; and `kbgym probe`, which draws such sets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.agents.registry import make_agent
from kbgym.baselines.registry import engine_for_arm
from kbgym.canonical import whole_folder, write_lines
from kbgym.characters import number_in
from kbgym.cli.common import emit, output_options, progress
from kbgym.cli.engines import Where, engine_options
from kbgym.cli.spending import Spending, spending_options, with_spend
from kbgym.environment import RANKINGS, Ranking
from kbgym.errors import BadInput
from kbgym.experiment.chunks import PASSES, Desk, examine_in_chunks
from kbgym.protocol.exam import Row, examine, summarise
from kbgym.protocol.lessons import schedule
from kbgym.protocol.no_store import examine_without, is_public, no_store_file
from kbgym.protocol.probe import Probe, gradient
from kbgym.protocol.run import Run
from kbgym.protocol.session import embedder_named, engine_for, question_set
from kbgym.store import Store
from kbgym.trace.place import Place, open_place, shown
from kbgym.worlds.world import World


@click.command("exam")
@click.argument("store")
@click.option(
    "--world", "world_folder", type=click.Path(path_type=Path), help="Where the questions are.  [a run's own]"
)
@click.option("--set", "set_name", default="test_in", show_default=True, help="A split, a probe group, or a file.")
@click.option("--agent", default="reference", show_default=True, help="Who reads.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Rows as JSONL; run again to resume.")
@click.option("--embedder", help="Overrides the one the store was trained with.")
@click.option(
    "--ranking", type=click.Choice(RANKINGS), help="How a page is filled.  [default: as in training, or paper]"
)
@engine_options
@spending_options
@output_options
def command(
    store: str,
    world_folder: Path | None,
    set_name: str,
    agent: str,
    out: Path | None,
    embedder: str | None,
    ranking: Ranking | None,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Examine a frozen STORE: a run, a run at an iteration (RUN@57), a store folder or a world.

    \b
    Example:
      kbgym exam runs/r0 --set test_in
      kbgym exam runs/r0@0 --set test_in --out flat.jsonl
      kbgym exam runs/r0 --set test_in --engine ray --workers 8
    """
    where = Where(flags)
    folder = open_place(store)
    run = Run(folder.folder) if folder.folder and (folder.folder / "run.json").exists() else None
    world = World.load(_world_of(folder, world_folder))
    questions = question_set(set_name, world, run)
    name = embedder or (folder.genesis.embedder if folder.genesis else "")
    paging = ranking or (run.settings.ranking if run else "paper")
    examined = folder.store()
    with progress("embedding", quiet or as_json) as tick:
        engine = engine_for_arm(folder.arm, examined, embedder_named(name), tick)
    spending = Spending(flags)
    cassette = out.with_name(f"{out.stem}.cassette.jsonl") if out else None
    with spending.models([agent], cassette) as models, progress(f"exam {set_name}", quiet or as_json) as tick:
        # Elsewhere, who reads is made on the spot.
        reader = make_agent(agent, "reader", models) if where.is_here else None
        without = is_public(world) and len(examined) > 0
        spending.confirm(agent, {"exam": len(questions) * (1 + without)})
        counted, bare = with_spend(tick, models), list[Row]()
        if reader is not None:
            passes = PASSES * spending.concurrency  # the models' client holds requests to the limit asked for
            asking = examine(examined, engine, questions, reader, out, concurrency=passes, tick=counted, ranking=paging)
            rows = asyncio.run(asking)
            bare = asyncio.run(examine_without(questions, reader, out, passes)) if without else []
        else:
            with where.opened() as workers:
                desk = Desk(examined, engine, name, agent, paging)
                rows = examine_in_chunks(workers, desk, questions, out, counted, models)
                if without:
                    empty = Desk(Store(), engine_for(Store(), embedder_named("hash")), "hash", agent)
                    file = no_store_file(out) if out else None
                    bare = examine_in_chunks(workers, empty, questions, file, counted, models)
    summary = summarise(rows)
    outcomes = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in summary.outcomes.items())
    text = (
        f"{shown(store)} on {set_name}, {agent} reader, n = {summary.n}: F1 {summary.f1:.3f}, EM {summary.em:.3f}, "
        f"{summary.actions:.2f} actions and {summary.characters:,.0f} characters read a question ({outcomes})."
    )
    result = {**msgspec.to_builtins(summary), "ranking": paging}
    if bare:
        alone = summarise(bare)
        result |= {"nostore_f1": alone.f1, "nostore_em": alone.em}
        text += f"\nThis text is public: without a store the same reader scores F1 {alone.f1:.3f}, EM {alone.em:.3f}."
    emit(result, as_json, quiet, text)


def _world_of(store: Place, given: Path | None) -> Path:
    if given is not None:
        return given
    for folder in (store.folder / "world", store.folder) if store.folder else ():
        if (folder / "questions.jsonl").is_file():
            return folder
    raise BadInput(f"{store.name} holds no questions; name their world with --world.")


@click.command("probe")
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--world", "world_folder", type=click.Path(path_type=Path), help="Must be the run's own; optional.")
@click.option("--n", "size", default="34", show_default=True, help="Questions a group, or `all`.")
@click.option("--seed", default=0, show_default=True, help="Decides which unseen questions are drawn.")
@output_options
def probe_command(
    run_folder: Path, world_folder: Path | None, size: str, seed: int, as_json: bool, quiet: bool
) -> None:
    """Draw the gradient's question groups for a trained RUN and keep them in it.

    \b
    Example:
      kbgym probe runs/r0 --n 34
      kbgym exam runs/r0 --set neither
    """
    run = Run(run_folder)
    if world_folder is not None and World.load(world_folder).hash != run.world_hash:
        raise BadInput(f"{world_folder} is not the world {run_folder} was trained on.")
    n = number_in(size)
    if size != "all" and n is None:
        raise BadInput(f"--n takes a number or `all`, not {size!r}.")
    probe = probe_run(run, n, seed)
    groups = {name: len(questions) for name, questions in probe.groups.items()}
    lines = [f"{name:8} {n:4} questions, {probe.overlap[name]} of them trained on" for name, n in groups.items()]
    lines += [f"pool too small for {name}: {took} in every group" for name, took in probe.short.items()]
    emit({"groups": groups, "overlap": probe.overlap, "quota": probe.quota}, as_json, quiet, lines)


def probe_run(run: Run, n: int | None, seed: int = 0) -> Probe:
    """Draw the groups and write them into the run."""
    trained = list(dict.fromkeys(question for _, question in schedule(run.world, run.settings)))
    probe = gradient(run.world, trained, n, seed)
    with whole_folder(run.folder / "probe") as folder:
        for name, questions in probe.groups.items():
            write_lines(folder / f"{name}.jsonl", questions)
    return probe
