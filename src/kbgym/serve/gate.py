"""Admission: the edits of a pass are on trial until a sample of questions, asked before and after, shows no harm.

The sample is drawn from held-out questions and from questions answered lately whose gold somebody gave. Those whose
last pass saw a document the edits touch come first: they are the ones an edit can hurt. The bar is the best a question
ever scored at this gate, so that many small losses cannot add up; but a pass is refused only for a loss of its own.
Golds come from people; nothing the store said is one. It knows nothing of how edits land.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from kbgym.actions import Found, Opened
from kbgym.episode import FORWARD_BUDGET, MEMORY, Transcript, play
from kbgym.grade import grade
from kbgym.policy import Agent, Forward
from kbgym.serve.owner import ServedEnvironment

MARGIN = 0.01
_RECENT = 200


class Asking(msgspec.Struct, frozen=True):
    """A question whose gold is known."""

    id: str
    text: str
    golds: tuple[str, ...]
    unanswerable: bool = False


class Admission(msgspec.Struct, frozen=True):
    """What the gate found: mean F1 without and with the edits, and `best`, what the sample scored at its best."""

    admitted: bool
    asked: int
    before: float
    after: float
    best: float
    reason: str = ""


class Gate:
    """A panel of questions and what each scored; `n` are asked about every pass that edits."""

    def __init__(
        self, n: int, held_out: Sequence[Asking], reader: Agent, margin: float = MARGIN, seed: int = 0
    ) -> None:
        self.n, self.margin = n, margin
        self._held_out = {asking.id: asking for asking in held_out}
        self._recent: dict[str, Asking] = {}
        self._reader = reader
        self._seed = seed
        self._best: dict[str, float] = {}
        self._saw: dict[str, set[str]] = {}

    def answered(self, asking: Asking) -> None:
        """A question was answered and its gold given: it may be asked again."""
        self._recent.pop(asking.id, None)
        self._recent[asking.id] = asking
        if len(self._recent) > _RECENT:
            oldest = next(iter(self._recent))
            del self._recent[oldest]
            if oldest not in self._held_out:
                self._best.pop(oldest, None)
                self._saw.pop(oldest, None)

    def sample(self, touched: set[str], number: int) -> list[Asking]:
        """Questions that saw a touched document, then others: half from each pool, newest answered first kept in."""
        dice = Random(f"{self._seed}:gate:{number}")
        pools = []
        for pool in (self._held_out, self._recent):
            askings = list(pool.values())
            dice.shuffle(askings)
            askings.sort(key=lambda asking: touched.isdisjoint(self._saw.get(asking.id, ())))
            pools.append(askings)
        held, recent = pools
        share = max(self.n - len(recent), self.n // 2)
        chosen = {asking.id: asking for asking in (*held[:share], *recent)}
        chosen |= {asking.id: asking for asking in held[share:]}
        return list(chosen.values())[: self.n]

    async def judge(
        self, before: ServedEnvironment, after: ServedEnvironment, touched: set[str], number: int
    ) -> Admission:
        """Ask the sample on the store without and with the edits."""
        sample = self.sample(touched, number)
        if not sample:
            return Admission(True, 0, 0.0, 0.0, 0.0, "there is no question to ask yet")
        befores = [await self._score(asking, before) for asking in sample]
        scores = [await self._score(asking, after) for asking in sample]
        bests = [max(self._best.get(asking.id, 0.0), f1) for asking, f1 in zip(sample, befores, strict=True)]
        was, now, best = (sum(values) / len(sample) for values in (befores, scores, bests))
        admitted = now >= min(was, best - self.margin) - 1e-9
        reason = ""
        if admitted:
            for asking, f1, high in zip(sample, scores, bests, strict=True):
                self._best[asking.id] = max(f1, high)
        else:
            worst = min(zip(scores, befores, sample, strict=True), key=lambda row: row[0] - row[1])
            reason = f"F1 of {len(sample)} questions would fall from {was:.3f} to {now:.3f} (at best {best:.3f}): "
            reason += f"{worst[2].id} from {worst[1]:.2f} to {worst[0]:.2f}"
        return Admission(admitted, len(sample), round(was, 6), round(now, 6), round(best, 6), reason)

    async def _score(self, asking: Asking, environment: ServedEnvironment) -> float:
        passed = await play(self._reader(), environment, "reader", Forward(asking.text), FORWARD_BUDGET, MEMORY)
        self._saw[asking.id] = _seen(passed)
        if passed.outcome != "answered":
            return 0.0
        return grade(passed.answer or "", asking.golds, asking.unanswerable).f1


def _seen(transcript: Transcript) -> set[str]:
    seen: set[str] = set()
    for step in transcript.steps:
        match step.result:
            case Found(ids):
                seen.update(ids)
            case Opened(id, links):
                seen.update((id, *links))
    return seen
