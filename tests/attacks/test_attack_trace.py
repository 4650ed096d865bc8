"""A served store whose files are damaged under it, or before it starts: said at once, nothing erased, put in order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from serving import Server, Tokens, client, family_store, make_tokens, replayed, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def replaced(trace: Path) -> None:
    shutil.copy(trace, trace.with_name("old"))
    os.replace(trace.with_name("old"), trace)


def emptied(trace: Path) -> None:
    os.truncate(trace, 0)


def add(server: Server, token: str, text: str) -> int:
    with client(server, token) as ada:
        return ada.post("/v1/add", json={"text": text}, timeout=15).status_code


@pytest.mark.parametrize("change", [replaced, emptied, Path.unlink])
def test_a_file_changed_while_serving_gets_no_more_acknowledgements(
    attacked: tuple[Server, Tokens, Path], change: Callable[[Path], None]
) -> None:
    server, tokens, place = attacked
    assert add(server, tokens.curator, "Nils Holm keeps geese.") == 200
    trace = place / "trace.jsonl"
    shutil.copy(trace, place / "kept")
    change(trace)
    for _ in range(3):
        assert add(server, tokens.curator, "Nils Holm keeps ducks.") == 503
    assert b"ducks" not in (trace.read_bytes() if trace.exists() else b"")


def kbgym(*arguments: object) -> tuple[int, str]:
    command = [sys.executable, "-c", "from kbgym.cli.main import run; run()", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.parametrize("lost", ["the end", "everything", "the file"])
def test_a_trace_that_lost_something_is_not_served(tmp_path: Path, lost: str) -> None:
    place = family_store(tmp_path / "store")
    tokens = make_tokens(place)
    with serving(place) as server:
        for number in range(5):
            assert add(server, tokens.curator, f"Nils Holm keeps {number} geese.") == 200
    trace = place / "trace.jsonl"
    whole = trace.read_bytes()
    if lost == "the file":
        trace.unlink()
    else:
        trace.write_bytes(whole[: len(whole) // 2] if lost == "the end" else b"")
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    for verb in (("serve", place, "--http", "127.0.0.1:0", "--set", "embedder=hash"), ("store", "replay", place)):
        code, said = kbgym(*verb)
        assert code == 1 and "iteration 5" in said and "--recover" in said and said.count("\n") == 1
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert kbgym("store", "replay", place, "--recover")[0] == 0
    kept = {path.name: path.read_bytes() for path in (place / "damaged-1").iterdir()}
    assert kept and kept.items() <= before.items()
    with serving(place) as server:
        assert add(server, tokens.curator, "Nils Holm keeps swans.") == 200
    assert replayed(place)
