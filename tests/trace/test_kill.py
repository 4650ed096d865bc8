"""kill -9 at 200 random moments: reopening always succeeds, what was acknowledged is there, and nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

KILLING = Path(__file__).with_name("killing.py")


def kill(tmp_path: Path, kills: int, seed: int) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, str(KILLING), str(tmp_path), str(kills), str(seed)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def test_a_few_kills(tmp_path: Path) -> None:
    counts = kill(tmp_path, 20, seed=1)
    assert counts["kills"] + counts["not_begun"] == 20


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    counts = kill(tmp_path, 200, seed=0)
    assert counts["kills"] + counts["not_begun"] == 200
    assert counts["acknowledged"] > 0
    assert counts["torn"] > 0, "no kill fell inside a transaction: the test shows nothing"
