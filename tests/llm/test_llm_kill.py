"""kill -9 in the middle, and run again: nothing lost, nothing twice, and nothing paid for twice."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from fault_server import FaultServer
from llm_fixtures import direct_rows, events, exam, train_over, train_reference, world

from kbgym.agents.llm.cassette import Cassette
from kbgym.trace.events import Acted, Graded
from kbgym.trace.folder import StoreFolder

CONCURRENCY = 4
TESTS = Path(__file__).parent.parent

EXAM = """
import sys; sys.path.insert(0, {tests!r})
from pathlib import Path
from llm_fixtures import exam, world
exam({url!r}, world().split("test_in"), Path({out!r}), cassette=Path({cassette!r}), concurrency={concurrency})
"""
TRAIN = """
import sys; sys.path.insert(0, {tests!r})
from pathlib import Path
from llm_fixtures import train_over
train_over({url!r}, Path({out!r}), Path({cassette!r}), batch_size={batch})
"""


def killed(code: str, server: FaultServer, out: Path, cassette: Path, after: int, batch: int = 1) -> None:
    """Run the code in a process of its own and kill it once the server has answered so many requests."""
    values = {"tests": str(TESTS), "url": server.url, "out": str(out), "cassette": str(cassette)}
    process = subprocess.Popen([sys.executable, "-c", code.format(concurrency=CONCURRENCY, batch=batch, **values)])
    try:
        while server.answered < after:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.002)
    finally:
        process.kill()
        process.wait()
    # What was under way when it died still reaches the server's end.
    time.sleep(0.2)


def test_an_exam(tmp_path: Path) -> None:
    out, cassette = tmp_path / "rows.jsonl", tmp_path / "c.jsonl"
    asked = world().split("test_in")
    with FaultServer(latency=0.01) as server:
        killed(EXAM, server, out, cassette, after=120)
        first = server.answered
        paid = len(Cassette(cassette, record=False))
        assert first - CONCURRENCY <= paid <= first
        rows, agent = exam(server.url, asked, out, cassette=cassette, concurrency=CONCURRENCY)
        second = server.answered - first
    assert rows == direct_rows(asked)
    turns = sum(row.actions for row in rows)
    # Only replies that never arrived are asked for again: those under way at the kill.
    assert second == turns - paid
    assert turns <= first + second <= turns + CONCURRENCY
    assert len(Cassette(cassette, record=False)) == turns
    assert agent.client.usage.requests <= turns


def test_training(tmp_path: Path) -> None:
    cassette = tmp_path / "c.jsonl"
    direct = train_reference(tmp_path / "direct")
    with FaultServer(latency=0.01) as server:
        killed(TRAIN, server, tmp_path / "run", cassette, after=60)
        first = server.answered
        over, _ = train_over(server.url, tmp_path / "run", cassette)
        second = server.answered - first
    assert events(over) == events(direct)
    recorded = len(Cassette(cassette, record=False))
    assert recorded <= first + second <= recorded + 1


def test_training_side_by_side(tmp_path: Path) -> None:
    """Interrupted lessons resume from their committed steps; the cassette has every reply that arrived."""
    cassette, out = tmp_path / "c.jsonl", tmp_path / "run"
    with FaultServer(latency=0.01) as server:
        killed(TRAIN, server, out, cassette, after=90, batch=4)
        carried = [event for event in StoreFolder(out).events if isinstance(event, Acted)]
        first = server.answered
        train_over(server.url, out, cassette, batch_size=4)
        second = server.answered - first
    everything = StoreFolder(out).events
    assert carried and [event for event in everything if isinstance(event, Acted)][: len(carried)] == carried
    assert sorted(event.iteration for event in everything if isinstance(event, Graded)) == list(range(1, 9))
    recorded = len(Cassette(cassette, record=False))
    assert recorded <= first + second <= recorded + 4
