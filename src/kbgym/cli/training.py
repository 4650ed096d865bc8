"""`kbgym train`, `kbgym exam` and `kbgym probe`: trainings, exams of frozen stores, and probe groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.agents.external.agent import KEPT
from kbgym.agents.trust import remember
from kbgym.analysis.health import coverage
from kbgym.api import beginning, open, teach, trainer_for
from kbgym.api.factory import CASSETTE, agents_named, training_settings
from kbgym.cli.common import Printed, progress, say, settings_given, verb
from kbgym.cli.settings import flags, option, options, place
from kbgym.cli.spending import Spending, spending_options, training_plan, used_by_commands, with_spend
from kbgym.errors import BadInput, Failed
from kbgym.experiments.chunks import PASSES, examine_on
from kbgym.experiments.controls import CONTROLS, controlled
from kbgym.experiments.engines import NAMES, EngineChoice
from kbgym.sanitize import counted
from kbgym.store import Store, ledger
from kbgym.trace import shown
from kbgym.trace.events import Ended
from kbgym.training.exam import no_store_file, read_rows, summarise
from kbgym.training.exam_header import check_header
from kbgym.training.probe import probe_run
from kbgym.training.run import Run, Settings
from kbgym.training.trainer import Trainer
from kbgym.worlds.kinds import kind_of, why_agent
from kbgym.worlds.world import World

engine_options = flags(options("engine", type=click.Choice(NAMES)), options("workers", "address"))


def _engine(flags: dict[str, Any]) -> EngineChoice:
    return EngineChoice(flags.pop("engine"), flags.pop("workers"), flags.pop("address"))


@verb("exam")
@place("STORE", name="store")
@options("set", default="test_in")
@options("agent")
@options("embedder", "ranking", "observations", "forward_budget", "search")
@engine_options
@spending_options
def exam_command(
    store: str, world: Path | None, set_name: str, agent: str | None, out: Path | None, limit: int | None, **flags: Any
) -> Printed:
    """Examine a frozen STORE: a run, a run at an iteration (RUN@57), a store folder or a world.

    \b
    Example:
      kbgym exam runs/r0 --set test_in
      kbgym exam runs/r0@0 --set test_in --out flat.jsonl
      kbgym exam runs/r0 --set test_in --out rows.jsonl --set engine=ray --set workers=8
    """
    where, spending = _engine(flags), Spending(flags)
    with contextlib.ExitStack() as held:
        opened = held.enter_context(open(store, world, **flags))
        why = why_agent(opened.world) if agent is None and opened.world is not None else None
        agent = agent or opened.agent
        opened.show_links_to(agent)
        questions = opened.questions(set_name)[:limit]
        header = opened.exam_header(agent, questions, Path(set_name).stem)
        kept = None if out else opened.kept_place(header)
        out = out or kept
        cassette = out.with_name(f"{out.stem}.{CASSETTE}") if out else None
        models = held.enter_context(spending.models([agent], cassette))
        with progress("embedding") as tick:
            opened.embedded(tick)
        # Otherwise the reader is chosen by the world.
        reader = opened.reader(agent, models, out) if where.is_here else None
        if out is not None:
            check_header(out, header)
        files = [out, *([no_store_file(out) if out else None] if opened.is_public else [])]
        left = sum(len(questions) - (len(read_rows(file)) if file else 0) for file in files)
        say(why)  # after all arguments were validated
        spending.confirm_all([(agent, {"exam": left})])
        with progress(f"exam {set_name}") as tick:
            passes = PASSES * spending.concurrency  # the client of the models enforces the requested limit
            spending_tick = with_spend(tick, models)
            if reader is not None:
                exam = opened.examine(reader, questions, out=out, concurrency=passes, tick=spending_tick, header=header)
            else:
                with where.opened() as workers:
                    exam = examine_on(workers, opened, agent, questions, out, spending_tick, header)
    summary = exam.summary
    if summary.outcomes.get("agent_failed") == summary.n:
        raise Failed(f"every pass failed: {exam.rows[0].failure or 'the agent gave no reason'}")
    outcomes = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in summary.outcomes.items())
    text = (
        f"{opened.name} on {set_name}, {agent} reader, n = {summary.n}: F1 {summary.f1:.3f}, EM {summary.em:.3f}, "
        f"{summary.actions:.2f} actions and {summary.characters:,.0f} characters read a question ({outcomes})."
    )
    result = {**msgspec.to_builtins(summary), "ranking": opened.settings.ranking, "agents": why or f"{agent} reads."}
    used, said = used_by_commands([agent], [row.usage for row in exam.rows])
    result, text = result | used, text + said
    if exam.without:
        alone = summarise(exam.without)
        result |= {"nostore_f1": alone.f1, "nostore_em": alone.em}
        text += f"\nThis text is public: without a store the same reader scores F1 {alone.f1:.3f}, EM {alone.em:.3f}."
    if kept is not None:
        result["rows"] = str(kept)
        text += f"\nIts rows are in {kept}."
    return result, text


@verb("probe")
@place("RUN", name="run_folder", type=click.Path(path_type=Path))
def probe_command(run_folder: Path, world: Path | None, size: str, seed: int) -> Printed:
    """Draw the gradient's question groups for a trained RUN and keep them in it.

    \b
    Example:
      kbgym probe runs/r0 --n 34
      kbgym exam runs/r0 --set neither
    """
    run = Run(run_folder)
    if world is not None and World.load(world).hash != run.world_hash:
        raise BadInput(f"{world} is not the world {run_folder} was trained on.")
    probe = probe_run(run, how_many(size), seed)
    groups = {name: len(questions) for name, questions in probe.groups.items()}
    lines = [f"{name:8} {n:4} questions, {probe.overlap[name]} of them trained on" for name, n in groups.items()]
    lines += [f"pool too small for {name}: {took} in every group" for name, took in probe.short.items()]
    return {"groups": groups, "overlap": probe.overlap, "quota": probe.quota}, "\n".join(lines)


def how_many(size: str) -> int | None:
    """Return the value of `--n`; None means all there are."""
    if size != "all" and not size.isdigit():
        raise BadInput(f"--n takes a number or `all`, not {size!r}.")
    return None if size == "all" else int(size)


# -- train ------------------------------------------------------------------------------------------------------------

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
def train_command(
    world_folder: Path, out: Path, store: str | None, begins: str | None, control: str | None, **flags: Any
) -> Printed:
    """Train a store: answer each question, see the expected answer, edit the store, commit.

    Run the same command again to resume interrupted training.

    \b
    Example:
      kbgym generate --people 500 --seed 0 --out worlds-out/w0
      kbgym train --world worlds-out/w0 --out runs/r0 --questions 100 --epochs 2
      kbgym baseline hipporag --world worlds-out/w0 --out stores/b3
      kbgym train --world worlds-out/w0 --out runs/b3 --from stores/b3
      kbgym train --world worlds-out/w0 --out runs/wrong --control wrong-answers
    """
    spending, where, url = Spending(flags), _engine(flags), store
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
    if url is not None and not where.is_here:  # the engine's workers play all lessons
        from kbgym.engines.fleet import Fleet, train_fleet

        with where.opened() as engine:
            train_fleet(engine, Fleet(run.world, run.settings, url, begun))
    with spending.models(players(settings), run.folder / CASSETTE) as models:
        with progress("embedding") as tick:
            agents = agents_named(settings, models, world=world, kept=run.folder / KEPT)
            trainer = trainer_for(run, agents, url, tick)
        left = len(trainer.lessons) - trainer.position
        evaluations = len(world.split("eval")) * (settings.epochs + 1) if settings.eval and left else 0
        spending.confirm_all(training_plan(settings, left, evaluations))
        with progress("training") as tick:
            teach(trainer, with_spend(tick, models))
    result, text = _outcome(trainer, shown(url) if url else str(out), why)
    text += _next(out, url, world_folder, kind_of(world).has_pools)

    def passes() -> Iterator[dict[str, Any] | None]:
        with open(url or out) as opened:
            yield from (event.usage for event in opened.events if isinstance(event, Ended))

    used, spent = used_by_commands(players(settings), passes())
    return {"run": str(out), **result, **used}, text + spent


def _outcome(trainer: Trainer, place: str, why: str | None) -> tuple[dict[str, Any], str]:
    """Return the outcome of a training, as a result and as text."""
    settings, held, share = trainer.settings, ledger(trainer.store), coverage(trainer.store).direct
    f1 = sum(grade.f1 for grade in trainer.grades) / max(1, len(trainer.grades))
    counts = {"iterations": trainer.iteration, "links": held.links, "authored": held.authored}
    shares = {"coverage": round(share, 4), "forward_f1": round(f1, 4)}
    agents = why or f"{settings.reader} reads, {settings.curator} curates."
    result = {**counts, **shares, "settings": settings, "agents": agents}
    text = (
        f"{place}: {counted(trainer.iteration, 'iteration')} by {settings.reader}/{settings.curator}, "
        f"forward F1 {f1:.3f}.\n"
        f"The store has {held.authored} authored documents and {held.links:,} links, "
        f"covering {share:.1%} of {held.origins:,} originals.\n"
    )
    return result, text


def _next(out: Path, url: str | None, world: Path, pools: bool) -> str:
    if url is not None:
        return f"Next: kbgym exam '{shown(url)}' --world {world} --set test_in"
    if pools:
        return f"Next: kbgym probe {out} && kbgym exam {out} --set trained"
    return f"Next: kbgym exam {out} --set test_in && kbgym exam {out}@0 --set test_in"
