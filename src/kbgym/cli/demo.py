"""`kbgym demo`: the whole story offline: generate, train, examine flat and trained, say what it gained."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from kbgym.analysis.coverage import coverage
from kbgym.analysis.gradient import Comparison, compare, table
from kbgym.analysis.report import write_report
from kbgym.analysis.stats import excludes
from kbgym.canonical import read_lines
from kbgym.cli.common import emit, output_options, progress
from kbgym.cli.exam import probe_run
from kbgym.cli.train import train_run
from kbgym.protocol.exam import Row, examine
from kbgym.protocol.run import Run, Settings
from kbgym.protocol.session import agents_named, embedder_named, engine_for, question_set
from kbgym.store import Store, ledger
from kbgym.trace.folder import StoreFolder
from kbgym.worlds.people import generate


@click.command("demo")
@click.option("--out", default="runs/demo", show_default=True, type=click.Path(path_type=Path), help="The run folder.")
@click.option("--people", default=500, show_default=True, help="How many people the world has.")
@click.option("--seed", default=0, show_default=True, help="Which world.")
@click.option("--questions", default=100, show_default=True, help="How many training questions.")
@click.option("--epochs", default=2, show_default=True, help="How often each is asked.")
@click.option("--n", default=34, show_default=True, help="Exam questions a group.")
@click.option("--embedder", default="all-MiniLM-L6-v2", hidden=True)
@output_options
def command(
    out: Path,
    people: int,
    seed: int,
    questions: int,
    epochs: int,
    n: int,
    embedder: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train a store and prove what it gained, offline, with the reference agents.

    Makes a world, trains on 100 questions twice, then examines the flat and the trained store on questions of four
    kinds: trained on, and never seen with both, one or none of their keys touched in training. Writes a report.

    \b
    Example:
      kbgym demo --out runs/demo
    """
    silent = quiet or as_json
    settings = Settings(seed=seed, questions=questions, epochs=epochs, embedder=embedder)
    run = Run.open_or_create(out, generate(people, seed), settings)
    trainer = train_run(run, settings, silent)
    probe = probe_run(run, n)
    flat, trained = StoreFolder(run.folder).store(0), trainer.store
    groups: dict[str, Comparison] = {}
    for store, arm in ((flat, "flat"), (trained, "trained")):
        _examine(run, store, arm, list(probe.groups), settings, silent)
    for name in probe.groups:
        groups[name] = compare(_rows(run, "trained", name), _rows(run, "flat", name))
    counted, share = ledger(trained), coverage(trained).direct
    page = write_report(out)
    result = {
        "run": str(out),
        "report": str(page),
        "agent": settings.reader,
        "seed": seed,
        "groups": {name: _plain(comparison) for name, comparison in groups.items()},
        "coverage": round(share, 4),
        "links": counted.links,
    }
    emit(result, as_json, quiet, _screen(out, settings, people, groups, share, trained))


def _examine(run: Run, store: Store, arm: str, names: list[str], settings: Settings, silent: bool) -> None:
    with progress("embedding", silent) as tick:
        engine = engine_for(store, embedder_named(settings.embedder), tick)
    reader = agents_named(settings).reader
    for name in names:
        questions = question_set(name, run.world, run)
        with progress(f"exam {arm}, {name}", silent) as tick:
            path = run.exam_path(f"{arm}-{name}")
            asyncio.run(examine(store.copy(), engine, questions, reader, path, tick=tick))


def _rows(run: Run, arm: str, name: str) -> list[Row]:
    return list(read_lines(run.exam_path(f"{arm}-{name}"), Row))


def _plain(comparison: Comparison) -> dict[str, float]:
    return {
        "n": comparison.n,
        "rho": round(comparison.rho.value, 4),
        "rho_low": round(comparison.rho.low, 4),
        "rho_high": round(comparison.rho.high, 4),
        "f1_flat": round(comparison.f1_flat, 4),
        "f1_trained": round(comparison.f1_arm, 4),
    }


def _screen(
    out: Path, settings: Settings, people: int, groups: dict[str, Comparison], share: float, store: Store
) -> str:
    counted = ledger(store)
    best = groups["trained"]
    saved = 1 - best.rho.value
    sure = "The interval excludes 1" if excludes(best.rho, 1.0) else "The interval includes 1"
    return "\n".join(
        [
            f"A world of {people} people, {counted.origins:,} documents and no links; the reference agents trained it",
            f"on {settings.questions} questions, {settings.epochs} times over (seed {settings.seed}). "
            f"The store now has {counted.authored} index documents",
            f"and {counted.links:,} links, covering {share:.1%} of the corpus. "
            "A fresh reader was then examined on the frozen stores:",
            "",
            table(groups),
            "",
            "rho is the trained store's actions over the flat store's, on the same questions: "
            f"{saved:.0%} fewer actions where",
            f"training asked the very question. {sure}. Unseen questions gain as far as training touched their keys.",
            "These are the reference agents' numbers; the paper's column is gpt-5-mini's, one seed.",
            "",
            f"Every table and figure, with where each number came from: {out / 'report' / 'report.html'}",
            f"Everything is in {out}. Look further:",
            f"  kbgym log {out} --limit 5          what each question did to the store",
            f'  kbgym store search {out} "People whose job is tanner"',
            f"  kbgym replay {out}                 rebuild it from its trace and verify every step",
        ]
    )
