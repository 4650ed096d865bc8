"""A pass that is handed its calls one by one, for frameworks that keep the loop to themselves.

Every call is one more action of `episode.play`, so that budget, checks and outcomes are those of every other pass. It
knows nothing of who calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kbgym.agents.llm.prompting import shown_result, tail, task_block
from kbgym.canonical import decode
from kbgym.gym.actions import Action, Invalid
from kbgym.gym.episode import Acting, Transcript, play
from kbgym.gym.policy import Task, View
from kbgym.gym.tools import Role, parse

OVER = "The pass is over; nothing more is done."


def told(task: Task, budget: int) -> str:
    """The task as a model is told it, with the budget as its last line."""
    return f"{task_block(task)}\n\n{tail(budget)}"


class _Says:
    """A policy that has one thing to say."""

    def __init__(self, action: Action) -> None:
        self._action = action

    async def act(self, view: View) -> Action:
        return self._action


class PassByCalls:
    """One pass of a role; `transcript` is what it has come to so far."""

    def __init__(self, environment: Acting, role: Role, task: Task, budget: int) -> None:
        self._environment, self.role, self.task, self._budget = environment, role, task, budget
        self.transcript = Transcript(role, "out_of_budget", ())

    @property
    def remaining(self) -> int:
        return self._budget - len(self.transcript.steps)

    @property
    def over(self) -> bool:
        return self.transcript.outcome != "out_of_budget" or self.remaining < 1

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Carry out one tool call, its arguments perhaps as a model wrote them; what a model is shown of it."""
        observation = await self.act(self._parsed(name, arguments))
        return shown_result(observation, self.remaining)

    async def act(self, action: Action) -> str:
        """Carry out one action; what came back."""
        if self.over:
            return OVER
        past = self.transcript.steps
        says = _Says(action)
        self.transcript = await play(says, self._environment, self.role, self.task, len(past) + 1, past=past)
        return self.transcript.steps[-1].observation.text

    def fail(self, reason: str) -> None:
        """The agent could not go on: the pass ends unscored."""
        self.transcript = msgspec.structs.replace(self.transcript, outcome="agent_failed", failure=reason)

    def _parsed(self, name: str, arguments: Mapping[str, Any] | str) -> Action:
        try:
            given = decode(arguments or "{}", dict[str, Any]) if isinstance(arguments, str) else arguments
        except msgspec.DecodeError:
            return Invalid(name, "the arguments are no JSON object.")
        return parse(name, given, self.role)
