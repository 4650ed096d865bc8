"""The connected agent as the curator: a lesson is the result of `teach`, and its edits are a pass like any other.

While a lesson is open, search, read and the editing tools play it: on a copy, within the budget, judged by the gate.
Lessons come one at a time; one that was left open when the client went comes first the next time.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kbgym.agents.conversation import NEXT, Conversation
from kbgym.mcp import ToolResult
from kbgym.serving.learning.learner import Online
from kbgym.serving.lessons import Before

_LOOK_AGAIN = 0.02  # seconds


class CallerCurator:
    """Whose lessons the client works on."""

    def __init__(self) -> None:
        self._conversation = Conversation(("curator",))
        self.agent = self._conversation.agent

    @property
    def plays(self) -> bool:
        """Whether a lesson has been shown and is not over."""
        return self._conversation.plays

    async def lesson(self, online: Online) -> str:
        """The lesson at hand, as soon as it is there."""
        if self.plays:
            return "It is kept, and comes after the lesson you have; `done` ends that."
        return (await self.call(online, NEXT.name, {})).text

    async def call(self, online: Online, name: str, arguments: dict[str, Any]) -> ToolResult:
        """A call of the lesson at hand; the one that ends it waits for what the gate says."""
        lesson, before = online.questions.next_lesson() or "", Before.of(online.live)
        calling = asyncio.create_task(self._conversation.call(name, arguments))
        while not calling.done() and online.questions.to_learn:
            await asyncio.wait({calling}, timeout=_LOOK_AGAIN)
        if not calling.done():
            self._conversation.pause(said := await before.what_came(online, lesson))
            if name == NEXT.name:  # it was over before it could be shown
                calling.cancel()
                return ToolResult(said)
        return await calling
