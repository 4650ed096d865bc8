"""Passes: play a policy over an environment within a budget.

Forward passes, exams and backward passes share this code and differ only in role, task and budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from kbgym.gym.actions import Action, Answer, Done, Invalid
from kbgym.gym.environment import Step
from kbgym.gym.policy import AgentFailed, Backward, Policy, Task, Turn, View
from kbgym.gym.tools import Role, check, documents_named

FORWARD_BUDGET = 15
MEMORY = 30

Outcome = Literal["answered", "done", "out_of_budget", "agent_failed"]


class Acting(Protocol):
    """An environment of a pass, or a wrapper around one. For `require_visible_ids` see `Environment`."""

    @property
    def require_visible_ids(self) -> bool: ...

    async def carry_out(self, action: Action) -> Step:
        """Carry out a checked action."""


class Transcript(msgspec.Struct, frozen=True):
    """The record of a pass.

    Attributes:
        role: The role that played: reader or curator.
        outcome: How the pass ended, such as `answered` or `out_of_budget`.
        steps: Every action with its result and the observation shown.
        answer: The answer, if the pass gave one.
        failure: Why the agent could not continue, if it could not.
        usage: Tokens and cost, if the policy reports them.
    """

    role: Role
    outcome: Outcome
    steps: tuple[Step, ...]
    answer: str | None = None
    failure: str | None = None
    usage: dict[str, Any] | None = None

    @property
    def characters(self) -> int:
        """Return the number of characters in all observations."""
        return sum(len(step.observation.text) for step in self.steps)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the actions with their observations."""
        return tuple(Turn(step.action, step.observation) for step in self.steps)


async def play(
    policy: Policy,
    environment: Acting,
    role: Role,
    task: Task,
    budget: int,
    memory: int = MEMORY,
    past: Sequence[Step] = (),
) -> Transcript:
    """Play actions of the policy until it ends the pass or the budget is spent.

    `past` are the steps of an interrupted pass; they count against the budget, and the policy sees them.
    """
    steps: list[Step] = list(past)
    recent: deque[Turn] = deque((Turn(step.action, step.observation) for step in past), maxlen=memory)
    outcome = _outcome(steps)
    failure = None
    while outcome == "out_of_budget" and len(steps) < budget:
        try:
            action = await policy.act(View(role, task, tuple(recent), budget - len(steps)))
        except AgentFailed as reason:
            outcome, failure = "agent_failed", str(reason)
            break
        action = check(action, role)
        if environment.require_visible_ids:
            action = _of_shown(action, task, steps)
        step = await environment.carry_out(action)
        steps.append(step)
        recent.append(Turn(step.action, step.observation))
        outcome = _outcome(steps)
    last = steps[-1].action if steps else None
    answer = last.text if isinstance(last, Answer) else None
    usage = getattr(policy, "usage", None)
    return Transcript(role, outcome, tuple(steps), answer, failure, usage and msgspec.to_builtins(usage))


def _of_shown(action: Action, task: Task, steps: Sequence[Step]) -> Action:
    """Return the action, or `Invalid` if it names a document that was not shown in this pass."""
    if not (named := documents_named(action)):
        return action
    known = {id for step in steps for id in step.observation.ids}
    if isinstance(task, Backward):
        known.update(id for turn in task.forward for id in turn.observation.ids)
        for index_task in task.agenda:
            known.update((index_task.index or "", *index_task.linked, *(id for id, _ in index_task.known)))
    hidden = next((id for id in named if id not in known), None)
    if hidden is None:
        return action
    return Invalid(str(action.__struct_config__.tag), f"[{hidden}] has not been shown in this pass.")


def _outcome(steps: Sequence[Step]) -> Outcome:
    """Return the outcome of a pass after these steps; only an answer or `done` ends it before the budget."""
    match steps[-1].action if steps else None:
        case Answer():
            return "answered"
        case Done():
            return "done"
    return "out_of_budget"
