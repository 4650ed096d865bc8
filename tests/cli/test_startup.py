"""A command imports only what it needs. No times are measured, because other processes run at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbgym.store import Store, source
from kbgym.trace.backend import save_store
from kbgym.worlds.people import generate

HEAVY = (
    "onnxruntime",
    "rich",
    "asyncio",
    "ssl",
    "http.client",
    "pandas",
    "psycopg",
    "kbgym.agents.llm",
    "kbgym.corpus",
)
PLAYING = ("kbgym.agents.registry", "kbgym.training.loop", "kbgym.training.exam", "kbgym.search.live")
MAKING = ("kbgym.api.training", "kbgym.worlds.people", "kbgym.worlds.phantomwiki")
FOR_HELP = (*HEAVY, *PLAYING, *MAKING, "numpy", "msgspec", "kbgym.store", "kbgym.search", "kbgym.api")


def loaded(*arguments: str) -> set[str]:
    """The modules in a fresh process after a command."""
    code = (
        "import sys; from kbgym.cli.main import run\ntry: run()\n"
        "finally: print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr
    return set(done.stderr.split())


def test_help_loads_click_and_the_list_of_verbs() -> None:
    found = loaded("--help")
    assert "kbgym.cli.main" in found
    assert found.intersection(FOR_HELP) == set()


@pytest.mark.parametrize("kind", ["store", "world"])
def test_a_search_loads_nobody_who_plays_and_nothing_that_makes(tmp_path: Path, kind: str) -> None:
    if kind == "world":
        generate(people=80).save(tmp_path / "it")
    else:
        save_store(Store([source("d0", "Ada bakes."), source("d1", "Bo sings.")]), tmp_path / "it")
    found = loaded("store", "search", str(tmp_path / "it"), "who sings", "--set", "embedder=hash")
    assert "kbgym.search.engine" in found
    assert found.intersection((*HEAVY, *PLAYING, *MAKING)) == set()


@pytest.mark.parametrize(
    ("given", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2"), ({"OMP_NUM_THREADS": "2"}, "None")]
)
def test_products_are_worked_out_by_one_thread_unless_told_otherwise(given: dict[str, str], threads: str) -> None:
    """Two on two processors took 2.6 times the processor's time for a served search and answered later."""
    code = "import os; from kbgym.cli.main import run\ntry: run(['--version'])\nfinally: print(os.environ.get({!r}))"
    others = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    words = [sys.executable, "-c", code.format("OPENBLAS_NUM_THREADS")]
    done = subprocess.run(words, capture_output=True, text=True, env={**others, **given})
    assert done.stdout.split()[-1] == threads
