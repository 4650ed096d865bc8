"""`kbgym exam` and `kbgym probe`: exams of frozen stores, and probe groups."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.api import open
from kbgym.api.factory import CASSETTE
from kbgym.cli.common import Printed, progress, say, verb
from kbgym.cli.settings import flags, options, place
from kbgym.cli.spending import Spending, spending_options, used_by_commands, with_spend
from kbgym.errors import BadInput, Failed
from kbgym.experiments.chunks import PASSES, examine_on
from kbgym.experiments.engines import NAMES, Name, WorkEngine, check, opened
from kbgym.training.exam import no_store_file, read_rows, summarise
from kbgym.training.exam_header import check_header
from kbgym.training.probe import probe_run
from kbgym.training.run import Run
from kbgym.worlds.kinds import why_agent
from kbgym.worlds.world import World

engine_options = flags(options("engine", type=click.Choice(NAMES)), options("workers", "address"))


class Where:
    """The values of the exam flags."""

    def __init__(self, given: dict[str, Any]) -> None:
        """Take this module's flags from all flags of a verb."""
        self.name: Name = given.pop("engine")
        self._workers: int | None = given.pop("workers")
        self._address: str | None = given.pop("address")
        check(self.name, self._workers, self._address)

    @property
    def is_here(self) -> bool:
        return self.name == "local"

    @contextmanager
    def opened(self) -> Iterator[WorkEngine]:
        """Open the exam with stdout redirected: Ray prints messages about lost workers there."""
        with redirect_stdout(sys.stderr), opened(self.name, self._workers, self._address) as engine:
            yield engine


@verb("exam")
@place("STORE", name="store")
@options("set", default="test_in")
@options("agent")
@options("embedder", "ranking", "observations", "forward_budget", "search")
@engine_options
@spending_options
def command(
    store: str, world: Path | None, set_name: str, agent: str | None, out: Path | None, limit: int | None, **flags: Any
) -> Printed:
    """Examine a frozen STORE: a run, a run at an iteration (RUN@57), a store folder or a world.

    \b
    Example:
      kbgym exam runs/r0 --set test_in
      kbgym exam runs/r0@0 --set test_in --out flat.jsonl
      kbgym exam runs/r0 --set test_in --out rows.jsonl --set engine=ray --set workers=8
    """
    where, spending = Where(flags), Spending(flags)
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
        spending.confirm(agent, {"exam": left})
        with progress(f"exam {set_name}") as tick:
            passes = PASSES * spending.concurrency  # the client of the models enforces the requested limit
            counted = with_spend(tick, models, passes)
            if reader is not None:
                exam = opened.examine(reader, questions, out=out, concurrency=passes, tick=counted, header=header)
            else:
                with where.opened() as workers:
                    exam = examine_on(workers, opened, agent, questions, out, counted, header)
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
