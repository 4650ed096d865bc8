"""Agents that share an event loop with clients: between two actions of a pass everybody else is seen to.

A pass of rules never waits for anything, so that a whole pass would be one step of the loop, and whoever searches in
the meantime would wait for all of it. Where a client asked for the pass, each of its actions waits for that client's
turn, or whoever asks long questions would get more of the server than whoever searches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from kbgym.gym.actions import Action
from kbgym.gym.policy import Agent, Policy, View

# What an action of a pass waits for; set for the requests of a client.
turn_before: ContextVar[Callable[[], Awaitable[object]] | None] = ContextVar("turn_before", default=None)


class _BesideOthers:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def usage(self) -> Any:
        return getattr(self._policy, "usage", None)

    async def act(self, view: View) -> Action:
        turn = turn_before.get()
        await (asyncio.sleep(0) if turn is None else turn())
        return await self._policy.act(view)


def beside_others(agent: Agent) -> Agent:
    """The agent, whose policies let others go first before every action."""
    return lambda: _BesideOthers(agent())
