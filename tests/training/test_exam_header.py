"""The header of an exam: its conditions, its name, and which rows may share a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbgym.agents.trust import PLAYED_LIVE
from kbgym.canonical import pretty
from kbgym.errors import BadInput
from kbgym.store import Store, source
from kbgym.training.exam_header import (
    ExamHeader,
    check_header,
    claim,
    exam_files,
    header_file,
    header_of,
    kept_exams,
    place_for,
    read_header,
)
from kbgym.training.run import Settings
from kbgym.worlds.world import Question

STORE = Store([source("d0", "Ada Alm's job is baker.")])
ASKED = [Question("q0", "test_in", "job", "job", "What is Ada Alm's job?", ("baker",))]


def header(agent: str = "reference", **changes: Any) -> ExamHeader:
    made = header_of(STORE, 0, "flat", "w" * 64, agent, "test_in", ASKED, Settings(memory=7))
    return msgspec.structs.replace(made, **changes)


def test_it_says_what_was_asked_and_how() -> None:
    made = header()
    assert (made.store, made.iteration, made.arm, made.agent) == (STORE.fingerprint, 0, "flat", "reference")
    assert (made.memory, made.forward_budget) == (7, Settings().forward_budget)
    other = header_of(STORE, 0, "flat", "w" * 64, "reference", "test_in", [*ASKED, *ASKED], Settings(memory=7))
    assert other.questions != made.questions and other.conditions == made.conditions


def test_conditions_are_what_two_exams_must_share() -> None:
    plain = header().conditions
    assert "conversation" not in plain and plain["memory"] == 7 and plain["agent"] == "reference"
    assert header(store="x", iteration=3, arm="hipporag", set="other").conditions == plain
    assert header(memory=8).conditions != plain


@pytest.mark.parametrize("agent", [PLAYED_LIVE, "hand"])
def test_every_conversation_is_a_condition_of_its_own_and_of_one_plan(agent: str) -> None:
    one, two = header(agent), header(agent)
    assert one.conditions["conversation"] != two.conditions["conversation"]
    assert one.plan == two.plan and one.plan.conversation == "any"
    assert header().plan == header() and header().conversation is msgspec.UNSET
    assert header("reference:hand").conversation is msgspec.UNSET


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "flat-test_in"),
        ({"iteration": 4}, "trained-test_in"),
        ({"arm": "hipporag", "iteration": 4}, "hipporag-test_in"),
        ({"set": "my questions/../x"}, "flat-my_questions_.._x"),
        ({"set": "x" * 300}, "flat-" + "x" * 100),
    ],
)
def test_its_name(changes: dict[str, Any], name: str) -> None:
    assert header(**changes).name == name


def test_rows_of_one_exam_only(tmp_path: Path) -> None:
    rows, said = tmp_path / "flat-test_in.jsonl", header()
    assert check_header(rows, said) and not header_file(rows).exists(), "looking begins nothing"
    claim(rows, said)
    assert read_header(rows) == said and header_file(rows).read_text() == pretty(said)
    rows.write_text("")
    assert check_header(rows, header(memory=8)), "no row yet: it may still become another exam's"
    rows.write_text("{}\n")
    assert not check_header(rows, said)
    with pytest.raises(BadInput, match=r"holds an exam with memory 7, not 8; choose another file"):
        claim(rows, header(memory=8))
    with pytest.raises(BadInput, match=rf"with store {STORE.fingerprint[:12]}, not {'f' * 12};"):
        check_header(rows, header(store="f" * 64))
    assert read_header(rows) == said


def test_rows_of_an_earlier_version_stay_without_a_header(tmp_path: Path) -> None:
    rows = tmp_path / "old.jsonl"
    rows.write_text("{}\n")
    claim(rows, header())
    assert read_header(rows) is None and not header_file(rows).exists() and kept_exams(tmp_path) == []


def test_a_folder_keeps_each_exam_once(tmp_path: Path) -> None:
    first = place_for(tmp_path, header())
    assert first == tmp_path / "flat-test_in.jsonl"
    claim(first, header())
    first.write_text("{}\n")
    (tmp_path / "flat-test_in.cassette.jsonl").write_text("{}\n")
    (tmp_path / ".hidden.jsonl").write_text("{}\n")
    assert place_for(tmp_path, header()) == first
    second = place_for(tmp_path, header(memory=8))
    assert second != first and second.name.startswith("flat-test_in.") and second.suffix == ".jsonl"
    claim(second, header(memory=8))
    second.write_text("{}\n")
    assert exam_files(tmp_path) == sorted([first, second])
    assert {kept.file: kept.header.memory for kept in kept_exams(tmp_path)} == {first: 7, second: 8}
    live = place_for(tmp_path, header("hand"))
    claim(live, header("hand"))
    live.write_text("{}\n")
    assert place_for(tmp_path, header("hand")) == live, "another sitting of the same plan goes on in its file"
