"""Wrap an agent so that it yields to other tasks of the event loop before every action.

A rule-based pass never awaits anything; without this, one pass would block every other client of the server.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kbgym.gym.actions import Action
from kbgym.gym.policy import Agent, Policy, View


class _Cooperative:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def usage(self) -> Any:
        return getattr(self._policy, "usage", None)

    async def act(self, view: View) -> Action:
        await asyncio.sleep(0)
        return await self._policy.act(view)


def cooperative(agent: Agent) -> Agent:
    """Return the agent with policies that yield to the event loop before every action."""
    return lambda: _Cooperative(agent())
