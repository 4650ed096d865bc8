"""`kbgym doctor`: one screen that says whether an agent can play."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result
from fault_server import FaultServer

from kbgym.cli.doctor import command
from kbgym.errors import Failed


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_the_reference_agents_can_play() -> None:
    result = doctor("--agent", "reference", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found["ok"] is True
    assert found["malformed_rate"] == 0
    assert "8 of 8 right" in found["checks"][0]["detail"]


def test_a_model_that_plays_well_can_play() -> None:
    with FaultServer() as server:
        found = json.loads(doctor("--agent", "llm:local/m", "--set", f"base_url={server.url}", "--json").stdout)
        screen = doctor("--agent", "llm:local/m", "--set", f"base_url={server.url}")
    assert found["ok"] is True
    assert set(found) >= {"ok", "malformed_rate", "latency", "price"}
    assert found["latency"]["median"] > 0
    assert found["price"]["spent"] is None
    assert {check["name"]: check["ok"] for check in found["checks"]} == {
        "reached": True,
        "passes": True,
        "tool calls": True,
        "judge": True,
    }
    assert "llm:local/m: can play" in screen.stdout
    assert len(screen.stdout.splitlines()) < 15


def test_a_model_that_only_talks_cannot_play() -> None:
    with FaultServer(lambda body: {"role": "assistant", "content": "Gladly! Which question?"}) as server:
        result = doctor("--agent", "llm:local/m", "--set", f"base_url={server.url}", "--json")
    found = json.loads(result.stdout)
    assert found["ok"] is False
    assert found["malformed_rate"] == 1.0
    assert isinstance(result.exception, Failed)
    assert "cannot play" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--agent", "llm:openai/m"], "OPENAI_API_KEY"),
        (["--agent", "llm:local/m", "--set", "base_url=http://127.0.0.1:9/v1"], "did not answer"),
        (["--agent", "nobody"], "no agent 'nobody'"),
    ],
)
def test_what_cannot_be_reached_says_why(arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = doctor(*arguments)
    assert isinstance(result.exception, Failed)
    assert says in result.stdout
