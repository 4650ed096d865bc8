"""A model behind one flag, from the command line: forecast, caps, cassette, and the same numbers as without it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from fault_server import FaultServer
from test_train_exam import kbgym

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.retry import Retry
from kbgym.cli.spending import with_spend
from kbgym.trace.events import Ended, Genesis
from kbgym.trace.folder import StoreFolder
from kbgym.worlds.people import generate

MODEL = "llm:local/tiny"
SMALL = ["--questions", "10", "--epochs", "1", "--set", "embedder=hash"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds") / "w"
    generate(people=80, seed=3).save(folder)
    return str(folder)


@pytest.fixture
def server():
    with FaultServer() as running:
        yield running


def test_nothing_is_spent_without_yes(world, server, tmp_path):
    arguments = ["exam", world, "--set", "embedder=hash", "--agent", MODEL, "--set", f"base_url={server.url}"]
    code, _, error = kbgym(*arguments)
    assert code == 2 and "use --yes" in error and "passes, about" in error
    assert server.answered == 0


def test_an_exam_by_a_model_and_again_from_its_cassette_for_nothing(world, server, tmp_path):
    rows = tmp_path / "rows.jsonl"
    base = ["exam", world, "--set", "embedder=hash", "--set", "eval", "--json"]
    code, first, _ = kbgym(*base, "--agent", MODEL, "--set", f"base_url={server.url}", "--yes", "--out", str(rows))
    assert code == 0
    asked = server.answered
    cassette = tmp_path / "rows.cassette.jsonl"
    assert len(Cassette(cassette, record=False)) == asked > 0
    assert all(json.loads(line)["usage"]["requests"] > 0 for line in rows.read_text().splitlines())
    code, again, _ = kbgym(*base, "--agent", f"cassette:{cassette}")
    found, before = json.loads(again), json.loads(first)
    assert found.pop("agents") != before.pop("agents"), "each says who read"
    assert code == 0 and found == before and server.answered == asked
    chats = tmp_path / "chats.jsonl"
    code, _, _ = kbgym("export", "transcripts", str(cassette), "--out", str(chats))
    assert code == 0 and len(chats.read_text().splitlines()) == len(rows.read_text().splitlines())
    code, reference, _ = kbgym(*base, "--agent", "reference")
    assert json.loads(reference)["f1"] == json.loads(first)["f1"], "the server plays the reference reader"


def test_training_by_a_model_stops_at_a_cap_and_goes_on_where_it_stopped(world, server, tmp_path):
    out = tmp_path / "run"
    base = ["train", "--world", world, *SMALL, "--set", "eval=false"]
    base += ["--out", str(out), "--agent", MODEL, "--set", f"base_url={server.url}", "--yes"]
    code, _, error = kbgym(*base, "--set", "max_tokens=30000")
    assert code == 1 and "max_tokens 30000 is reached" in error
    done = StoreFolder(out).reading
    assert done is not None and 0 < done.end.iteration < 10
    code, text, _ = kbgym(*base, "--json")
    assert code == 0 and json.loads(text)["iterations"] == 10
    events = StoreFolder(out).events
    assert isinstance(events[0], Genesis) and set(events[0].settings["agents"]) == {"reader", "curator"}
    assert all(event.usage for event in events if isinstance(event, Ended))
    answered = server.answered
    assert answered == len(Cassette(out / "cassette.jsonl", record=False)), "nothing was paid for twice"
    played = ["--out", str(tmp_path / "again"), "--agent", f"cassette:{out / 'cassette.jsonl'}"]
    code, _, _ = kbgym("train", "--world", world, *SMALL, "--set", "eval=false", *played)
    again = StoreFolder(tmp_path / "again").events
    assert code == 0 and server.answered == answered
    assert again[1:] == events[1:], "a cassette plays what was recorded, under the recorded model's name"


def test_a_judge_that_cannot_judge_stops_the_run_before_it_begins(world, server, tmp_path):
    out = str(tmp_path / "run")
    server.script = lambda body: {"role": "assistant", "content": ""}
    flags = ["--set", f"judge={MODEL}", "--set", f"base_url={server.url}", "--yes"]
    code, _, error = kbgym("train", "--world", world, "--out", out, *SMALL, *flags)
    assert code == 1 and "judge" in error
    assert not [e for e in StoreFolder(Path(out)).events if isinstance(e, Ended)]


def test_an_outage_is_never_scored(world, tmp_path, monkeypatch):
    monkeypatch.setattr("kbgym.agents.llm.connect.Retry", lambda: Retry(attempts=2, first=0.01, longest=0.02))
    with FaultServer(rate=1.0, faults=("error",)) as broken:
        code, _, error = kbgym(
            "exam", world, "--set", "embedder=hash", "--set", "eval", "--agent", MODEL,
            "--set", f"base_url={broken.url}", "--yes", "--out", str(tmp_path / "rows.jsonl"), "--set", "concurrency=2",
        )  # fmt: skip
    assert code == 1 and error.strip()
    assert not (tmp_path / "rows.jsonl").read_text()


def test_the_note_tells_what_was_spent():
    models, notes = SimpleNamespace(budget=SimpleNamespace(spent=SimpleNamespace(tokens=1_250, cost=0.5))), list[str]()
    with_spend(lambda done, total, note: notes.append(note), models)(1, 4, "asked")
    assert notes == ["asked  1,250 tokens  $0.50"]
