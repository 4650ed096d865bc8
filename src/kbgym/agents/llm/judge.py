"""A language model as the judge of near-duplicates, behind the same seam as the offline rule.

A judge that does not answer stops the run: to take an empty reply for "no duplicate" would switch the guard off. It is
tested on a known duplicate and a known difference before the first write.
"""

from __future__ import annotations

import msgspec

from kbgym.agents.llm.asking import Asker, Flawed, read_call
from kbgym.agents.llm.connect import Models, described
from kbgym.agents.llm.prompting import as_data, prompt, prompt_hash
from kbgym.agents.llm.retry import TooLong
from kbgym.agents.llm.values import Message, Reply, tool
from kbgym.errors import Failed

TRIES = 3
# (new, existing, duplicate?): what the self-test asks.
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
    """The judge cannot be relied on; the message says how."""


class LLMJudge(Asker):
    """Asks a model whether two sentences say the same."""

    def __init__(self, models: Models, name: str) -> None:
        super().__init__(*models.client(name, "judge"))

    @property
    def description(self) -> dict[str, object]:
        return described(self._client, self._settings, {"judge": prompt_hash("judge")})

    async def duplicate(self, candidate: str, existing: str) -> bool:
        asked = Message("user", f"New:\n{as_data(candidate)}\n\nAlready there:\n{as_data(existing)}")
        request = self._settings.request(prompt("judge"), (asked,), (_TOOL,))
        try:
            verdict = await self.until_valid(request, self._read, TRIES)
        except TooLong as error:
            raise JudgeFailed(f"the judge {self.name} cannot take the two sentences: {error}") from None
        if isinstance(verdict, Flawed):
            raise JudgeFailed(f"the judge {self.name} gives no verdict: {verdict.reason}.")
        return verdict

    async def self_test(self) -> None:
        """Ask about a known duplicate and a known difference; raise if either verdict is wrong or missing."""
        for new, existing, expected in KNOWN:
            if await self.duplicate(new, existing) is not expected:
                kind = "a known duplicate" if expected else "two sentences that differ"
                raise JudgeFailed(f"the judge {self.name} misjudges {kind} ({new!r}, {existing!r}); use another model.")

    def _read(self, reply: Reply) -> bool | Flawed:
        verdict = read_call(reply, "verdict", _Verdict)
        if not isinstance(verdict, Flawed):
            return verdict.duplicate
        if reply.finish == "length" or reply.completion >= self._settings.max_tokens:
            return Flawed(f"it used its {self._settings.max_tokens} tokens without answering")
        said = reply.text.strip() or " ".join(call.name for call in reply.calls)
        return Flawed(f"it said {said[:100]!r}" if said else "its reply was empty")
