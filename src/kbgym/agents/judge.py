"""A language model as the judge of near-duplicates, behind the same seam as the offline rule.

A judge that does not answer stops the run: an empty verdict read as "no duplicate" is a guard that is not there. It is
tried on a known duplicate and a known difference before the first write.
"""

from __future__ import annotations

import msgspec

from kbgym.agents.prompting import as_data, prompt, prompt_hash
from kbgym.canonical import decode
from kbgym.errors import Failed
from kbgym.llm.client import Client
from kbgym.llm.connect import Models, Settings, described
from kbgym.llm.errors import TooLong
from kbgym.llm.values import Message, Reply, Request, Usage

TRIES = 3
# (new, existing, duplicate?): what the self-test asks.
KNOWN = (
    ("Residents of the city of Wexmoor.", "People who live in the city of Wexmoor.", True),
    ("Anna Lindqvist is a child of Tomas Berg.", "Tomas Berg is a child of Anna Lindqvist.", False),
)

_TOOL = {
    "type": "function",
    "function": {
        "name": "verdict",
        "description": "Say whether the new sentence is a duplicate of the existing one.",
        "parameters": {
            "type": "object",
            "properties": {"duplicate": {"type": "boolean", "description": "True if both say the same."}},
            "required": ["duplicate"],
            "additionalProperties": False,
        },
    },
}


class _Verdict(msgspec.Struct, frozen=True):
    duplicate: bool


class JudgeFailed(Failed):
    """The judge cannot be relied on; the message says how."""


class LLMJudge:
    """Asks a model whether two sentences say the same."""

    def __init__(self, models: Models, name: str) -> None:
        self._client: Client
        self._settings: Settings
        self._client, self._settings = models.client(name, "judge")
        self.usage = Usage()

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def description(self) -> dict[str, object]:
        return described(self._client, self._settings, {"judge": prompt_hash("judge")})

    async def duplicate(self, candidate: str, existing: str) -> bool:
        request = Request(
            model=self._settings.model,
            system=prompt("judge"),
            messages=(Message("user", f"New:\n{as_data(candidate)}\n\nAlready there:\n{as_data(existing)}"),),
            tools=(_TOOL,),
            max_tokens=self._settings.max_tokens,
            temperature=self._settings.temperature,
            effort=self._settings.effort,
        )
        reply = Reply()
        for _ in range(TRIES):
            try:
                reply = await self._client.ask(request)
            except TooLong as error:
                raise JudgeFailed(f"the judge {self.name} cannot take the two sentences: {error}") from None
            self.usage += Usage.of(reply)
            if (verdict := _read(reply)) is not None:
                return verdict
            self.usage += Usage(malformed=1)
            self._client.count_malformed()
        raise JudgeFailed(f"the judge {self.name} gives no verdict: {self._silence(reply)}.")

    async def self_test(self) -> None:
        """Ask about a known duplicate and a known difference; raise if either verdict is wrong or missing."""
        for new, existing, expected in KNOWN:
            if await self.duplicate(new, existing) is not expected:
                kind = "a known duplicate" if expected else "two sentences that differ"
                raise JudgeFailed(f"the judge {self.name} misjudges {kind} ({new!r}, {existing!r}); use another model.")

    def _silence(self, reply: Reply) -> str:
        if reply.finish == "length" or reply.completion >= self._settings.max_tokens:
            return f"it used its {self._settings.max_tokens} tokens without answering"
        said = reply.text.strip() or " ".join(call.name for call in reply.calls)
        return f"it said {said[:100]!r}" if said else "its reply was empty"


def _read(reply: Reply) -> bool | None:
    if len(reply.calls) != 1 or reply.calls[0].name != "verdict":
        return None
    try:
        return decode(reply.calls[0].arguments, _Verdict).duplicate
    except msgspec.DecodeError:
        return None
