"""Any language model as reader or curator: one view, one request, one valid action.

A reply that is no action (prose, an unknown tool, broken JSON, several calls, nothing, something cut off) is answered
with one precise correction, within an allowance for the whole pass; then the pass ends as the agent's failure. It costs
no action: the store never saw it. A provider that is down is not the agent's failure: that error passes through.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from kbgym.agents.llm.asking import Asker, Flawed
from kbgym.agents.llm.client import ModelClient
from kbgym.agents.llm.connect import Models, ModelSettings, described
from kbgym.agents.llm.prompting import Skill, messages, skill_of, tail
from kbgym.agents.llm.retry import TooLong
from kbgym.agents.llm.values import Reply, Request
from kbgym.canonical import decode
from kbgym.gym.actions import Action, Invalid
from kbgym.gym.policy import AgentFailed, View
from kbgym.gym.tools import ROLES, TOOLS, Role, openai_tools, parse

ALLOWANCE = 3


class LLMPolicy(Asker):
    """One pass of one model. `usage` is what this pass has used so far."""

    def __init__(
        self, client: ModelClient, settings: ModelSettings, allowance: int = ALLOWANCE, skill: Skill | None = None
    ) -> None:
        super().__init__(client, settings)
        self._allowance = allowance
        self._skill = skill

    async def act(self, view: View) -> Action:
        request = self._request(view)
        tries = 1 + self._allowance - self.usage.malformed
        action: Action | Flawed
        try:
            action = await self.until_valid(
                request, partial(self._read, view=view), tries, partial(correction, role=view.role)
            )
        except TooLong as error:
            raise AgentFailed(f"the prompt no longer fits the model's context: {error}") from None
        if isinstance(action, Flawed):
            raise AgentFailed(f"no valid call after the last correction: {action.reason}")
        return action

    def _request(self, view: View) -> Request:
        return request_for(view, self._settings, self._skill)

    def _read(self, reply: Reply, view: View) -> Action | Flawed:
        return read(reply, view.role)


class LLMAgent:
    """Makes a policy for every pass of one role; all of them share a client."""

    def __init__(
        self, models: Models, name: str, role: Role, allowance: int = ALLOWANCE, skill: Skill | None = None
    ) -> None:
        self.client, self.settings = models.client(name, role)
        self.skill = skill or skill_of(role)
        self.allowance = allowance
        self.policy = LLMPolicy

    def __call__(self) -> LLMPolicy:
        return self.policy(self.client, self.settings, self.allowance, self.skill)

    @property
    def name(self) -> str:
        return self.client.name

    @property
    def description(self) -> dict[str, Any]:
        """For a run's settings and its trace: the model, what it is asked with, and the hashes of its prompts."""
        return described(self.client, self.settings, self.skill.hashes)


def request_for(view: View, settings: ModelSettings, skill: Skill | None = None) -> Request:
    system = (skill or skill_of(view.role)).text
    return settings.request(system, messages(view), openai_tools(view.role), tail(view.remaining))


def read(reply: Reply, role: Role) -> Action | Flawed:
    """The one action a reply asks for. An action that breaks a rule of the store is still an action."""
    if len(reply.calls) > 1:
        return Flawed(f"the reply held {len(reply.calls)} calls, and one turn is one call.")
    if not reply.calls:
        if reply.finish == "length":
            return Flawed("the reply was cut off before it came to a call.")
        if not reply.text.strip():
            return Flawed("the reply was empty.")
        return Flawed("the reply was text without a call.")
    (call,) = reply.calls
    try:
        arguments = decode(call.arguments or "{}")
    except msgspec.DecodeError:
        cut = " and were cut off" if reply.finish == "length" else ""
        return Flawed(f"the arguments of {call.name[:40]!r} are no JSON{cut}.")
    if not isinstance(arguments, dict):
        return Flawed(f"the arguments of {call.name[:40]!r} are no JSON object.")
    return action_of(call.name, arguments, role)


def action_of(name: str, arguments: dict[str, Any], role: Role) -> Action | Flawed:
    """The action a call asks for, or why it is none: not a tool of the role, or not with these arguments."""
    action = parse(name, arguments, role)
    if isinstance(action, Invalid) and not _fits(name, arguments, role):
        return Flawed(action.reason)
    return action


def _fits(name: str, arguments: dict[str, Any], role: Role) -> bool:
    """Whether a call has the right shape; what it then asks for may still be refused, at the price of an action."""
    try:
        msgspec.convert(arguments, TOOLS[name].action)
    except (KeyError, msgspec.ValidationError):
        return False
    return name in ROLES[role]


def correction(reason: str, role: Role) -> str:
    """What a model is told whose reply was no action."""
    tools = ", ".join(ROLES[role])
    return f"That was no action: {reason} Reply with exactly one call of one of these tools and nothing else: {tools}."
