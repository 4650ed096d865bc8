"""`train`, `exam`, `probe`, `demo` as a user runs them: output, JSON, exit codes, resuming, bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kbgym.cli.main import VERBS, app, run
from kbgym.worlds.people import generate

SMALL = ["--questions", "20", "--epochs", "1", "--set", "embedder=hash"]


def kbgym(*arguments: str) -> tuple[int, str, str]:
    """Run the command line in this process the way the script does."""
    runner = CliRunner()
    with runner.isolation() as streams:
        code = 0
        try:
            run(list(arguments))
        except SystemExit as end:
            code = int(end.code or 0)
        streams[0].seek(0)
        streams[1].seek(0)
        return code, streams[0].read().decode(), streams[1].read().decode()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds") / "w"
    generate(people=120, seed=2).save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def trained(world, tmp_path_factory):
    out = str(tmp_path_factory.mktemp("runs") / "r")
    code, text, _ = kbgym("train", "--world", world, "--out", out, *SMALL)
    assert code == 0 and "20 iterations" in text
    return out


def test_train_again_resumes_and_says_the_same(world, trained):
    code, text, _ = kbgym("train", "--world", world, "--out", trained, *SMALL, "--json")
    result = json.loads(text)
    assert code == 0 and result["iterations"] == 20
    assert {"run", "coverage", "links", "authored", "forward_f1"} <= set(result)


def test_train_with_other_settings_is_refused(world, trained):
    code, _, error = kbgym("train", "--world", world, "--out", trained, "--questions", "25", "--set", "embedder=hash")
    assert code == 2 and "questions 20, not 25" in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--agent", "nobody"], "there is no agent 'nobody'"),
        (["--agent", "no_such_module:make"], "cannot be loaded"),
        (["--set", "strategy=luck"], "there is no strategy 'luck'"),
        (["--set", "embedder=magic"], "there is no embedder 'magic'"),
        (["--questions", "1000"], "cannot take 1000 of 150"),
    ],
)
def test_bad_flags_leave_nothing_behind(world, tmp_path, arguments, said):
    code, _, error = kbgym("train", "--world", world, "--out", str(tmp_path / "r"), *SMALL, *arguments)
    assert code == 2 and said in error
    assert not (tmp_path / "r").exists()


def test_probe_then_exam_of_a_group_flat_and_trained(trained, tmp_path):
    code, text, _ = kbgym("probe", trained, "--n", "6", "--json")
    assert code == 0
    groups = json.loads(text)
    assert set(groups["groups"]) == {"trained", "both", "one", "neither"}
    assert groups["overlap"]["neither"] == 0
    rows = tmp_path / "rows.jsonl"
    results = {}
    for store in (trained, f"{trained}@0"):
        code, text, _ = kbgym("exam", store, "--set", "trained", "--json", *(["--out", str(rows)] * (store == trained)))
        assert code == 0
        results[store] = json.loads(text)
        assert {"n", "f1", "em", "actions", "characters", "outcomes"} <= set(results[store])
    assert results[trained]["actions"] < results[f"{trained}@0"]["actions"]
    assert len(rows.read_text().splitlines()) == results[trained]["n"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["exam", "{run}", "--set", "nonsense"], "no question set 'nonsense'"),
        (["exam", "{run}@999"], "there is no iteration 999"),
        (["exam", "/no/such/store"], "is not a store"),
        (["exam", "{run}", "--agent", "reader"], "there is no agent 'reader'"),
        (["probe", "/no/such/run"], "is not a run"),
        (["probe", "{run}", "--n", "few"], "takes a number or `all`"),
        (["probe", "{run}", "--n", "500"], "too many"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(trained, arguments, said):
    code, out, error = kbgym(*(argument.format(run=trained) for argument in arguments))
    assert code == 2 and said in error and len(error.strip().splitlines()) == 1 and not out


def test_demo_tells_the_story_on_one_screen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["demo", "--out", "d", "--people", "120", "--questions", "40", "--epochs", "1"]
    code, text, _ = kbgym(*arguments, "--n", "6", "--set", "embedder=hash")
    assert code == 0
    assert "trained on" in text and "neither" in text and "reference agents' numbers" in text
    assert "\nVerdict: " in text and json.loads((tmp_path / "d" / "verdict.json").read_text())["n"] == 12
    assert len(text.splitlines()) <= 30 and max(map(len, text.splitlines())) <= 130
    code, text, _ = kbgym(*arguments, "--n", "6", "--set", "embedder=hash", "--json")
    result = json.loads(text)
    assert code == 0 and {"run", "groups", "coverage", "links"} <= set(result)
    assert {"n", "rho", "rho_low", "rho_high", "f1_flat", "f1_trained"} <= set(result["groups"]["trained"])


def test_every_verb_has_help_with_an_example():
    runner = CliRunner()
    top = runner.invoke(app, ["--help"])
    assert top.exit_code == 0
    assert all(f"\n  {verb} " in top.output for verb in VERBS) and "Exit codes: 0 done" in top.output
    for verb in VERBS:
        command = app.get_command(click.Context(app), verb)
        below = [[verb, name] for name in command.list_commands(click.Context(command))] if _is_group(command) else []
        for words in below or [[verb]]:
            shown = runner.invoke(app, [*words, "--help"])
            assert shown.exit_code == 0, words
            assert f"kbgym {' '.join(words)}" in shown.output, words


def _is_group(command: click.Command | None) -> bool:
    return isinstance(command, click.Group)


def test_an_unknown_verb_is_bad_input():
    code, _, error = kbgym("trian")
    assert code == 2 and "trian" in error


def test_nothing_is_written_outside_the_run(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, _ = kbgym("train", "--world", world, "--out", "r", *SMALL, "--quiet")
    assert code == 0 and [path.name for path in Path().iterdir()] == ["r"]


def test_a_baseline_is_examined_with_its_own_engine(world, tmp_path):
    results = {}
    for arm in ("flat", "bm25"):
        assert kbgym("baseline", arm, "--world", world, "--out", str(tmp_path / arm), "--quiet")[0] == 0
        arguments = ["exam", str(tmp_path / arm), "--world", world, "--set", "embedder=hash", "--json"]
        code, text, _ = kbgym(*arguments)
        assert code == 0
        results[arm] = json.loads(text)
    assert results["flat"] != results["bm25"]


def test_an_exam_keeps_to_the_budget_of_the_run(world, tmp_path):
    """An exam uses the action budget of the run's training instead of the default."""
    out, short = str(tmp_path / "r"), ("--questions", "4", "--epochs", "1", "--set", "forward_budget=2")
    flags = ("--set", "embedder=hash", "--set", "eval=false", "--quiet")
    assert kbgym("train", "--world", world, "--out", out, *short, *flags)[0] == 0
    assert kbgym("exam", out, "--set", "test_in", "--quiet", "--out", str(tmp_path / "rows"))[0] == 0
    assert max(json.loads(line)["actions"] for line in (tmp_path / "rows").read_text().splitlines()) == 2


@pytest.mark.parametrize("fails", [False, True])
def test_an_exam_closes_what_it_opened(trained, monkeypatch, fails):
    from kbgym.trace.folder import StoreFolder

    closed = []
    monkeypatch.setattr(StoreFolder, "close", lambda self: closed.append(self.name))
    code, _, _ = kbgym("exam", trained, "--set", "embedder=hash", *(["--agent", "nobody"] * fails), "--quiet")
    assert code == (2 if fails else 0) and closed == [trained]


def test_an_exam_can_be_limited(trained):
    code, text, _ = kbgym("exam", trained, "--set", "test_in", "--limit", "3", "--json")
    assert code == 0 and json.loads(text)["n"] == 3
    code, text, _ = kbgym("exam", trained, "--set", "test_in", "--json")
    assert code == 0 and json.loads(text)["n"] == 100, "a limited exam is kept apart from the whole one"


AGENT = """
from kbgym import AgentFailed


class Reader:
    async def act(self, view):
        raise AgentFailed("no pen")


def make():
    return Reader()
"""


def test_an_exam_whose_every_pass_failed_is_an_error(trained, tmp_path, monkeypatch):
    """The agent is a module in the current folder, which is not on the path of modules."""
    (tmp_path / "penless_agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    code, _, error = kbgym("exam", trained, "--set", "eval", "--limit", "2", "--agent", "penless_agent:make")
    assert code == 1 and "no pen" in error
