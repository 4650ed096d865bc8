"""Playing a plan written as a generator."""

from __future__ import annotations

from collections.abc import Callable, Generator

from kbgym.gym.actions import Action
from kbgym.gym.policy import View

# Yields actions, is sent observations, and ends by returning its last action.
Plan = Generator[Action, str, Action]


class PlannedPolicy:
    """A policy whose whole pass is one generator; `last_word` is asked instead when one action is left."""

    def __init__(self, start: Callable[[View], Plan], last_word: Callable[[View], Action]) -> None:
        self._start = start
        self._last_word = last_word
        self._plan: Plan | None = None

    async def act(self, view: View) -> Action:
        if view.remaining <= 1:
            return self._last_word(view)
        try:
            if self._plan is None:
                self._plan = self._start(view)
                return next(self._plan)
            return self._plan.send(view.history[-1].observation)
        except StopIteration as end:
            final: Action = end.value
            return final
