"""64 clients at once, and kill -9: no lost update, nothing acknowledged is missing, the store equals its replay.

The work is the benchmark's own (`benchmarks/serve.py`), which checks all of that and fails where it does not hold.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "serve.py"


def benchmark(*flags: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCHMARK), "--embedder", "hash", "--people", "100", "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_64_clients_at_once() -> None:
    found = benchmark("--seconds", "8", "--kills", "0", "--settings", "0.1:0.5")["load"][0]
    assert found["undocumented"] == []
    assert found["edits"] > 50 and found["conflicts"] > 0, "without edits that meet, this shows nothing"


@pytest.mark.slow
def test_kill_9_while_clients_edit() -> None:
    found = benchmark("--seconds", "0", "--kills", "5")["kill"]
    assert found["rounds"] == 5 and found["missing"] == 0 and found["acknowledged"] > 0
