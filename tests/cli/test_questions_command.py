"""`kbgym questions suggest`, and the drafts on their way through a person into a world."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from fault_server import FaultServer
from test_train_exam import kbgym
from writers import drafting

from kbgym.worlds.world import World

NOTES = str(Path(__file__).parents[2] / "examples" / "harbour" / "notes")
MODEL = "llm:local/tiny"


@pytest.fixture
def server():
    with FaultServer(drafting) as running:
        yield running


@pytest.fixture
def base(server):
    return ["questions", "suggest", NOTES, "--agent", MODEL, "--set", f"base_url={server.url}", "--n", "5"]


def approve(path: Path, *says: str) -> None:
    """Fill in the approve column as a person would."""
    rows = list(csv.DictReader(path.open(newline="")))
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        for row, said in zip(rows, (*says, *[""] * len(rows)), strict=False):
            out.writerow({**row, "approve": said})


def test_nothing_is_sent_without_yes(base, server, tmp_path):
    code, _, error = kbgym(*base, "--out", str(tmp_path / "drafts.csv"))
    assert code == 2 and "use --yes" in error and "9 requests, about" in error
    assert not server.bodies and not (tmp_path / "drafts.csv").exists()


def test_a_draft_is_never_used_unseen(base, tmp_path):
    drafts, world = tmp_path / "drafts.csv", str(tmp_path / "world")
    code, printed, error = kbgym(*base, "--yes", "--out", str(drafts))
    assert code == 0 and "5 drafts" in printed and "write yes in the column" in printed, error
    into = ["import", "corpus", NOTES, "--questions", str(drafts), "--out", world]
    code, _, error = kbgym(*into)
    assert code == 2 and "none of the 5 drafts" in error and "approve" in error and not Path(world).exists()
    approve(drafts, "yes", "no", " YES ")
    code, printed, error = kbgym(*into)
    assert code == 0 and "3 drafted questions left out because they are not approved" in printed, error
    questions = World.load(Path(world)).questions
    asked = [row["question"] for row in csv.DictReader(drafts.open(newline=""))]
    assert [question.text for question in questions] == [asked[0], asked[2]]
    assert all(question.support for question in questions)
    approve(drafts, "perhaps")
    code, _, error = kbgym(*into)
    assert code == 2 and "approve is yes or no, not 'perhaps'" in error


def test_jsonl_drafts_need_approval_too(tmp_path):
    file = tmp_path / "q.jsonl"
    file.write_text(
        '{"question":"Who keeps the light?","answer":"Maud Tarrant","approve":true}\n'
        '{"question":"Who keeps the ice?","answer":"Dag Halvorsen","approve":null}\n'
    )
    code, printed, _ = kbgym(
        "import", "corpus", NOTES, "--questions", str(file), "--out", str(tmp_path / "w"), "--json"
    )
    result = json.loads(printed)
    assert code == 0 and result["questions"] == 1 and result["unapproved"] == 1


def test_again_from_the_cassette_gives_the_same_file(base, server, tmp_path):
    assert kbgym(*base, "--yes", "--out", str(tmp_path / "drafts.csv"))[0] == 0
    paid = len(server.bodies)
    cassette = f"cassette:{tmp_path / 'drafts.cassette.jsonl'}"
    again = tmp_path / "again.csv"
    code, printed, error = kbgym(*base[:3], "--agent", cassette, "--n", "5", "--out", str(again), "--json")
    assert code == 0, error
    assert again.read_bytes() == (tmp_path / "drafts.csv").read_bytes() and len(server.bodies) == paid
    assert json.loads(printed)["drafts"] == 5


def test_a_world_serves_as_well_as_its_files(base, server, tmp_path):
    assert kbgym("import", "corpus", NOTES, "--out", str(tmp_path / "world"))[0] == 0
    for place, name in ((NOTES, "a"), (str(tmp_path / "world"), "b")):
        assert kbgym(*base[:2], place, *base[3:], "--yes", "--out", str(tmp_path / f"{name}.csv"))[0] == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_what_is_refused_before_anything_is_spent(base, server, tmp_path):
    there = tmp_path / "drafts.csv"
    there.write_text("approve,question\nyes,Mine?\n")
    code, _, error = kbgym(*base, "--yes", "--out", str(there))
    assert code == 2 and "approvals" in error and "Mine?" in there.read_text()
    code, _, error = kbgym(*base, "--yes", "--out", str(tmp_path / "drafts.txt"))
    assert code == 2 and "CSV" in error
    code, _, error = kbgym(*base[:3], "--agent", "reference", "--out", str(tmp_path / "d.csv"))
    assert code == 2 and "takes a model" in error
    code, _, error = kbgym(*base[:2], str(tmp_path / "nowhere"), *base[3:], "--yes", "--out", str(tmp_path / "d.csv"))
    assert code == 2 and "nowhere" in error
    assert not server.bodies


def test_a_model_without_ideas_leaves_no_file(base, server, tmp_path):
    server.script = lambda body: {"role": "assistant", "content": "I have no idea."}
    code, _, error = kbgym(*base, "--yes", "--out", str(tmp_path / "drafts.csv"))
    assert code == 1 and "drafted no question" in error and not (tmp_path / "drafts.csv").exists()
