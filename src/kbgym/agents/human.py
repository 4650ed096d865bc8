"""Human players: a person sees exactly what a model would be sent, and chooses one call.

The agent `hand` plays at the terminal; `conversation.py` does the same over MCP. Transcripts have the same form as any
agent's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from kbgym.agents.llm.client import Flawed
from kbgym.agents.llm.policy import read
from kbgym.agents.llm.prompting import Skill, messages, tail
from kbgym.agents.llm.values import Call, Reply
from kbgym.errors import BadInput
from kbgym.gym.actions import Action
from kbgym.gym.policy import View
from kbgym.gym.tools import tools_of

HAND = "hand"


class Front(Protocol):
    """The user interface of one pass: show a view, or the error of the last reply, and return the next reply."""

    async def ask(self, view: View, skill: Skill, error: str) -> Reply: ...


class HandAgent:
    """Make a policy for every pass; passes are played one after the other."""

    at_once = 1

    def __init__(self, skill: Skill, front: Callable[[], Front]) -> None:
        self._skill, self._front = skill, front

    def __call__(self) -> HandPolicy:
        return HandPolicy(self._skill, self._front())


class HandPolicy:
    """One pass played by a person or by a client over MCP."""

    def __init__(self, skill: Skill, front: Front) -> None:
        self._skill, self._front = skill, front

    async def act(self, view: View) -> Action:
        error = ""
        while True:
            action = read(await self._front.ask(view, self._skill, error), view.role)
            if not isinstance(action, Flawed):
                return action
            error = action.reason


def refuse_hand(names: Iterable[str]) -> None:
    """Raise `BadInput` if a person plays where exams are compared: a person remembers earlier questions."""
    if HAND in names:
        raise BadInput("hand remembers earlier questions, so its exams cannot be compared; use `kbgym exam`.")


class AtTerminal:
    """A person at the terminal."""

    async def ask(self, view: View, skill: Skill, error: str) -> Reply:
        if error:
            print(f"That was no action: {error}")
        else:
            print("", messages(view)[-1].text, sep="\n")
        print(f"{tail(view.remaining)} Tools: {', '.join(tool.name for tool in tools_of(view.role))}")
        try:
            line = await asyncio.to_thread(input, 'tool {"argument": ...} > ')
        except EOFError:
            raise BadInput("standard input ended before the pass was over.") from None
        name, _, arguments = line.strip().partition(" ")
        return Reply(calls=(Call(name, arguments or "{}", "hand"),))
