"""`kbgym experiment`: experiments over arms, question groups and seeds."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.agents.llm.connect import is_model
from kbgym.agents.registry import make_agent
from kbgym.agents.trust import NEUTRAL_READERS, allowed, refuse_hand
from kbgym.analysis.audit import Auditor
from kbgym.analysis.health import coverage
from kbgym.analysis.report import write_report
from kbgym.api.factory import embedder_named
from kbgym.baselines import arm_named, build_arm, engine_for_arm
from kbgym.baselines.arm import Summarise
from kbgym.cli import read_table
from kbgym.cli.common import Printed, progress, seeds_in, verb
from kbgym.cli.settings import options
from kbgym.cli.spending import Spending, spending_options, training_plan
from kbgym.cli.training import how_many
from kbgym.errors import BadInput
from kbgym.experiments import experiment
from kbgym.experiments.controls import CONTROLS
from kbgym.experiments.experiment import Plan
from kbgym.gym.observations import Observations
from kbgym.sanitize import counted, number_in
from kbgym.trace.folder import TRACE
from kbgym.trace.log import read_head
from kbgym.training.exam import NO_STORE, is_public
from kbgym.training.exam_header import exam_files
from kbgym.training.run import Settings
from kbgym.worlds.kinds import agent_for, budget_of, kind_of
from kbgym.worlds.people import HARD_BUDGET
from kbgym.worlds.people.paper import read as read_universe
from kbgym.worlds.splits import Sizes, sharing, with_pages_apart
from kbgym.worlds.world import World

TEXTS = read_table("texts.toml")
ARMS, STRATEGIES = TEXTS["arms"], TEXTS["strategies"]  # by kind of experiment
UNIVERSE = Path("shared/data/paper-universe.json")
READERS = ("reference", "general", *(f"neutral:{name}" for name in NEUTRAL_READERS))
USUAL_DOCUMENTS, COMMUNITY = 5_800, 54  # of a generated world, and of one community
USUAL = 100  # assumed questions per group, for the forecast if all available ones are asked
PROBED = ("trained", "both", "one", "neither")


@click.group("experiment")
def command() -> None:
    """Run experiments over arms, question groups and seeds."""


@verb("run", command)
@click.argument("kind", type=click.Choice(["paper", "paper-original", "ablation", "public"]))
@click.option("--arms", help=f"Arms and controls, by comma.  [default: {ARMS['paper']}]")
@options("embedder", default="all-MiniLM-L6-v2")
@options("readers", "hard", "trust")
@options("workers", default=1, help="Seeds to run in parallel.  [1]")
@spending_options
def run_command(kind: experiment.Kind, out: Path, workers: int, **flags: Any) -> Printed:
    """Train and examine: for every seed a world, trainings, question groups, and exams of every arm on every group.

    `paper` is the paper's evaluation on generated worlds, `paper-original` the same on the authors' universe (--world
    FILE) with their first 100 training questions, `ablation` varies one setting of the training, and `public` examines
    every arm on a world of real text. The strategy `paper+hipporag` trains on top of the arm hipporag.

    Arms may include controls: wrong-answers, no-questions, random-questions.

    \b
    Examples:
      kbgym experiment run paper --out exp/paper --seeds 0-4 --set workers=2
      kbgym experiment run paper --out exp/controls --arms flat,wrong-answers,no-questions
      kbgym experiment run paper-original --out exp/original --world paper-universe.json
      kbgym experiment run ablation --vary gate=0,5,20 --out exp/gate
      kbgym report exp/paper
    """
    spending = Spending(flags)
    world = _world(kind, flags.pop("world_folder"))
    plan, worlds = _plan(kind, world, flags)
    before = experiment.read_plan(out) if (out / experiment.FILE).exists() else None
    trained = (one.settings for one in before.trainings) if before else ()
    names = [name for one in trained for name in (one.reader, one.curator, one.judge)]
    allowed(str(out), [*names, *(before.readers if before else ())], [plan.reader, *plan.readers], flags["trust"])
    whole = experiment.open_experiment(out, plan)
    if world:
        for seed in whole.seeds:
            (worlds.get(seed) or _drawn(world, kind, seed)).save(experiment.seed_folder(out, seed) / "world")
    started = time.perf_counter()
    _confirm(spending, out, whole, world, is_here=workers == 1)
    _run(out, whole, workers, spending)
    seconds = round(time.perf_counter() - started, 1)
    exams = sum(
        len(exam_files(experiment.exams_of(experiment.seed_folder(out, seed), name)))
        for seed in whole.seeds
        for name in ("", *whole.others)
    )
    arms = [*whole.arms, *(training.name for training in whole.trainings)]
    result: dict[str, Any] = {"experiment": str(out), "seeds": list(whole.seeds), "arms": arms}
    result |= {"exams": exams, "seconds": seconds}
    text = f"{out}: {counted(len(whole.seeds), 'seed')}, {counted(exams, 'exam')}, {seconds:.0f} s."
    if kind == "paper-original":
        result["report"] = str(write_report(out))
        return result, f"{text}\nThe report: {result['report']}"
    if kind == "public" and world is not None:
        result["sharing"] = {"given": sharing(world), "drawn": max(map(sharing, worlds.values()))}
        text += f"\nTest questions that share a page with a training question: {result['sharing']['drawn']}."
    return result, f"{text}\nNext: kbgym report {out}"


def _world(kind: experiment.Kind, place: Path | None) -> World | None:
    """Load the world for all seeds, or return None if each seed generates its own."""
    if kind == "paper-original":
        file = place or UNIVERSE
        if not file.is_file():
            raise BadInput(f"{file} is missing: name the authors' universe file with --world FILE.")
        return original(read_universe(file))
    if kind == "public" and place is None:
        raise BadInput("experiment run public needs a world of real text: name it with --world.")
    return World.load(place) if place else None


def original(world: World, first: int = 100) -> World:
    """Keep only the first training questions, as in the authors' training; the others are never asked."""
    left = {question.id for question in world.split("train")[first:]}
    kept = tuple(question for question in world.questions if question.id not in left)
    return msgspec.structs.replace(world, questions=kept)


def _plan(kind: experiment.Kind, world: World | None, flags: dict[str, Any]) -> tuple[Plan, dict[int, World]]:
    """Return the plan, and the world of each seed if one was given."""
    given = flags["arms"]
    named = _list(given if given is not None else ARMS[kind])
    controls = [name for name in CONTROLS if name in named and name != "no-questions"]
    named = tuple("oracle" if name == "no-questions" else name for name in named if name not in controls)
    for name in named:
        arm_named(name)
    readers = READERS if flags["readers"] == "all" else _list(flags["readers"])
    if kind == "paper-original" and not readers:
        readers = (flags["agent"] or "reference",)  # it includes the eval split and the test splits
    for name in readers:
        if not is_model(name):
            make_agent(name, "reader")
    seeds = seeds_in(flags["seeds"])
    vary, _, given = flags["vary"].partition("=")
    worlds = {seed: _drawn(world, kind, seed) for seed in seeds} if world else {}
    base = _settings(kind, world, worlds, flags)
    refuse_hand((base.reader, *readers))
    strategies = _list(flags["strategy"] or STRATEGIES[kind])
    for name in strategies:
        arm_named(name.partition("+")[2] or "flat")
    values = _values(vary, given, world)
    plan = Plan(
        kind=kind,
        trainings=experiment.trainings(kind, vary, strategies, base, values, controls),
        arms=tuple(dict.fromkeys(("flat", *((NO_STORE,) if world and is_public(world) else ()), *named))),
        seeds=seeds,
        n=how_many(flags["size"]),
        people=0 if world else flags["people"],
        world=world.hash if world else "",
        hard=flags["hard"],
        vary=vary if kind == "ablation" else "",
        touched=base.questions if kind == "ablation" and vary == "questions" else 0,
        readers=readers,
    )
    return plan, worlds


def _settings(kind: experiment.Kind, world: World | None, worlds: dict[int, World], flags: dict[str, Any]) -> Settings:
    agent = flags["agent"] or ("general" if kind == "public" else agent_for(world) if world else "reference")
    chosen = {name: flags[name] for name in ("questions", "epochs", "embedder")}
    if kind == "public" and worlds:
        chosen["questions"] = min(chosen["questions"], *(len(one.split("train")) for one in worlds.values()))
    if budget := HARD_BUDGET if flags["hard"] else budget_of(world) if world else None:
        chosen["forward_budget"] = budget
    judge = agent if kind == "paper-original" and is_model(agent) else "rule"
    shown: Observations = "rich" if agent == "general" else "paper"
    return Settings(**chosen, reader=agent, curator=agent, judge=judge, observations=shown)


def _drawn(world: World, kind: experiment.Kind, seed: int) -> World:
    """Return the world of a seed: real text, with questions drawn so that no page is in two splits."""
    return with_pages_apart(world, seed) if kind == "public" and not kind_of(world).has_pools else world


def _confirm(spending: Spending, out: Path, plan: Plan, world: World | None, is_here: bool) -> None:
    """Forecast the cost of all seeds and ask once. Finished exams and complete trainings are not counted."""
    n = plan.n or USUAL
    evaluated = len(world.split("eval")) if world else Sizes().eval_in + Sizes().eval_out
    tests = len(world.split("test_in") + world.split("test_out")) if world else Sizes().test_in + Sizes().test_out
    plans: list[tuple[str, dict[str, int]]] = []
    for seed in plan.seeds:
        folder = experiment.seed_folder(out, seed)
        stores = [*plan.arms, *(training.name for training in plan.trainings)]
        if "graphrag" in plan.arms and not (folder / "arms" / "graphrag.json").exists():
            plans.append((plan.reader, {"summary": (len(world.documents) if world else USUAL_DOCUMENTS) // COMMUNITY}))
        for training in plan.trainings:
            settings = training.settings
            last = settings.questions * settings.epochs
            stores += [f"{training.name}@{at}" for at in ([] if training.control else experiment.snapshots(settings))]
            head = read_head(folder / training.name / TRACE)
            if head is None or head.iteration < last:
                plans += training_plan(settings, last, evaluated * (settings.epochs + 1) if settings.eval else 0)
        for reader in ("", *plan.others):
            kept = experiment.exams_of(folder, reader)
            named = [name for name in stores if not reader or "@" not in name]
            missing = n * sum(not (kept / f"{store}-{group}.jsonl").exists() for store in named for group in PROBED)
            if plan.readers:
                final = (name for name in named if "@" not in name)
                missing += tests * sum(not (kept / f"{store}-test_in.jsonl").exists() for store in final)
            plans.append((reader or plan.reader, {"exam": missing}))
    if not is_here and any(name.startswith("llm:") for name, _ in plans):
        raise BadInput("models run in one process: omit workers and use --concurrency.")
    spending.confirm_all(plans)


def _run(out: Path, plan: Plan, workers: int, spending: Spending) -> None:
    """Run seeds sequentially, or in parallel processes; the bar counts seeds."""
    with progress("seeds") as tick:
        if workers == 1 or len(plan.seeds) == 1:
            for done, seed in enumerate(plan.seeds):

                def note(said: str, done: int = done) -> None:
                    tick(done, len(plan.seeds), said)

                experiment.run_seed(out, plan, seed, prepare, note, spending.models)
            return
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            futures = [pool.submit(experiment.run_seed, out, plan, seed, prepare) for seed in plan.seeds]
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                tick(done, len(futures), "")


def prepare(
    arm: str, world: World, embedder: str, seed: int, summarise: Summarise | None = None
) -> experiment.Prepared:
    """Build an arm for an experiment; here, because experiments are independent of the audit."""
    vectors = embedder_named(embedder)
    built = build_arm(arm, world, lambda: vectors, seed, summarise)
    truth = kind_of(world).truth(world)
    correct = Auditor(built.store, truth).correct if truth else None
    shares = coverage(built.store, correct, world.questions)
    size = {"documents": len(built.store), "authored": len(built.store.authored()), "links": built.store.links}
    made = {"coverage": shares, "tokens": built.tokens, "notes": built.notes}
    about = {"arm": arm, **size, **msgspec.to_builtins(made)}
    return experiment.Prepared(built.store, engine_for_arm(arm, built.store, vectors), about)


def _values(vary: str, text: str, world: World | None) -> tuple[int | str, ...]:
    """Return the requested values, or else all values that the questions of a given world allow."""
    if text:
        return tuple(part if (number := number_in(part)) is None else number for part in _list(text))
    if vary == "questions" and world is not None:
        return tuple(value for value in experiment.VALUES[vary] if int(value) <= len(world.split("train")))
    return ()


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
