"""Preferences: of two passes on a question the right one, then the cheaper, as TRL reads them."""

from __future__ import annotations

import json

import pytest

import kbgym
from kbgym.cli.main import run
from kbgym.errors import BadInput
from kbgym.integrations.transcripts import preferences
from kbgym.training.exam import read_rows


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A world with two exams: the reference reader's, and of one who guesses after a single search."""

    def guesses(view):
        return kbgym.Answer("unknown") if view.history else kbgym.Search(view.task.question)

    folder = tmp_path_factory.mktemp("preferences")
    kbgym.generate(people=40, seed=0).save(folder / "w")
    opened = kbgym.open(folder / "w", embedder="hash")
    asked = opened.questions("test_in")[:12]
    opened.examine("reference", asked, out=folder / "right.jsonl")
    opened.examine(guesses, asked, out=folder / "guessed.jsonl")
    return folder


def called(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        run([str(word) for word in words])
    return int(end.value.code or 0)


def test_the_right_pass_is_preferred_and_of_two_right_ones_the_cheaper(place):
    opened, files = kbgym.open(place / "w"), [place / "guessed.jsonl", place / "right.jsonl"]
    rows = [{row.question: row for row in read_rows(file)} for file in files]
    pairs = list(preferences(opened, files))
    expected = {
        text: (one, other) if (one.f1 != 1, one.actions) < (other.f1 != 1, other.actions) else (other, one)
        for text, one in rows[0].items()
        for other in [rows[1][text]]
        if 1.0 in (one.f1, other.f1) and (one.f1, one.actions) != (other.f1, other.actions)
    }
    assert len(pairs) == len(expected) > 3
    for pair in pairs:
        system, question = pair["prompt"]
        assert (system["role"], question["role"]) == ("system", "user")
        better, worse = expected[question["content"].removeprefix("Question: ").partition("\n")[0]]
        for said, row in ((pair["chosen"], better), (pair["rejected"], worse)):
            assert [one["role"] for one in said] == ["assistant", "tool"] * (row.actions - 1) + ["assistant"]
            last = said[-1]["tool_calls"][0]["function"]
            assert (last["name"], last["arguments"]) == ("answer", {"text": row.answer})
            shown = [one["content"].partition("</observation>") for one in said[1::2]]
            assert all(end.endswith(f"Actions left: {14 - at}.") for at, (_, _, end) in enumerate(shown))
            read = sum(len(text) - len("<observation>\n\n") for text, _, _ in shown)
            assert read == row.characters - len("Answer submitted.")


def test_a_pass_is_not_preferred_to_itself(place):
    opened = kbgym.open(place / "w")
    assert not list(preferences(opened, [place / "right.jsonl", place / "right.jsonl"]))


def test_exams_of_another_store_are_refused(place):
    store = kbgym.open(place / "w").store.copy()
    store.delete(next(iter(store)).id)
    with pytest.raises(BadInput, match="another store"):
        list(preferences(kbgym.open(place / "w").with_store(store), [place / "right.jsonl", place / "guessed.jsonl"]))


def test_the_command(place, tmp_path):
    words = ["export", "transcripts", place / "right.jsonl", place / "guessed.jsonl", "--out", tmp_path / "pairs.jsonl"]
    assert called(*words) == 2
    assert called(*words, "--preferences", place / "w") == 0
    assert set(json.loads((tmp_path / "pairs.jsonl").read_text().splitlines()[0])) == {
        "prompt",
        "chosen",
        "rejected",
        "tools",
    }
    assert (
        called("export", "transcripts", place / "right.jsonl", "--preferences", place / "w", "--out", tmp_path / "x")
        == 2
    )
    assert (
        called(
            "export", "transcripts", place / "right.jsonl", "no", "--preferences", place / "w", "--out", tmp_path / "x"
        )
        == 2
    )
