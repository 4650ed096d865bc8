"""Admission: the edits of a pass are on trial until the questions they can change were asked without and with them.

The panel is held-out questions and questions answered lately whose gold somebody gave. Of each the gate remembers what
its last pass saw and searched, so it knows which ones an edit can reach: those that saw a touched document, and those
whose searches would now find a new one. They are asked first, others make up the number. A pass is refused when the
mean falls by more than the margin below the best these questions ever scored here (so that many small losses cannot
add up), but only for a loss of its own. What no question can reach, nothing is known about: `evidence` asks for more
questions than the one the pass came from. Golds come from people; nothing the store said is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import numpy as np

from kbgym.actions import Found, Opened
from kbgym.episode import FORWARD_BUDGET, MEMORY, Transcript, play
from kbgym.grade import grade
from kbgym.policy import Agent, Forward
from kbgym.search.index import Hit
from kbgym.serve.owner import ServedEnvironment
from kbgym.serve.vectors import LiveEngine, Overlay

MARGIN = 0.01
_RECENT = 200


class Asking(msgspec.Struct, frozen=True):
    """A question whose gold is known."""

    id: str
    text: str
    golds: tuple[str, ...]
    unanswerable: bool = False


class Admission(msgspec.Struct, frozen=True):
    """What the gate found: mean F1 without and with the edits, and the sample's best so far."""

    admitted: bool
    asked: int
    reached: int
    before: float = 0.0
    after: float = 0.0
    best: float = 0.0
    reason: str = ""


class _Path(msgspec.Struct):
    """What a question's last pass saw, and each search with the score a new document must reach to be on its page."""

    seen: set[str]
    queries: list[tuple[str, float]]


class _Listening(Overlay):
    """An engine that remembers what was searched for."""

    def __init__(self, engine: LiveEngine | Overlay) -> None:
        self._engine = engine
        self.embedding = engine.embedding
        self.heard: list[tuple[str, float]] = []

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        hits = self._engine.search(query, offset, limit)
        self.heard.append((query, hits[-1][1] if len(hits) == limit else -1.0))
        return hits


class Gate:
    """A panel of questions and what each scored; up to `n` are asked about every pass that changes something."""

    def __init__(
        self,
        n: int,
        held_out: Sequence[Asking],
        reader: Agent,
        margin: float = MARGIN,
        evidence: int = 0,
        seed: int = 0,
    ) -> None:
        self.n, self.margin, self.evidence = n, margin, evidence
        self._held_out = {asking.id: asking for asking in held_out}
        self._recent: dict[str, Asking] = {}
        self._reader = reader
        self._seed = seed
        self._best: dict[str, float] = {}
        self._paths: dict[str, _Path] = {}

    def answered(self, asking: Asking) -> None:
        """A question was answered and its gold given: it may be asked again."""
        self._recent.pop(asking.id, None)
        self._recent[asking.id] = asking
        if len(self._recent) > _RECENT:
            oldest = next(iter(self._recent))
            del self._recent[oldest]
            if oldest not in self._held_out:
                self._best.pop(oldest, None)
                self._paths.pop(oldest, None)

    def sample(
        self, touched: set[str], new: Sequence[str], environment: ServedEnvironment, number: int
    ) -> tuple[list[Asking], int]:
        """Questions the edits can reach, then others, each in an order of this pass's own; and how many they reach."""
        askings = list({**self._held_out, **self._recent}.values())
        Random(f"{self._seed}:gate:{number}").shuffle(askings)
        reached = {asking.id for asking in askings if self._reached(asking, touched, new, environment)}
        askings.sort(key=lambda asking: asking.id not in reached)
        return askings[: self.n], len(reached)

    def _reached(self, asking: Asking, touched: set[str], new: Sequence[str], environment: ServedEnvironment) -> bool:
        path = self._paths.get(asking.id)
        if path is None or not touched.isdisjoint(path.seen):
            return True
        if not new or not path.queries:
            return False
        embedding = environment.embedding
        queries = np.stack([embedding(query) for query, _ in path.queries])
        least = np.array([score for _, score in path.queries], dtype=np.float32)
        texts = np.stack([embedding(text) for text in new])
        return bool((queries @ texts.T >= least[:, None] - 1e-5).any())

    async def judge(
        self, before: ServedEnvironment, after: ServedEnvironment, touched: set[str], number: int
    ) -> Admission:
        """Ask the sample on the store without and with the edits."""
        for asking in (*self._held_out.values(), *self._recent.values()):
            if asking.id not in self._paths:
                self._best[asking.id] = await self._score(asking, before)
        new = [after.store[id].text for id in sorted(touched) if id in after.store]
        await after.embedding.prepare(new)
        await after.embedding.prepare({query for path in self._paths.values() for query, _ in path.queries})
        sample, reached = self.sample(touched, new, after, number)
        if reached < self.evidence:
            return Admission(False, 0, reached, reason=f"only {reached} questions could tell what it does")
        if not sample:
            return Admission(True, 0, 0, reason="there is no question to ask yet")
        befores = [await self._score(asking, before) for asking in sample]
        kept = {asking.id: self._paths[asking.id] for asking in sample}
        scores = [await self._score(asking, after) for asking in sample]
        bests = [max(self._best.get(asking.id, 0.0), f1) for asking, f1 in zip(sample, befores, strict=True)]
        was, now, best = (sum(values) / len(sample) for values in (befores, scores, bests))
        admitted = now >= min(was, best - self.margin) - 1e-9
        reason = ""
        if admitted:
            for asking, f1, high in zip(sample, scores, bests, strict=True):
                self._best[asking.id] = max(f1, high)
        else:
            self._paths.update(kept)
            worst = min(zip(scores, befores, sample, strict=True), key=lambda row: row[0] - row[1])
            reason = f"F1 of {len(sample)} questions would fall from {was:.3f} to {now:.3f} (at best {best:.3f}): "
            reason += f"{worst[2].id} from {worst[1]:.2f} to {worst[0]:.2f}"
        return Admission(admitted, len(sample), reached, round(was, 6), round(now, 6), round(best, 6), reason)

    async def _score(self, asking: Asking, environment: ServedEnvironment) -> float:
        engine = _Listening(environment.served)
        listening = ServedEnvironment(environment.store, engine)
        passed = await play(self._reader(), listening, "reader", Forward(asking.text), FORWARD_BUDGET, MEMORY)
        self._paths[asking.id] = _Path(_seen(passed), engine.heard)
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
