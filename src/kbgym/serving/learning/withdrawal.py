"""Withdrawal: an admitted document that costs answers is withdrawn, on evidence that comes after its admission.

When a question that was answered wrong had opened documents agents wrote, it is asked again without each of them. What
is won that way is what the document cost. It is withdrawn once it has cost a whole answer, and more than it had a part
in giving right. The tally is kept by this process alone; golds come from people, as at the gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kbgym.gym.actions import Deleted, Read
from kbgym.gym.environment import Environment
from kbgym.gym.policy import Turn
from kbgym.store import Store
from kbgym.trace.live import LiveStore
from kbgym.training.asking import QAPair
from kbgym.training.gate import Gate

_MOST = 4  # documents doubted at a time: each costs a reader's pass


class Withdrawals:
    """What documents cost, and how often they were part of a right answer."""

    def __init__(self) -> None:
        self._cost: Counter[str] = Counter()
        self._right: Counter[str] = Counter()

    async def costly(
        self, live: LiveStore, gate: Gate, asking: QAPair, turns: Sequence[Turn], f1: float
    ) -> list[tuple[str, float]]:
        """Take in one graded question; gives the documents to withdraw, with what each has cost."""
        opened = opened_authored(turns, live.store)
        if f1 >= 1.0:
            self._right.update(opened)
            return []
        if not opened:
            return []
        async with live.looking():
            base = live.snapshot()
        score = (await gate.ask(asking, base.environment())).f1
        found = []
        for id in opened[:_MOST]:
            won = (await gate.ask(asking, await _lacking(live, id))).f1 - score
            if won > 0:
                self._cost[id] += won  # type: ignore[assignment]
                if self._cost[id] >= max(1.0, self._right[id] + 1e-9):
                    found.append((id, float(self._cost[id])))
        return found


def opened_authored(turns: Sequence[Turn], store: Store) -> list[str]:
    """The documents a pass opened that agents wrote and that are still there."""
    opened = dict.fromkeys(turn.action.id for turn in turns if isinstance(turn.action, Read))
    return [id for id in opened if id in store and store[id].flag == "authored"]


async def _lacking(live: LiveStore, id: str) -> Environment:
    """The store as it is now, without one document."""
    async with live.looking():
        environment = Environment(live.store.copy(), live.overlay(), ranking=live.environment.ranking)
        if id in environment.store:
            environment.store.delete(id)
            environment.follow(Deleted(id))
    environment.store.freeze()
    return environment
