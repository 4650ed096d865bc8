"""Training on top of an arm's store, and the default agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbgym.api import open
from kbgym.worlds.people import generate
from kbgym.worlds.world import Document, Question, World

SMALL = ("--questions", "3", "--epochs", "1", "--set", "embedder=hash", "--set", "eval=false", "--json")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    generate(people=60, seed=1).save(tmp_path / "people")
    return tmp_path / "people"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    documents = tuple(Document(f"d{n}", f"Boat {n}: builder: Yard {n % 3}") for n in range(9))
    asked = tuple(
        Question(f"q{n}", "train", "", "", f"Who was the builder of Boat {n}?", (f"Yard {n % 3}",), (), (f"d{n}",))
        for n in range(3)
    )
    World(documents, asked, {"kind": "corpus"}).save(tmp_path / "notes")
    return tmp_path / "notes"


def test_a_run_on_top_of_an_arm_says_where_it_begins_and_goes_on(kbgym, people, tmp_path):
    arm, out = tmp_path / "b3", tmp_path / "run"
    assert kbgym("baseline", "hipporag", "--world", people, "--out", arm, "--quiet")[0] == 0
    before = open(arm).store
    code, printed, error = kbgym("train", "--world", people, "--out", out, "--from", arm, *SMALL)
    assert code == 0, error
    with open(out) as run:
        assert run.place.genesis.settings["begins"].startswith("hipporag ")
        assert run.place.store(0).fingerprint == before.fingerprint and run.store.links > before.links
    assert kbgym("store", "replay", out)[0] == 0
    code, again, _ = kbgym("train", "--world", people, "--out", out, "--from", arm, *SMALL)
    assert code == 0 and json.loads(again) == json.loads(printed)
    code, _, error = kbgym("train", "--world", people, "--out", out, *SMALL)
    assert code == 2 and "was started with begins 'hipporag" in error


def test_the_store_of_another_world_is_refused(kbgym, people, notes, tmp_path):
    assert kbgym("baseline", "flat", "--world", notes, "--out", tmp_path / "b", "--quiet")[0] == 0
    code, out, error = kbgym("train", "--world", people, "--out", tmp_path / "r", "--from", tmp_path / "b", *SMALL)
    assert code == 2 and "not built from this world's documents" in error and len(error.splitlines()) == 1
    assert not out and not (tmp_path / "r").exists()


def test_who_plays_follows_from_the_world_and_is_said(kbgym, people, notes, tmp_path):
    for world, who, why in ((people, "reference", "know the grammar"), (notes, "general", "any text")):
        out = tmp_path / f"run-{who}"
        code, printed, _ = kbgym("train", "--world", world, "--out", out, *SMALL)
        result = json.loads(printed)
        assert code == 0 and result["settings"]["reader"] == result["settings"]["curator"] == who
        assert why in result["agents"]
        code, _, error = kbgym("exam", out, "--set", "train")
        assert code == 0 and why in error and len(error.strip().splitlines()) == 1
    code, printed, error = kbgym(
        "exam", notes, "--set", "train", "--agent", "reference", "--set", "embedder=hash", "--json"
    )
    assert (code, error) == (0, "") and json.loads(printed)["agents"] == "reference reads."


def test_a_world_without_questions_is_refused(kbgym, notes, tmp_path):
    World(World.load(notes).documents, (), {"kind": "corpus"}).save(tmp_path / "mute")
    code, _, error = kbgym("train", "--world", tmp_path / "mute", "--out", tmp_path / "r")
    assert code == 2 and "no training questions" in error and len(error.splitlines()) == 1
    assert not (tmp_path / "r").exists()


def test_a_run_goes_on_with_what_it_began_with_whatever_is_usual_now(kbgym, notes, tmp_path):
    out = tmp_path / "run"
    begun = ("--agent", "reference", "--set", "observations=paper", "--search", "vectors")
    assert kbgym("train", "--world", notes, "--out", out, *begun, *SMALL)[0] == 0
    code, printed, error = kbgym("train", "--world", notes, "--out", out, *SMALL)
    settings = json.loads(printed)["settings"]
    assert code == 0, error
    assert [settings[name] for name in ("reader", "observations", "search")] == ["reference", "paper", "vectors"]
    code, _, error = kbgym("train", "--world", notes, "--out", out, "--agent", "general", *SMALL)
    assert code == 2 and "reader 'reference', not 'general'" in error
