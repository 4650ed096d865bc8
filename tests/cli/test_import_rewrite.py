"""`kbgym import corpus --rewrite` as a user meets it: asked first, paid once, and the same the second time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fault_server import FaultServer
from prompt_reader import calling
from test_train_exam import kbgym
from writers import rewriting

from kbgym.agents.llm.cassette import Cassette
from kbgym.worlds.world import World

HARBOUR = Path(__file__).parents[2] / "examples" / "harbour"
MODEL = "llm:local/tiny"


@pytest.fixture
def server():
    with FaultServer(rewriting) as running:
        yield running


@pytest.fixture
def base(tmp_path, server):
    shutil.copytree(HARBOUR, tmp_path / "harbour")
    notes, out = str(tmp_path / "harbour" / "notes"), str(tmp_path / "world")
    return ["import", "corpus", notes, "--out", out, "--rewrite", MODEL, "--set", f"base_url={server.url}"]


def test_nothing_is_sent_without_yes(base, server, tmp_path):
    code, _, error = kbgym(*base)
    assert code == 2 and "say --yes" in error and "129 requests, about" in error
    assert not server.bodies and not (tmp_path / "world").exists()


def test_twice_is_the_same_and_paid_once(base, server, tmp_path):
    questions = ["--questions", str(HARBOUR / "questions.csv")]
    code, printed, error = kbgym(*base, *questions, "--yes", "--json")
    assert code == 0, error
    first = json.loads(printed)
    world = World.load(tmp_path / "world")
    counts = first["rewrite"]
    assert counts["asked"] == counts["rewritten"] + counts["kept"] + counts["failed"] == len(world.documents) == 129
    assert counts["rewritten"] > 5
    texts = [document.text for document in world.documents]
    assert "The Petrel was built in 1994 at Hallow Slip and belongs to Amos Teller." in texts
    assert world.facts["rewrite"] == MODEL and len(world.questions) == 20
    paid = len(server.bodies)
    assert len(Cassette(tmp_path / "world.rewrite.cassette.jsonl", record=False)) == paid
    code, printed, _ = kbgym(*base, *questions, "--json")  # nothing to confirm: nothing is left to send
    assert code == 0 and json.loads(printed) == first
    code, printed, _ = kbgym(*base, "--update", "--json")
    again = json.loads(printed)
    assert code == 0 and again["hash"] == first["hash"] and again["changes"]["edited"] == []
    assert len(server.bodies) == paid
    cassette = f"cassette:{tmp_path / 'world.rewrite.cassette.jsonl'}"
    code, printed, _ = kbgym(*base[:5], *questions, "--rewrite", cassette, "--json")
    assert code == 0 and json.loads(printed)["hash"] == first["hash"], "a recording makes the same world"


def test_an_update_asks_about_what_changed_and_its_neighbours(base, server, tmp_path):
    assert kbgym(*base, "--yes")[0] == 0
    before, paid = World.load(tmp_path / "world"), len(server.bodies)
    notes = tmp_path / "harbour" / "notes" / "boats.md"
    notes.write_text(notes.read_text().replace("Her hull is green", "Her hull is blue"))
    code, printed, error = kbgym(*base, "--update", "--yes", "--json")
    assert code == 0, error
    changes = json.loads(printed)["changes"]
    assert (len(changes["edited"]), changes["added"], changes["removed"]) == (1, [], [])
    assert 1 <= len(server.bodies) - paid <= 6
    assert [d.id for d in World.load(tmp_path / "world").documents] == [d.id for d in before.documents]
    code, _, error = kbgym("import", "corpus", base[2], "--out", base[4], "--update")
    assert code == 2 and f"rewritten by {MODEL}" in error


def test_an_import_stopped_by_a_cap_writes_no_world_and_goes_on(base, server, tmp_path):
    code, _, error = kbgym(*base, "--yes", "--set", "max_tokens=10000")
    assert code == 1 and "max_tokens 10000 is reached" in error and not (tmp_path / "world").exists()
    paid = len(server.bodies)
    assert 0 < paid < 129
    assert kbgym(*base, "--yes", "--set", "concurrency=2")[0] == 0 and (tmp_path / "world").exists()
    assert len(server.bodies) == len(Cassette(tmp_path / "world.rewrite.cassette.jsonl", record=False))


def test_a_model_that_invents_changes_nothing_and_is_counted(base, server, tmp_path):
    server.script = lambda body: calling(body, [("rewrite", '{"sentence":"Everything cost 123456 crowns."}')])
    code, printed, _ = kbgym(*base, "--yes")
    assert code == 0 and "0 of 129 sentences rewritten" in printed and "129 stay as they are" in printed
    plain = tmp_path / "plain"
    kbgym("import", "corpus", base[2], "--out", str(plain))
    assert [d.text for d in World.load(tmp_path / "world").documents] == [d.text for d in World.load(plain).documents]


def test_a_mistake_in_the_questions_costs_nothing(base, server, tmp_path):
    (tmp_path / "bad.csv").write_text("question,answer\nWho?,\n")
    code, _, error = kbgym(*base, "--yes", "--questions", str(tmp_path / "bad.csv"))
    assert code == 2 and "has no answer" in error and not server.bodies


def test_only_models_rewrite(base):
    code, _, error = kbgym(*base[:5], "--rewrite", "reference")
    assert code == 2 and "--rewrite takes a model" in error


def test_a_key_in_a_reply_is_not_kept(base, server, tmp_path, monkeypatch):
    monkeypatch.setenv("KBGYM_LOCAL_API_KEY", "very-secret-key-1234")
    server.script = lambda body: {"role": "assistant", "content": "very-secret-key-1234"}
    assert kbgym(*base, "--yes")[0] == 0
    assert "very-secret-key-1234" not in (tmp_path / "world.rewrite.cassette.jsonl").read_text()
