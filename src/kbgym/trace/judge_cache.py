"""A cache of a judge's verdicts, so that no turn is held up while a model thinks.

What a judge decides depends on two sentences and nothing else, so it may be asked before the turn is taken and its
verdict used in it. Neighbours that turned up in between were not asked about: then the caller asks again, a few times,
and at last inside the turn. The latest verdicts are kept here; the trace keeps those that counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cachetools import LRUCache

from kbgym.gym.actions import Action, Add, Edit
from kbgym.gym.environment import Environment
from kbgym.store.guard import NEIGHBOURS, THRESHOLD, Judge, verdict

_TRIES = 3
_MOST = 1_000


class JudgeCache:
    """A judge in front of a slow one."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._decided: LRUCache[tuple[str, str], bool] = LRUCache(_MOST)

    @property
    def name(self) -> str:
        return self._judge.name

    async def duplicate(self, candidate: str, existing: str) -> bool:
        pair = (candidate, existing)
        if (same := self._decided.get(pair)) is None:
            same = self._decided[pair] = await self._judge.duplicate(candidate, existing)
        return same

    async def prepare(self, actions: Sequence[Action], environment: Environment) -> None:
        """Decide what can be decided now.

        Others may add a neighbour meanwhile, so the judge is asked again, but not for ever: the rest is asked in turn.
        """
        for _ in range(_TRIES):
            undecided = [action for action in actions if not self.is_decided(action, environment)]
            for action in undecided:
                await self.consider(action, environment)
            if not undecided:
                return

    async def consider(self, action: Action, environment: Environment) -> None:
        """Decide now about what the action's sentence is near to."""
        for text, exclude in _sentences(action, environment):
            near = environment.engine.nearest(text, NEIGHBOURS, exclude)
            await verdict(text, near, environment.text_of, self)

    def is_decided(self, action: Action, environment: Environment) -> bool:
        """Whether the action can be carried out without asking anybody."""
        for text, exclude in _sentences(action, environment):
            for id, similarity in environment.engine.nearest(text, NEIGHBOURS, exclude):
                if similarity > THRESHOLD:
                    same = self._decided.get((text, environment.text_of(id)))
                    if same is None:
                        return False
                    if same:
                        break
        return True


def _sentences(action: Action, environment: Environment) -> Collection[tuple[str, tuple[str, ...]]]:
    """What the judge would be asked about: a sentence the store has word for word needs no judge."""
    match action:
        case Add(text) if environment.store.same_text(text) is None:
            return ((text, ()),)
        case Edit(id, text) if environment.store.same_text(text, other_than=id) is None:
            return ((text, (id,)),)
    return ()
