"""Agents that share an event loop with clients: between two actions of a pass everybody else is seen to.

A pass of rules never waits for anything, so that a whole pass would be one step of the loop, and whoever searches in
the meantime would wait for all of it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kbgym.actions import Action
from kbgym.policy import Agent, Policy, View


class _BesideOthers:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def usage(self) -> Any:
        return getattr(self._policy, "usage", None)

    async def act(self, view: View) -> Action:
        await asyncio.sleep(0)
        return await self._policy.act(view)


def beside_others(agent: Agent) -> Agent:
    """The agent, whose policies wait a round of the loop before every action."""
    return lambda: _BesideOthers(agent())
