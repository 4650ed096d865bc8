"""The options that are off in the paper's protocol, as a user turns them on: ranking, gate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_train_exam import kbgym

from kbgym.gym.actions import Found
from kbgym.gym.tools import PAGE_SIZE
from kbgym.trace.events import Acted, Genesis, Noted
from kbgym.trace.folder import StoreFolder
from kbgym.worlds.people import generate

SMALL = ("--questions", "20", "--epochs", "1", "--set", "embedder=hash", "--set", "strategy=class")
OPTIONS = {
    "ranking": ("--set", "ranking=apart"),
    "gate": ("--gate", "3"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds") / "w"
    generate(people=120, seed=2).save(folder)
    return str(folder)


@pytest.fixture(scope="module", params=OPTIONS)
def trained(request, world, tmp_path_factory) -> tuple[str, Path]:
    out = tmp_path_factory.mktemp("runs") / request.param
    code, _, error = kbgym("train", "--world", world, "--out", str(out), *SMALL, *OPTIONS[request.param])
    assert code == 0, error
    return request.param, out


def test_the_run_and_its_trace_say_so_and_it_does_something(trained):
    name, out = trained
    value = {"ranking": "apart", "gate": 3}[name]
    folder = StoreFolder(out)
    genesis = folder.events[0]
    assert isinstance(genesis, Genesis) and genesis.settings[name] == value
    assert json.loads((out / "run.json").read_text())["settings"][name] == value
    if name == "ranking":
        pages = [len(e.result.ids) for e in folder.events if isinstance(e, Acted) and isinstance(e.result, Found)]
        assert max(pages) > PAGE_SIZE
    else:
        assert [e for e in folder.events if isinstance(e, Noted) and e.kind == "gate"]


def test_it_replays_and_a_cut_trace_comes_to_the_same_bytes(trained, world, tmp_path):
    name, out = trained
    code, text, error = kbgym("store", "replay", str(out), "--json")
    assert code == 0 and json.loads(text)["identical"], error
    whole = (out / "trace.jsonl").read_bytes()
    other = tmp_path / "again"
    arguments = ("train", "--world", world, "--out", str(other), *SMALL, *OPTIONS[name])
    assert kbgym(*arguments)[0] == 0
    assert (other / "trace.jsonl").read_bytes() == whole
    (other / "trace.jsonl").write_bytes(whole[: len(whole) // 2])
    (other / "trace.head").unlink()  # a run stopped there would have had an earlier one
    assert kbgym(*arguments)[0] == 0
    assert (other / "trace.jsonl").read_bytes() == whole


def test_an_exam_pages_as_the_run_did_unless_told(trained, tmp_path):
    name, out = trained
    expected = "apart" if name == "ranking" else "paper"
    rows = tmp_path / "rows.jsonl"
    code, text, error = kbgym("exam", str(out), "--set", "eval", "--out", str(rows), "--json")
    assert code == 0 and json.loads(text)["ranking"] == expected, error
    assert {json.loads(line).get("ranking", "paper") for line in rows.read_text().splitlines()} == {expected}
    other = "paper" if expected == "apart" else "apart"
    code, text, _ = kbgym("exam", str(out), "--set", "eval", "--set", f"ranking={other}", "--json")
    assert code == 0 and json.loads(text)["ranking"] == other
    code, _, error = kbgym("exam", str(out), "--set", "eval", "--set", f"ranking={other}", "--out", str(rows))
    assert code == 2 and f"ranking {expected}, not {other}" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "ranking=best"), "'best' is not one of"),
        (("--gate", "3", "--set", "batch_size=2"), "one lesson at a time"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(world, tmp_path, arguments, words):
    code, _, error = kbgym("train", "--world", world, "--out", str(tmp_path / "run"), *SMALL, *arguments)
    assert code == 2 and words in error and not (tmp_path / "run").exists()
