"""A small experiment for the tests that need one: two seeds, three arms, two trainings, hashed vectors; made once."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from kbgym.cli.experiment import prepare
from kbgym.experiments.experiment import Plan, open_experiment, run_seed, trainings
from kbgym.training.run import Settings

BASE = Settings(questions=20, epochs=2, embedder="hash")


def small_plan(seeds: tuple[int, ...] = (0, 1), arms: tuple[str, ...] = ("flat", "hipporag", "nostore")) -> Plan:
    return Plan("paper", trainings("paper", "", ("paper", "class"), BASE), arms, seeds, n=6, people=80)


def run(folder: Path, plan: Plan) -> None:
    plan = open_experiment(folder, plan)
    for seed in plan.seeds:
        run_seed(folder, plan, seed, prepare)


@cache
def _made() -> tempfile.TemporaryDirectory[str]:
    """Kept until the tests end, then removed."""
    scratch = tempfile.TemporaryDirectory(prefix="kbgym-experiment-")
    run(Path(scratch.name) / "exp", small_plan())
    return scratch


def small_experiment(into: Path) -> Path:
    """A copy of the experiment that a test may do with as it likes."""
    shutil.copytree(Path(_made().name) / "exp", into)
    return into


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}
