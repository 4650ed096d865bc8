"""A cache of a judge's verdicts, so that no writer waits for a model.

A verdict depends on two sentences only, so the judge is asked before the write lock is taken. Neighbours that appeared
in between are judged in further rounds, and finally under the lock. The trace keeps the verdicts that were used.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachetools import LRUCache

from kbgym.gym.actions import Action
from kbgym.gym.environment import Environment
from kbgym.store.guard import Judge

_ROUNDS = 3
_MAX_VERDICTS = 1_000


class JudgeCache:
    """A caching judge in front of a slow one."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._verdicts: LRUCache[tuple[str, str], bool] = LRUCache(_MAX_VERDICTS)
        self._asked = 0

    @property
    def name(self) -> str:
        return self._judge.name

    async def duplicate(self, candidate: str, existing: str) -> bool:
        pair = (candidate, existing)
        if (same := self._verdicts.get(pair)) is None:
            self._asked += 1
            same = self._verdicts[pair] = await self._judge.duplicate(candidate, existing)
        return same

    async def prepare(self, actions: Sequence[Action], environment: Environment) -> None:
        """Ask about the sentences of actions in an environment with this judge, until a round has no new pairs."""
        for _ in range(_ROUNDS):
            asked = self._asked
            for action in actions:
                await environment.judged(action)
            if self._asked == asked:
                return
