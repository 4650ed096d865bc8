"""Any language model as reader, curator or judge: one view, one request, one valid action.

A reply that is not an action (prose, an unknown tool, invalid JSON, several calls, an empty or truncated reply) is
answered with one precise correction, up to a limit per pass; then the pass ends as the agent's failure. It costs no
action, because the store never saw it. A provider outage is not the agent's failure: that error is propagated.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from kbgym.agents.llm.client import Asker, Flawed, ModelClient, read_call
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.prompting import Skill, as_data, choices, last_lines, messages, prompt, prompt_hash, skill_of
from kbgym.agents.llm.retry import TooLong
from kbgym.agents.llm.values import Message, ModelSettings, Reply, Request, tool
from kbgym.canonical import decode
from kbgym.errors import Failed
from kbgym.gym.actions import Action, Invalid
from kbgym.gym.policy import AgentFailed, View
from kbgym.gym.tools import ROLES, TOOLS, Role, openai_tools, parse

ALLOWANCE = 3
_IDS = ("id", "source", "target")


class LLMPolicy(Asker):
    """One pass of one model. `usage` is what this pass has used so far."""

    def __init__(
        self, client: ModelClient, settings: ModelSettings, allowance: int = ALLOWANCE, skill: Skill | None = None
    ) -> None:
        super().__init__(client, settings)
        self._allowance = allowance
        self._skill = skill

    async def act(self, view: View) -> Action:
        request = request_for(view, self._settings, self._skill)
        tries = 1 + self._allowance - self.usage.malformed
        action: Action | Flawed
        try:
            action = await self.until_valid(
                request, partial(read, role=view.role), tries, partial(correction, role=view.role)
            )
        except TooLong as error:
            raise AgentFailed(f"the prompt no longer fits the model's context: {error}") from None
        if isinstance(action, Flawed):
            raise AgentFailed(f"no valid call after the last correction: {action.reason}")
        return action


class LLMAgent:
    """Makes a policy for every pass of one role; all of them share a client."""

    def __init__(
        self, models: Models, name: str, role: Role, allowance: int = ALLOWANCE, skill: Skill | None = None
    ) -> None:
        self.client, self.settings = models.client(name, role)
        self.skill = (skill or skill_of(role)).with_notes(self.settings.effort, role)
        self.allowance = allowance

    def __call__(self) -> LLMPolicy:
        return LLMPolicy(self.client, self.settings, self.allowance, self.skill)

    @property
    def description(self) -> dict[str, Any]:
        """Return the model, its settings and the hashes of its prompts, for a run's settings and its trace."""
        return self.client.described(self.settings, self.skill.hashes)


def request_for(view: View, settings: ModelSettings, skill: Skill | None = None) -> Request:
    system = (skill or skill_of(view.role)).text
    request = settings.request(system, messages(view), openai_tools(view.role), last_lines(view))
    return msgspec.structs.replace(request, choices=choices(view) if request.thought else ())


def read(reply: Reply, role: Role) -> Action | Flawed:
    """Return the action that a reply requests. An action that breaks a rule of the store is still an action."""
    if len(reply.calls) > 1:
        return Flawed(f"the reply held {len(reply.calls)} calls, and one turn is one call.")
    if not reply.calls:
        said = "text without a call" if reply.text.strip() else "empty"
        return Flawed(f"the reply was {'cut off before it came to a call' if reply.finish == 'length' else said}.")
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
    """Return the action that a call requests, or the flaw: an unknown tool for the role, or invalid arguments.

    Ids may keep the brackets in which they were shown.
    """
    bare = {key: _bare(value) if key in (*_IDS, "targets") else value for key, value in arguments.items()}
    action = parse(name, bare, role)
    if isinstance(action, Invalid) and not _fits(name, bare, role):
        return Flawed(action.reason)
    return action


def _bare(value: Any) -> Any:
    """Return an id without the brackets it was shown in."""
    if isinstance(value, list):
        return [_bare(one) for one in value]
    text = value.strip() if isinstance(value, str) else ""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else value


def _fits(name: str, arguments: dict[str, Any], role: Role) -> bool:
    """Return True if a call has the right shape; the store may still reject it, which costs an action."""
    try:
        msgspec.convert(arguments, TOOLS[name].action)
    except (KeyError, msgspec.ValidationError):
        return False
    return name in ROLES[role]


def correction(reason: str, role: Role) -> str:
    """Return the message to a model whose reply was not an action."""
    tools = ", ".join(ROLES[role])
    return f"That was no action: {reason} Reply with exactly one call of one of these tools and nothing else: {tools}."


# -- the judge of near-duplicates -------------------------------------------------------------------------------------

TRIES = 3
# (new, existing, duplicate?): the pairs of the self-test.
KNOWN = (
    ("Residents of the city of Wexmoor.", "People who live in the city of Wexmoor.", True),
    ("Anna Lindqvist is a child of Tomas Berg.", "Tomas Berg is a child of Anna Lindqvist.", False),
)
_TOOL = tool(
    "verdict",
    "Say whether the new sentence is a duplicate of the existing one.",
    {"duplicate": {"type": "boolean", "description": "True if both say the same."}},
)


class _Verdict(msgspec.Struct, frozen=True):
    duplicate: bool


class JudgeFailed(Failed):
    """The judge is unreliable; the message says why."""


class LLMJudge(Asker):
    """Asks a model whether two sentences have the same meaning.

    A judge that does not answer stops the run: treating an empty reply as "no duplicate" would disable the guard.
    """

    def __init__(self, models: Models, name: str) -> None:
        super().__init__(*models.client(name, "judge"))

    @property
    def description(self) -> dict[str, object]:
        return self._client.described(self._settings, {"judge": prompt_hash("judge")})

    async def duplicate(self, candidate: str, existing: str) -> bool:
        asked = Message("user", f"New:\n{as_data(candidate)}\n\nAlready there:\n{as_data(existing)}")
        request = self._settings.request(prompt("judge"), (asked,), (_TOOL,))
        try:
            verdict = await self.until_valid(request, self._verdict, TRIES)
        except TooLong as error:
            raise JudgeFailed(f"the judge {self.name} cannot take the two sentences: {error}") from None
        if isinstance(verdict, Flawed):
            raise JudgeFailed(f"the judge {self.name} gives no verdict: {verdict.reason}")
        return verdict

    async def self_test(self) -> None:
        """Ask about a known duplicate and a known difference; raise if either verdict is wrong or missing."""
        for new, existing, expected in KNOWN:
            if await self.duplicate(new, existing) is not expected:
                kind = "a known duplicate" if expected else "two sentences that differ"
                raise JudgeFailed(f"the judge {self.name} misjudges {kind} ({new!r}, {existing!r}); use another model.")

    def _verdict(self, reply: Reply) -> bool | Flawed:
        verdict = read_call(reply, "verdict", _Verdict)
        return verdict if isinstance(verdict, Flawed) else verdict.duplicate
