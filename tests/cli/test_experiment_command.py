"""`kbgym experiment run` and `kbgym report` as a user meets them."""

from __future__ import annotations

import json

import pytest
from experiments import contents

from kbgym.cli.common import seeds_in
from kbgym.cli.main import run
from kbgym.errors import BadInput
from kbgym.worlds.people import generate

SMALL = ("--people", "80", "--questions", "20", "--n", "6", "--set", "embedder=hash")


def kbgym(capfdbinary, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        run(list(arguments))
    printed = capfdbinary.readouterr()
    return int(stopped.value.code or 0), printed.out.decode(), printed.err.decode()


@pytest.mark.slow
def test_seeds_in_processes_of_their_own_come_to_the_same(capfdbinary, tmp_path):
    common = ("experiment", "run", "paper", "--seeds", "0-1", "--arms", "hipporag", *SMALL, "--json")
    code, printed, _ = kbgym(capfdbinary, *common, "--out", str(tmp_path / "one"))
    result = json.loads(printed)
    assert code == 0 and result["seeds"] == [0, 1]
    assert result["arms"] == ["flat", "hipporag", "trained-paper", "trained-class"]
    assert kbgym(capfdbinary, *common, "--out", str(tmp_path / "two"), "--set", "workers=2")[0] == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    code, printed, _ = kbgym(capfdbinary, "report", str(tmp_path / "one"), "--json")
    result = json.loads(printed)
    assert code == 0 and (tmp_path / "one" / "report" / "report.html").samefile(result["report"])
    cell = "gradient/trained-paper/trained/rho"
    code, printed, _ = kbgym(capfdbinary, "report", str(tmp_path / "one"), "--explain", cell)
    assert code == 0 and printed.startswith(f"{cell} = ") and "seed-1/exams/flat-trained.jsonl" in printed
    code, _, error = kbgym(capfdbinary, "report", str(tmp_path / "one"), "--explain", "gradient/x")
    assert code == 2 and "there is no cell" in error


def test_a_given_world_and_an_ablation(capfdbinary, tmp_path):
    generate(80, 5).save(tmp_path / "world")
    out = tmp_path / "exp"
    code, _, error = kbgym(
        capfdbinary, "experiment", "run", "ablation", "--vary", "strategy", "--world", str(tmp_path / "world"),
        "--out", str(out), *SMALL[2:],
    )  # fmt: skip
    assert code == 0, error
    assert (out / "seed-0" / "world" / "documents.jsonl").read_bytes() == (
        tmp_path / "world" / "documents.jsonl"
    ).read_bytes()
    assert kbgym(capfdbinary, "report", str(out))[0] == 0
    page = (out / "report" / "report.html").read_text()
    assert "Ablation: strategy" in page and "training actions" in page


def test_a_demos_run_has_a_report_too(capfdbinary, tmp_path):
    out = tmp_path / "run"
    arguments = ("demo", "--out", str(out), "--people", "80", "--questions", "20", "--n", "6", "--set", "embedder=hash")
    code, printed, error = kbgym(capfdbinary, *arguments, "--json")
    assert code == 0, error
    result = json.loads(printed)
    assert {"run", "groups", "coverage", "links", "report"} <= result.keys()
    assert (out / "report" / "report.html").is_file() and (out / "report" / "tables" / "gradient.csv").is_file()
    rho = json.loads((out / "report" / "cells.json").read_bytes())["gradient/trained-paper/one/rho"]
    assert round(rho["value"], 4) == result["groups"]["one"]["rho"]
    assert "high" not in rho and result["groups"]["one"]["rho_high"] is None, "too few keys for an interval"
    code, printed, _ = kbgym(capfdbinary, *arguments)
    assert code == 0 and "report.html" in printed


def test_bad_input_is_one_sentence(capfdbinary, tmp_path):
    out = ("--out", str(tmp_path / "exp"))
    for arguments, words in (
        (("experiment", "run", "paper", *out, "--seeds", "a"), "--seeds takes numbers"),
        (("experiment", "run", "paper", *out, "--arms", "nosuch"), "no arm 'nosuch'"),
        (("experiment", "run", "paper", *out, "--n", "some"), "--n takes a number"),
        (
            ("experiment", "run", "paper", *out, "--strategy", "clas"),
            "there is no strategy 'clas'; use paper or class.",
        ),
        (("report", str(tmp_path)), "neither an experiment nor a run"),
    ):
        code, _, error = kbgym(capfdbinary, *arguments)
        assert code == 2 and words in error and len(error.splitlines()) == 1
    assert not (tmp_path / "exp").exists()


def test_seeds_are_numbers_and_ranges():
    assert seeds_in("0,1,2") == (0, 1, 2) and seeds_in("0-2,7,1") == (0, 1, 2, 7)
    with pytest.raises(BadInput):
        seeds_in("3-")
