"""No verb reaches a model without a forecast and a yes, a cap, and an address; all verbs are walked."""

from __future__ import annotations

import click
import pytest
from fault_server import FaultServer

from kbgym.cli.main import app
from kbgym.cli.spending import spending_options
from kbgym.worlds.people import generate
from kbgym.worlds.splits import Sizes

MODEL = "llm:local/tiny"
ROLES = {"agent", "reader", "curator", "judge", "writer"}
# `doctor` is what one runs to learn the price: it plays ten short passes under a cap it has by itself.
PRICED_BY_THEMSELVES = {"doctor": {"base_url", "max_cost", "max_tokens"}}


def verbs(group=app, before=()):
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from verbs(command, (*before, name))
        else:
            yield (*before, name), {parameter.name for parameter in command.params}


@click.command()
@spending_options
def gate(**flags):
    pass


GATE = {parameter.name for parameter in gate.params}


def test_every_verb_that_takes_an_agent_has_the_gate():
    found = {names: flags for names, flags in verbs() if flags & ROLES}
    assert {("train",), ("exam",), ("prove",), ("experiment", "run"), ("learn",), ("serve",)} <= set(found)
    for names, flags in found.items():
        needed = PRICED_BY_THEMSELVES.get(names[0], GATE)
        assert needed <= flags, f"{' '.join(names)} takes an agent and lacks {sorted(needed - flags)}"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds") / "w"
    generate(60, 0, Sizes(train=10, test_in=6, test_out=2, eval_in=2, eval_out=2)).save(folder)
    return folder


@pytest.mark.parametrize("role", ["agent", "judge"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--world", "{world}", "--out", "{out}"],
        ["exam", "{world}"],
        ["prove", "{world}", "--out", "{out}"],
        ["experiment", "run", "paper", "--world", "{world}", "--out", "{out}", "--questions", "10", "--n", "2"],
        ["learn", "{store}", "--traffic", "{world}/questions.jsonl"],
        ["learn", "{store}", "--idle"],
        ["serve", "{store}", "--http", "127.0.0.1:0", "--no-auth"],
    ],
)
def test_without_a_yes_nothing_is_asked_of_a_model(world, tmp_path, kbgym, arguments, role):
    verb = arguments[0]
    if role == "judge" and verb in ("exam", "experiment"):
        pytest.skip("nobody judges there")
    places = {"world": str(world), "out": str(tmp_path / "out"), "store": str(tmp_path / "store")}
    if "{store}" in arguments:
        assert kbgym("baseline", "flat", "--world", world, "--out", tmp_path / "store", "--quiet")[0] == 0
        role = {"agent": "reader"}.get(role, role)
    with FaultServer() as server:
        given = [argument.format(**places) for argument in arguments]
        embedder = ["--set", "embedder=hash"]
        who = ("--agent", MODEL) if role == "agent" else ("--set", f"{role}={MODEL}")
        code, _, error = kbgym(*given, *who, "--set", f"base_url={server.url}", *embedder)
        assert code == 2 and "use --yes" in error and MODEL in error and "about" in error, error
        assert server.answered == 0


@pytest.mark.slow
def test_an_experiment_by_a_model_is_capped_and_pays_for_nothing_twice(world, tmp_path, kbgym):
    base = ["experiment", "run", "paper", "--world", world, "--out", tmp_path / "exp", "--set", "embedder=hash"]
    base += ["--questions", "4", "--epochs", "1", "--n", "1", "--arms", "flat", "--strategy", "paper", "--yes"]
    with FaultServer() as server:
        base += ["--agent", MODEL, "--set", f"base_url={server.url}"]
        code, _, error = kbgym(*base, "--set", f"max_tokens={60_000}")
        assert code == 1 and "max_tokens 60000 is reached" in error
        code, _, error = kbgym(*base, "--set", "workers=2")
        assert code == 2 and "one process" in error
        assert kbgym(*base, "--quiet")[0] == 0
        asked = server.answered
        assert kbgym(*base, "--quiet")[0] == 0 and server.answered == asked
    assert kbgym("report", tmp_path / "exp", "--quiet")[0] == 0
