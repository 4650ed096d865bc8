"""A pass driven call by call, for frameworks with their own loop.

Every call is an action of `episode.play`, so budget, checks and outcomes are the same as in any other pass.
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
    """Return the task as a model sees it, with the budget in the last line."""
    return f"{task_block(task)}\n\n{tail(budget)}"


class _Says:
    """A policy with one action."""

    def __init__(self, action: Action) -> None:
        self._action = action

    async def act(self, view: View) -> Action:
        return self._action


class PassByCalls:
    """One pass of a role; `transcript` holds the steps so far."""

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
        """Execute one tool call, with arguments as a dict or as JSON, and return the text for the model."""
        try:
            given = decode(arguments or "{}", dict[str, Any]) if isinstance(arguments, str) else arguments
            action = parse(name, given, self.role)
        except msgspec.DecodeError:
            action = Invalid(name, "the arguments are no JSON object.")
        return shown_result(await self.act(action), self.remaining)

    async def act(self, action: Action) -> str:
        """Execute one action and return the text of its observation."""
        if self.over:
            return OVER
        past = self.transcript.steps
        says = _Says(action)
        self.transcript = await play(says, self._environment, self.role, self.task, len(past) + 1, past=past)
        return self.transcript.steps[-1].observation.text

    def fail(self, reason: str) -> None:
        """End the pass as failed; it has no score."""
        self.transcript = msgspec.structs.replace(self.transcript, outcome="agent_failed", failure=reason)
