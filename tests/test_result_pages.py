"""docs/results.md and docs/paper.md say what experiments gave: no number in them is typed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from experiments import small_experiment

from kbgym.analysis.report import write_report

ROOT = Path(__file__).resolve().parent.parent


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "result_pages.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_pages_are_what_their_numbers_make():
    done = script("--check")
    assert done.returncode == 0, done.stderr


def test_pages_of_a_small_experiment(tmp_path):
    """Every number of the pages is a cell of the report, and a number changed by hand is noticed."""
    folder = small_experiment(tmp_path / "exp")
    write_report(folder)
    done = script(str(folder), "--original", str(folder), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    cells = json.loads((folder / "report" / "cells.json").read_bytes())
    results, paper = ((tmp_path / name).read_text(encoding="utf-8") for name in ("results.md", "paper.md"))
    rho = results[results.index("### rho, by group") :].partition("###")[2].partition("###")[0]
    (line,) = (line for line in rho.splitlines() if line.startswith("| Trained (paper) |"))
    groups = ("trained", "both", "one", "neither", "pooled")
    wanted = [cells[f"gradient/trained-paper/{group}/rho"]["text"] for group in groups]
    assert [cell.strip() for cell in line.split("|")[2:-1]] == wanted
    assert cells["audit/trained-paper/source-to-source"]["text"] in paper
    grades = re.findall(r"\| (within the interval|same direction|by construction|differs|not here) \|", paper)
    assert len(grades) > 80 and len(set(grades)) > 3
    assert script("--check", "--out", str(tmp_path)).returncode == 0
    (tmp_path / "results.md").write_text(results.replace(wanted[0], "0.123"), encoding="utf-8")
    done = script("--check", "--out", str(tmp_path))
    assert done.returncode == 1 and "results.md is not what" in done.stderr


def test_without_a_report_it_says_what_to_run(tmp_path):
    done = script(str(small_experiment(tmp_path / "exp")), "--out", str(tmp_path))
    assert done.returncode == 1 and "run `kbgym report" in done.stderr
