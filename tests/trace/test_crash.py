"""Sixteen processes, ten thousand edits, clients killed at random, the server crashed: nothing acknowledged is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import postgres
import pytest

CRASHING = Path(__file__).with_name("crashing.py")


def crash(folder: Path, edits: int, processes: int, restarts: int, seed: int) -> dict[str, float]:
    if postgres.installed() is None:
        pytest.skip(postgres.MISSING)
    numbers = [str(number) for number in (edits, processes, restarts, seed)]
    command = [sys.executable, str(CRASHING), str(folder), *numbers]
    crashing = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, said = crashing.communicate()
    finally:
        crashing.terminate()  # a test that is cut short leaves no server and no client behind
        crashing.wait()
    assert crashing.returncode == 0, said
    counts: dict[str, float] = json.loads(out)
    assert counts["acknowledged"] >= edits and counts["crashes"] == restarts and counts["tokens"] > 0
    return counts


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand_edits(tmp_path: Path) -> None:
    counts = crash(tmp_path, 10_000, 16, 3, 1)
    assert counts["kills"] >= 50


@pytest.mark.slow
def test_a_few_hundred_edits(tmp_path: Path) -> None:
    crash(tmp_path, 300, 4, 1, 2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_crashes_of_the_server(tmp_path: Path) -> None:
    """A turn ends before the flush, so a crash may lose edits that others saw, but none that were acknowledged."""
    counts = crash(tmp_path, 3_000, 16, 20, 3)
    assert counts["committed"] >= counts["acknowledged"]
