"""`kbgym demo`: `kbgym prove` on a generated world, with the questions in groups by what training touched of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kbgym.analysis.gradient import Comparison, compare, table
from kbgym.analysis.health import coverage
from kbgym.analysis.proof import Proof, verdict_lines
from kbgym.analysis.report import write_report
from kbgym.analysis.statistics import excludes
from kbgym.api import open
from kbgym.cli.common import Printed, verb
from kbgym.cli.prove import ProofSteps
from kbgym.cli.spending import Spending
from kbgym.store import Store, ledger
from kbgym.training.probe import probe_run
from kbgym.training.run import Run, Settings
from kbgym.worlds.people import generate


@verb("demo")
@click.option("--out", default="runs/demo", show_default=True, type=click.Path(path_type=Path), help="The run folder.")
@click.option("--people", default=500, show_default=True, help="How many people the world has.")
@click.option("--seed", default=0, show_default=True, help="Which world.")
@click.option("--questions", default=100, show_default=True, help="How many training questions.")
@click.option("--epochs", default=2, show_default=True, help="How often each is asked.")
@click.option("--n", default=34, show_default=True, help="Exam questions a group.")
@click.option("--embedder", default="all-MiniLM-L6-v2", hidden=True)
def command(out: Path, people: int, seed: int, n: int, **flags: Any) -> Printed:
    """Train a store and prove what it gained, offline, with the reference agents.

    Makes a world, trains on 100 questions twice, and examines the flat and the trained store on questions of four
    kinds: trained on, and never seen with both, one or none of their keys touched in training. Writes a report.

    \b
    Example:
      kbgym demo --out runs/demo
    """
    settings = Settings(seed=seed, **flags)
    run = Run.open_or_create(out, generate(people, seed), settings)
    probed = probe_run(run, n).groups
    steps = ProofSteps(run, probed, Spending({}))
    proof, found = steps.proved()
    groups = {name: compare(both.trained, both.flat, steps.keys) for name, both in steps.exams.items()}
    with open(out) as opened:
        store = opened.store
    result = {
        **{name: found[name] for name in ("run", "agent", "verdict", "sentence")},
        "report": str(write_report(out)),
        "seed": seed,
        "groups": {name: _plain(comparison) for name, comparison in groups.items()},
        "coverage": round(coverage(store).direct, 4),
        "links": store.links,
    }
    return result, _screen(out, settings, people, groups, store, proof)


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
    out: Path, settings: Settings, people: int, groups: dict[str, Comparison], trained: Store, proof: Proof
) -> str:
    counted, share = ledger(trained), coverage(trained).direct
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
            *verdict_lines(proof),
            "That is the three groups training never saw, taken together.",
            "",
            f"Every table and figure, with where each number came from: {out / 'report' / 'report.html'}",
            f"Everything is in {out}. Look further:",
            f"  kbgym log {out} --limit 5          what each question did to the store",
            f'  kbgym store search {out} "People whose job is tanner"',
            f"  kbgym replay {out}                 rebuild it from its trace and verify every step",
        ]
    )
