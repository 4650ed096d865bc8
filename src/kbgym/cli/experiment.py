"""Run experiments over arms, question groups and seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from kbgym.agents.human import refuse_hand
from kbgym.agents.llm.connect import is_model
from kbgym.agents.registry import make_agent
from kbgym.agents.trust import NEUTRAL_READERS, allowed
from kbgym.analysis.audit import Auditor
from kbgym.analysis.health import coverage
from kbgym.analysis.verdict import Keys, shared_keys
from kbgym.analysis.verdict import headroom as measured
from kbgym.api import open
from kbgym.api.factory import CASSETTE, embedder_named
from kbgym.baselines import ARMS as REGISTERED
from kbgym.baselines import arm_named, build_arm, engine_for_arm
from kbgym.canonical import pretty, write_whole
from kbgym.cli.common import Printed, progress, seeds_in, verb
from kbgym.cli.exam import Where, engine_options, how_many
from kbgym.cli.settings import options
from kbgym.cli.spending import Spending, spending_options, training_plan
from kbgym.errors import BadInput
from kbgym.experiments.experiment import (
    FILE,
    FIRST,
    VALUES,
    Kind,
    Plan,
    Prepared,
    open_experiment,
    read_plan,
    run_seed,
    seed_folder,
    snapshots,
    trainings,
)
from kbgym.experiments.parts import run_parts
from kbgym.experiments.sheets import exams_of
from kbgym.gym.observations import Observations
from kbgym.sanitize import number_in
from kbgym.training.exam import Row, read_rows
from kbgym.training.exam_header import exam_files
from kbgym.training.no_store import ARM as NO_STORE
from kbgym.training.no_store import is_public
from kbgym.training.run import Settings
from kbgym.worlds import people
from kbgym.worlds.kinds import agent_for, budget_of, kind_of
from kbgym.worlds.people import HARD_BUDGET
from kbgym.worlds.splits import Sizes, sharing, with_pages_apart
from kbgym.worlds.world import World

HEADROOM_FILE = "headroom.json"
SIZES = (120, 500)
SET = "test_in"


def headroom(out: Path, seeds: tuple[int, ...], agent: str, embedder: str, hard: bool, spending: Spending) -> Printed:
    """Every exam that is not there yet, then the means; run again, it does what is missing."""
    places = [(size, seed, out / f"people-{size}" / f"seed-{seed}") for size in SIZES for seed in seeds]
    for size, seed, place in places:
        if not place.exists():
            people.generate(size, seed, hard=hard).save(place)
    files = {place: out / "exams" / f"people-{size}-seed-{seed}.jsonl" for size, seed, place in places}
    asked = {place: len(World.load(place).split(SET)) for place in files}
    spending.confirm(agent, {"exam": sum(asked[place] - len(read_rows(files[place])) for place in files)})
    found: dict[int, list[tuple[Sequence[Row], Keys]]] = {}
    for size, _, place in places:
        file = files[place]
        with open(place, embedder=embedder) as opened:
            cassette = file.with_name(f"{file.stem}.{CASSETTE}")
            with spending.models([agent], cassette) as models, progress(f"exam {file.stem}") as tick:
                exam = opened.examine(agent, SET, out=file, models=models, tick=tick)
        found.setdefault(size, []).append((exam.rows, shared_keys(World.load(place))))
    n, cells = measured(found)
    result = {"agent": agent, "seeds": list(seeds), "n": n, "cells": cells}
    with write_whole(out / HEADROOM_FILE) as scratch:
        scratch.write_text(pretty(result), encoding="utf-8")
    lines = [f"By {agent} on stores nobody trained, {len(seeds)} seed{'s' if len(seeds) > 1 else ''}:"]
    for name in n:
        people_of, kind = name.split("/")
        what = "chains of documents" if kind == "chains" else "relations as a whole"
        f1, actions = (cells[f"headroom/{name}/{field}"]["text"] for field in ("f1", "actions"))
        lines.append(f"  {people_of} people, {what:20} n = {n[name]:4}: F1 {f1}, {actions} actions")
    return result, lines


PUBLIC = ("flat", "bm25", "pages", "graphrag", "hipporag", "lightrag", "raptor")
ARMS = ("flat", "graphrag", "hipporag", "raptor", "lightrag", "bm25", "nostore", "oracle")
READERS = ("reference", "general", *(f"neutral:{name}" for name in NEUTRAL_READERS))
USUAL = 100  # questions a group, for the forecast where all there are will be asked
PROBED = ("trained", "both", "one", "neither")


@click.group("experiment")
def command() -> None:
    """Run experiments over arms, question groups and seeds."""


@verb("run", command)
@click.argument("kind", type=click.Choice(["paper", "ablation", "public", "pretrain", "headroom"]))
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="The experiment folder; run again to resume."
)
@click.option("--seeds", default="0", show_default=True, help="Seeds, such as 0,1,2 or 0-4.")
@click.option("--arms", default=None, help=f"Unsupervised arms, by comma.  [default: {','.join(ARMS)}]")
@click.option("--strategy", default="paper,class", show_default=True, help="A training for each, by comma.")
@click.option("--vary", type=click.Choice(["strategy", *VALUES]), default="strategy", help="What an ablation varies.")
@click.option("--values", default=None, help="The values it takes, by comma.  [default: see below]")
@click.option("--n", "size", default="34", show_default=True, help="Exam questions a group, or `all`.")
@click.option("--questions", default=100, show_default=True, type=click.IntRange(min=1), help="Training questions.")
@click.option("--epochs", default=2, show_default=True, type=click.IntRange(min=1), help="How often each is asked.")
@click.option("--readers", default="", help="Readers to examine every arm with, by comma, or `all`: see below.")
@click.option("--agent", help="Who reads and curates.  [default: general for public, else by the world]")
@click.option("--people", default=500, show_default=True, type=click.IntRange(min=1), help="Size of generated worlds.")
@click.option("--hard", is_flag=True, help="Generate hard worlds: larger classes, readers have eight actions.")
@click.option("--world", "world_folder", type=click.Path(path_type=Path), help="A world to use for every seed instead.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Seeds side by side.")
@click.option("--trust", is_flag=True, help="Let the agents an earlier --out names play, now and later.")
@options("embedder", default="all-MiniLM-L6-v2")
@engine_options
@spending_options
def run_command(
    kind: Kind | Literal["headroom"],
    out: Path,
    vary: str,
    people: int,
    world_folder: Path | None,
    jobs: int,
    **flags: Any,
) -> Printed:
    """Train and examine: `paper` is the paper's evaluation, `ablation` varies one thing of the training, `public` puts
    every arm to a world of real text, `pretrain` trains on top of unsupervised arms, `headroom` trains nothing: it
    examines the flat stores of generated worlds of 120 and of 500 people.

    On a world of real text `public` and `pretrain` draw the questions anew for every seed, so that no page supports
    questions of two splits.

    An ablation varies the strategy, the budget of a backward pass (15, 30, 60), the training questions (25, 50, 100,
    200, 400; a generated world then has that many), the ranking (paper, apart) or gate (0, 10 questions asked
    again; 0 is off).

    For every seed: a world, a training for each strategy, the gradient's question groups, and exams of every arm on
    every group. On a given --world the seed decides the order of the questions and which unseen ones are drawn.

    With --readers every arm is examined by each of them, on the groups and on test_in and test_out; training happens
    once. `all` are reference, general and neutral:trusting, neutral:sceptical, neutral:first, neutral:overlap.

    \b
    Examples:
      kbgym experiment run paper --out exp/paper --seeds 0-4 --jobs 2
      kbgym experiment run paper --seeds 0-9 --readers all --jobs 2 --out exp/paper
      kbgym experiment run paper --out exp/paper --seeds 0-4 --set engine=ray --set address=ray://head:10001
      kbgym experiment run ablation --vary budget --out exp/budget --seeds 0-2
      kbgym experiment run headroom --seeds 0-9 --out exp/headroom
      kbgym experiment run ablation --vary gate --values 0,5,20 --out exp/gate
      kbgym report exp/paper
    """
    where, spending = Where(flags), Spending(flags)
    if jobs > 1 and not where.is_here:
        raise BadInput("--jobs is for one machine; with --set engine=ray say --set workers=N.")
    if kind == "headroom":
        agent = flags["agent"] or "reference"
        refuse_hand((agent,))
        return headroom(out, seeds_in(flags["seeds"]), agent, flags["embedder"], flags["hard"], spending)
    n, given = how_many(flags["size"]), flags["arms"]
    usual = {"paper": ARMS, "public": PUBLIC, "pretrain": ("flat", "pages", "hipporag")}.get(kind, ("flat", "hipporag"))
    named = _list(given) if given is not None else tuple(name for name in usual if name in REGISTERED)
    for name in named:
        arm_named(name)
    world = World.load(world_folder) if world_folder else None
    if kind == "public" and world is None:
        raise BadInput("experiment run public needs a world of real text: name it with --world.")
    seeds = seeds_in(flags["seeds"])
    readers = READERS if flags["readers"] == "all" else _list(flags["readers"])
    for name in readers:
        if not is_model(name):
            make_agent(name, "reader")
    worlds = {seed: _drawn(world, kind, seed) for seed in seeds} if world else {}
    agent = flags["agent"] or ("general" if kind == "public" else agent_for(world) if world else "reference")
    refuse_hand((agent, *readers))
    chosen = {name: flags[name] for name in ("questions", "epochs", "embedder")}
    if kind in FIRST and worlds:
        chosen["questions"] = min(chosen["questions"], *(len(one.split("train")) for one in worlds.values()))
    shown: Observations = "rich" if agent == "general" else "paper"
    if budget := HARD_BUDGET if flags["hard"] else budget_of(world) if world else None:
        chosen["forward_budget"] = budget
    base = Settings(**chosen, reader=agent, curator=agent, observations=shown)
    values = _values(vary, flags["values"], world)
    plan = Plan(
        kind=kind,
        trainings=trainings(kind, vary, _list(flags["strategy"]), base, values, REGISTERED),
        arms=tuple(dict.fromkeys(("flat", *((NO_STORE,) if world and is_public(world) else ()), *named))),
        seeds=seeds,
        n=n,
        people=0 if world else people,
        world=world.hash if world else "",
        hard=flags["hard"],
        vary=vary if kind == "ablation" else "",
        touched=base.questions if kind == "ablation" and vary == "questions" else 0,
        readers=readers,
    )
    before = read_plan(out) if (out / FILE).exists() else None
    trained = (one.settings for one in before.trainings) if before else ()
    names = [name for one in trained for name in (one.reader, one.curator, one.judge)]
    allowed(str(out), [*names, *(before.readers if before else ())], [agent, *readers], flags["trust"])
    whole = open_experiment(out, plan)
    if world:
        for seed in whole.seeds:
            (worlds.get(seed) or _drawn(world, kind, seed)).save(seed_folder(out, seed) / "world")
    started = time.perf_counter()
    _confirm(spending, out, whole, world, is_here=where.is_here and jobs == 1)
    _run(out, whole, jobs, where, spending)
    seconds = time.perf_counter() - started
    result: dict[str, Any] = {
        "experiment": str(out),
        "seeds": list(whole.seeds),
        "arms": [*whole.arms, *(training.name for training in whole.trainings)],
        "exams": _finished(out, whole),
        "seconds": round(seconds, 1),
    }
    text = f"{out}: {len(whole.seeds)} seeds, {result['exams']} exams, {seconds:.0f} s."
    if kind in FIRST and world is not None:
        result["sharing"] = {"given": sharing(world), "drawn": max(map(sharing, worlds.values()))}
        text += (
            f"\n{sharing(world)} test questions of the world's own splits share a page with a training question, "
            f"{result['sharing']['drawn']} of those drawn here."
        )
    return result, f"{text}\nNext: kbgym report {out}"


def _drawn(world: World, kind: Kind, seed: int) -> World:
    """The world of a seed: of real text, with questions drawn so that no page is in two splits."""
    return with_pages_apart(world, seed) if kind in FIRST and not kind_of(world).has_pools else world


def _confirm(spending: Spending, out: Path, plan: Plan, world: World | None, is_here: bool) -> None:
    """One forecast and one question for all seeds. Exams that are there are not counted; trainings are, until whole."""
    n = plan.n or USUAL
    evaluated = len(world.split("eval")) if world else Sizes().eval_in + Sizes().eval_out
    plans: list[tuple[str, dict[str, int]]] = []
    for seed in plan.seeds:
        folder = seed_folder(out, seed)
        stores = [*plan.arms, *(training.name for training in plan.trainings)]
        for training in plan.trainings:
            settings = training.settings
            last = settings.questions * settings.epochs
            stores += [f"{training.name}@{at}" for at in snapshots(settings)]
            if not (folder / training.name / "snapshots" / f"{last}.jsonl").is_file():
                plans += training_plan(settings, last, evaluated * (settings.epochs + 1) if settings.eval else 0)
        tests = len(world.split("test_in") + world.split("test_out")) if world else Sizes().test_in + Sizes().test_out
        for reader in ("", *plan.others):
            kept = exams_of(folder, reader)
            named = [name for name in stores if not reader or "@" not in name]
            missing = n * sum(not (kept / f"{store}-{group}.jsonl").exists() for store in named for group in PROBED)
            if plan.readers:
                final = (name for name in named if "@" not in name)
                missing += tests * sum(not (kept / f"{store}-test_in.jsonl").exists() for store in final)
                if not reader:  # the eval split, before training and after each epoch
                    trained = [(one.name, one.settings) for one in plan.trainings]
                    early = (f"{name}@{how.questions * end}" for name, how in trained for end in range(1, how.epochs))
                    ends = ["flat", *early, *(name for name, _ in trained)]
                    missing += evaluated * sum(not (kept / f"{store}-eval.jsonl").exists() for store in ends)
            plans.append((reader or plan.reader, {"exam": missing}))
    if not is_here and any(name.startswith("llm:") for name, _ in plans):
        raise BadInput("a model is asked from one process: leave --jobs and engine out, and say --set concurrency=N.")
    spending.confirm_all(plans)


def _run(out: Path, plan: Plan, jobs: int, where: Where, spending: Spending) -> None:
    """Seeds one after the other, or in processes of their own, or parts of them elsewhere; the bar counts exams."""
    stores = len(plan.arms) + len(plan.trainings)
    earlier = sum(len(snapshots(training.settings)) for training in plan.trainings)
    sets = len(PROBED) + (2 if plan.readers else 0)
    total = len(plan.seeds) * (len(PROBED) * earlier + sets * stores * (1 + len(plan.others)))

    def finished() -> int:
        return min(total, _finished(out, plan))

    with progress("exams") as tick:
        if not where.is_here:
            with where.opened() as workers:
                run_parts(workers, out, plan, prepare, lambda note: tick(finished(), total, note))
            return
        if jobs == 1 or len(plan.seeds) == 1:
            for seed in plan.seeds:
                run_seed(out, plan, seed, prepare, lambda note: tick(finished(), total, note), spending.models)
            return
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            waiting = {pool.submit(run_seed, out, plan, seed, prepare) for seed in plan.seeds}
            while waiting:
                done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                tick(finished(), total, f"{len(waiting)} seeds to go")


def _finished(out: Path, plan: Plan) -> int:
    """How many exams there are, whoever read."""
    folders = (exams_of(seed_folder(out, seed), reader) for seed in plan.seeds for reader in ("", *plan.others))
    return sum(len(exam_files(folder)) for folder in folders)


def prepare(arm: str, world: World, embedder: str, seed: int) -> Prepared:
    """An arm as an experiment wants it; here, because an experiment does not know the audit."""
    vectors = embedder_named(embedder)
    built = build_arm(arm, world, lambda: vectors, seed)
    truth = kind_of(world).truth(world)
    correct = Auditor(built.store, truth).correct if truth else None
    shares = coverage(built.store, correct, world.questions)
    about = {
        "arm": arm,
        "label": arm_named(arm).label,
        "documents": len(built.store),
        "authored": sum(record.flag == "authored" for record in built.store),
        "links": built.store.links,
        "coverage": msgspec.to_builtins(shares),
        "tokens": built.tokens,
        "notes": msgspec.to_builtins(built.notes),
    }
    return Prepared(built.store, engine_for_arm(arm, built.store, vectors), about)


def _values(vary: str, text: str | None, world: World | None) -> tuple[int | str, ...]:
    """What was asked for; else, of the questions of a given world, as many as it has."""
    if text is not None:
        return tuple(part if (number := number_in(part)) is None else number for part in _list(text))
    if vary == "questions" and world is not None:
        return tuple(value for value in VALUES[vary] if int(value) <= len(world.split("train")))
    return ()


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
