"""`kbgym import phantomwiki` as a user meets it: what it says, what it refuses, what it needs installed."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from kbgym.cli.main import run
from kbgym.errors import Missing
from kbgym.worlds.phantomwiki.files import generator
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
    assert set(result["leakage"]) == {"test_in", "test_out", "eval"} and not result["disjoint_keys"]
    assert result["reserved"] == ["attribute-of-relation", "count-of-relation"]


def test_the_summary_says_what_leaks_and_what_was_left_out(capfdbinary, tmp_path):
    code, printed, _ = kbgym(capfdbinary, "--from", SAMPLE, "--out", tmp_path / "w", *SMALL)
    assert code == 0
    assert "Questions whose key a training question names too:" in printed and "--disjoint-keys" in printed
    assert "tautologies" in printed and "are reserved" in printed
    code, printed, _ = kbgym(capfdbinary, "--from", SAMPLE, "--out", tmp_path / "d", *SMALL, "--disjoint-keys")
    assert code == 0
    assert "0 of 6 in test_in, 0 of 4 in test_out, 0 of 4 in eval" in printed and "the whole pools" in printed


def test_importing_twice_changes_nothing(capfdbinary, tmp_path):
    arguments = ["--from", SAMPLE, "--out", tmp_path / "w", *SMALL]
    assert kbgym(capfdbinary, *arguments)[0] == kbgym(capfdbinary, *arguments)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "nowhere"], "cannot read nowhere/articles.json"),
        (["--from", SAMPLE, "--seed", "2"], "leave them out with --from"),
        (["--from", SAMPLE, "--set", "train=-1"], "fewer than no questions"),
        (["--from", SAMPLE], "the split train wants 150 questions"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(capfdbinary, tmp_path, arguments, message):
    code, printed, error = kbgym(capfdbinary, *arguments, "--out", tmp_path / "w")
    assert code == 2 and not printed
    assert message in error and len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.fixture
def bare(monkeypatch, tmp_path) -> Path:
    """A machine with nothing installed but what a test puts on its PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    return place


def program(place: Path, name: str, script: str = "exit 0") -> None:
    (place / name).write_text(f"#!/bin/sh\n{script}\n")
    (place / name).chmod(stat.S_IRWXU)


def test_without_the_generator_it_says_what_to_install(bare, capfdbinary, tmp_path):
    code, _, error = kbgym(capfdbinary, "--out", tmp_path / "w")
    assert code == 2 and not (tmp_path / "w").exists()
    for part in (
        "pw-generate",
        "swi-prolog-nox",
        "phantom-wiki==1.0.3",
        "--no-deps --ignore-requires-python",
        "--from",
    ):
        assert part in error
    program(bare, "pw-generate")
    code, _, error = kbgym(capfdbinary, "--out", tmp_path / "w")
    assert code == 2 and "no swipl on the PATH" in error and "swi-prolog-nox" in error


def test_a_generator_that_fails_is_quoted(bare, capfdbinary, tmp_path):
    program(bare, "swipl")
    program(bare, "pw-generate", "echo first; echo the last word >&2; exit 3")
    code, _, error = kbgym(capfdbinary, "--out", tmp_path / "w")
    assert code == 1 and "pw-generate ended with code 3: the last word" in error and not (tmp_path / "w").exists()


def test_the_generator_is_called_with_the_settings_and_its_output_checked(bare, capfdbinary, tmp_path):
    program(bare, "swipl")
    copy = f'/bin/cp {SAMPLE}/articles.json {SAMPLE}/questions.json "$2"; echo "$*" > {tmp_path}/arguments'
    program(bare, "pw-generate", copy)
    code, printed, _ = kbgym(capfdbinary, "--set", "per_type=8", "--set", "trees=2", "--out", tmp_path / "w", *SMALL)
    assert code == 0 and "64 shipped questions" in printed
    given = (tmp_path / "arguments").read_text()
    assert "--seed 1 --num-family-trees 2 --num-questions-per-type 8" in given
    assert "--article-format json --question-format json" in given
    code, _, error = kbgym(capfdbinary, "--out", tmp_path / "v", *SMALL)
    assert code == 1 and "instead of 405, 3403 and 480" in error and not (tmp_path / "v").exists()


@pytest.mark.slow
def test_the_official_generator_gives_the_same_world_twice(capfdbinary, tmp_path):
    try:
        generator()
    except Missing as missing:
        pytest.skip(str(missing))
    hashes = set()
    for name in ("one", "two"):
        code, printed, error = kbgym(capfdbinary, "--out", tmp_path / name, "--json")
        assert code == 0, error
        result = json.loads(printed)
        hashes.add(result["hash"])
        assert result["documents"] == 3403 and result["questions"] == 330
    assert len(hashes) == 1
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]
