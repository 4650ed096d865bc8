"""`kbgym import phantomwiki`: its result, its summary, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbgym.cli.main import run
from kbgym.worlds.world import World

SAMPLE = Path(__file__).parents[1] / "worlds" / "phantomwiki" / "sample"
SMALL = ["--set", "train=12", "--set", "test_in=6", "--set", "test_out=4", "--set", "eval_in=2", "--set", "eval_out=2"]


def kbgym(capfdbinary, *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        run(["import", "phantomwiki", *map(str, arguments)])
    printed = capfdbinary.readouterr()
    return int(stopped.value.code or 0), printed.out.decode(), printed.err.decode()


def test_an_output_folder_becomes_a_world(capfdbinary, tmp_path):
    out = tmp_path / "w"
    code, printed, _ = kbgym(capfdbinary, "--from", SAMPLE, "--out", out, *SMALL, "--json")
    assert code == 0
    result = json.loads(printed)
    world = World.load(out)
    assert result["documents"] == len(world.documents) and result["hash"] == world.hash
    assert result["questions"] == len(world.questions) == 26
    assert result["splits"] == {"train": 12, "test_in": 6, "test_out": 4, "eval": 4}
    assert result["shipped"]["questions"] == 64 and result["shipped"]["tautologies"] > 0
    assert set(result["leakage"]) == {"test_in", "test_out", "eval"}
    assert result["reserved"] == ["attribute-of-relation", "count-of-relation"]


def test_the_summary_says_what_leaks_and_what_was_left_out(capfdbinary, tmp_path):
    code, printed, _ = kbgym(capfdbinary, "--from", SAMPLE, "--out", tmp_path / "w", *SMALL)
    assert code == 0
    assert "Questions whose key a training question names too:" in printed
    assert "Left out:" in printed and "are reserved" in printed


def test_importing_twice_changes_nothing(capfdbinary, tmp_path):
    arguments = ["--from", SAMPLE, "--out", tmp_path / "w", *SMALL]
    assert kbgym(capfdbinary, *arguments)[0] == kbgym(capfdbinary, *arguments)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "nowhere"], "cannot read nowhere/articles.json"),
        (["--from", SAMPLE, "--set", "train=-1"], "train cannot have -1"),
        (["--from", SAMPLE], "the split train wants 150 questions"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(capfdbinary, tmp_path, arguments, message):
    code, printed, error = kbgym(capfdbinary, *arguments, "--out", tmp_path / "w")
    assert code == 2 and not printed
    assert message in error and len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())
