"""Any language model as reader or curator: one view, one request, one valid action.

A reply that is no action (prose, an unknown tool, broken JSON, several calls, nothing, something cut off) is answered
with one precise correction, within an allowance for the whole pass; then the pass ends as the agent's failure. It costs
no action: the store never saw it. A provider that is down is not the agent's failure: that error passes through.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kbgym.actions import Action, Invalid
from kbgym.agents.prompting import Skill, messages, skill_of, tail
from kbgym.canonical import decode
from kbgym.llm.client import Client
from kbgym.llm.connect import Models, Settings, described
from kbgym.llm.errors import TooLong
from kbgym.llm.values import Message, Reply, Request, Usage
from kbgym.policy import AgentFailed, View
from kbgym.tools import ROLES, TOOLS, Role, openai_tools, parse

ALLOWANCE = 3
# How much of a senseless reply is shown back to the model.
_QUOTED = 400


class Malformed(msgspec.Struct, frozen=True):
    """A reply that is no action, and what is wrong with it in one sentence."""

    reason: str


class LLMPolicy:
    """One pass of one model. `usage` is what this pass has used so far."""

    def __init__(
        self, client: Client, settings: Settings, allowance: int = ALLOWANCE, skill: Skill | None = None
    ) -> None:
        self.usage = Usage()
        self._client = client
        self._settings = settings
        self._left = allowance
        self._skill = skill

    async def act(self, view: View) -> Action:
        request = request_for(view, self._settings, self._skill)
        while True:
            reply = await self._ask(request)
            action = read(reply, view.role)
            if not isinstance(action, Malformed):
                return action
            self.usage += Usage(malformed=1)
            self._client.count_malformed()
            if self._left == 0:
                raise AgentFailed(f"no valid call after the last correction: {action.reason}")
            self._left -= 1
            correction = (Message("assistant", _quoted(reply)), Message("user", _correction(action.reason, view.role)))
            request = msgspec.structs.replace(request, messages=request.messages + correction)

    async def _ask(self, request: Request) -> Reply:
        try:
            reply = await self._client.ask(request)
        except TooLong as error:
            raise AgentFailed(f"the prompt no longer fits the model's context: {error}") from None
        self.usage += Usage.of(reply)
        return reply


class LLMAgent:
    """Makes a policy for every pass of one role; all of them share a client."""

    def __init__(
        self, models: Models, name: str, role: Role, allowance: int = ALLOWANCE, skill: Skill | None = None
    ) -> None:
        self.client, self.settings = models.client(name, role)
        self.skill = skill or skill_of(role)
        self.allowance = allowance

    def __call__(self) -> LLMPolicy:
        return LLMPolicy(self.client, self.settings, self.allowance, self.skill)

    @property
    def name(self) -> str:
        return self.client.name

    @property
    def description(self) -> dict[str, Any]:
        """For a run's settings and its trace: the model, what it is asked with, and the hashes of its prompts."""
        return described(self.client, self.settings, self.skill.hashes)


def request_for(view: View, settings: Settings, skill: Skill | None = None) -> Request:
    return Request(
        model=settings.model,
        system=(skill or skill_of(view.role)).text,
        messages=messages(view),
        tools=tuple(openai_tools(view.role)),
        tail=tail(view.remaining),
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        effort=settings.effort,
    )


def read(reply: Reply, role: Role) -> Action | Malformed:
    """The one action a reply asks for. An action that breaks a rule of the store is still an action."""
    if len(reply.calls) > 1:
        return Malformed(f"the reply held {len(reply.calls)} calls, and one turn is one call.")
    if not reply.calls:
        if reply.finish == "length":
            return Malformed("the reply was cut off before it came to a call.")
        if not reply.text.strip():
            return Malformed("the reply was empty.")
        return Malformed("the reply was text without a call.")
    (call,) = reply.calls
    try:
        arguments = decode(call.arguments or "{}")
    except msgspec.DecodeError:
        cut = " and were cut off" if reply.finish == "length" else ""
        return Malformed(f"the arguments of {call.name[:40]!r} are no JSON{cut}.")
    if not isinstance(arguments, dict):
        return Malformed(f"the arguments of {call.name[:40]!r} are no JSON object.")
    action = parse(call.name, arguments, role)
    if isinstance(action, Invalid) and not _fits(call.name, arguments, role):
        return Malformed(action.reason)
    return action


def _fits(name: str, arguments: dict[str, Any], role: Role) -> bool:
    """Whether a call has the right shape; what it then asks for may still be refused, at the price of an action."""
    try:
        msgspec.convert(arguments, TOOLS[name].action)
    except (KeyError, msgspec.ValidationError):
        return False
    return name in ROLES[role]


def _quoted(reply: Reply) -> str:
    calls = "\n".join(f"{call.name} {call.arguments}" for call in reply.calls)
    said = "\n".join(part for part in (reply.text.strip(), calls) if part)
    if len(said) > _QUOTED:
        return f"{said[:_QUOTED]} [...]"
    return said or "(nothing)"


def _correction(reason: str, role: Role) -> str:
    tools = ", ".join(ROLES[role])
    return f"That was no action: {reason} Reply with exactly one call of one of these tools and nothing else: {tools}."
