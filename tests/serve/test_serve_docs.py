"""Every command and every program in docs/serve.md is run, or at least understood by the command it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from serving import Server, Tokens

from kbgym.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = sorted(
    {*re.findall(r"^    kbgym (.+)$", PAGE, re.MULTILINE), *re.findall(r"-- kbgym (.+)$", PAGE, re.MULTILINE)}
)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_runs(fresh: tuple[Server, Tokens, Path], number: int) -> None:
    server, tokens, _ = fresh
    environment = {**os.environ, "KBGYM_URL": server.url, "KBGYM_TOKEN": tokens.curator}
    command = [sys.executable, "-c", PROGRAMS[number]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Ada Alm" in done.stdout


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_one(line: str, tmp_path: Path) -> None:
    store = tmp_path / "first"
    store.mkdir()
    words = [word if "runs/first" not in word else str(store) for word in line.split()]
    verb = app.get_command(click.Context(app), words[0])
    assert verb is not None
    verb.make_context(words[0], words[1:], resilient_parsing=False)


def test_there_is_something_to_test() -> None:
    assert len(PROGRAMS) == 2 and len(COMMANDS) >= 7
