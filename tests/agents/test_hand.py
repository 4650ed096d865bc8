"""A person at the terminal sees what a model would be sent, and only a valid call counts."""

from __future__ import annotations

import asyncio

import pytest
from turns import turn

from kbgym.agents.registry import make_agent
from kbgym.gym.actions import Answer, Search
from kbgym.gym.policy import Forward, View


def test_a_pass_at_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed = iter(['add {"text": "x"}', "nonsense", 'answer {"text": "Ada"}'])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    turns = (turn(Search("boat"), "[d1] The boat is Ada's."),)
    policy = make_agent("hand", "reader")()
    assert asyncio.run(policy.act(View("reader", Forward("Whose boat is it?"), turns, 14))) == Answer("Ada")
    shown = capsys.readouterr().out
    assert "[d1] The boat is Ada's." in shown and "Actions left: 14." in shown
