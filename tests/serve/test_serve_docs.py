"""Every program in docs/serve.md is run; its commands are in tests/test_documented_commands.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from serving import Server, Tokens

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_runs(fresh: tuple[Server, Tokens, Path], number: int) -> None:
    server, tokens, _ = fresh
    environment = {**os.environ, "KBGYM_URL": server.url, "KBGYM_TOKEN": tokens.curator}
    command = [sys.executable, "-c", PROGRAMS[number]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Ada Alm" in done.stdout


def test_there_is_something_to_test() -> None:
    assert len(PROGRAMS) == 2
