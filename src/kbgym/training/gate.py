"""The gate: the edits of a pass are on trial until they have done no harm to a question, and have a reason each.

Training and serving use the same trial (`trial.py`) and the same verdict; what differs is who judges.

`Gate` judges a served store. Its panel is held-out questions and questions answered lately whose gold somebody gave. Of
each it remembers what its last pass saw and searched, so it knows which ones an edit can reach: those that saw a
touched document, and those whose searches would now find a new one. They are asked first, others make up the number. A
pass is refused when the mean falls by more than the margin below the best these questions ever scored here (so that
many small losses cannot add up), but only for a loss of its own. Most edits reach few questions or none, so doing no
harm to these says little. Every changed document therefore needs a reason: its own words (`reasons.py`), or a question
that saw it and is answered better with the change, and none worse. New documents without one are withheld, and the rest
of the pass is judged again; other changes without one refuse the pass. `evidence` asks for more questions than the one
the pass came from.

`GateQuestions` judges a training: some of the eval split, drawn anew for every lesson, and the questions answered last,
asked on the store without and with the edits. It remembers nothing, so training that is interrupted comes to the same
verdicts; the test splits are never touched. Golds come from people or the world; nothing the store said is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Protocol

import msgspec
import numpy as np

from kbgym.gym.actions import Found, Opened, shown_by
from kbgym.gym.environment import Environment
from kbgym.gym.episode import FORWARD_BUDGET, MEMORY, Transcript
from kbgym.gym.policy import Agent, Backward
from kbgym.search.index import Hit
from kbgym.search.live import Overlay
from kbgym.trace.events import Noted, Phase
from kbgym.trace.live import LiveStore
from kbgym.training.asking import QAPair, ask, qa_pairs
from kbgym.training.lessons import Lesson
from kbgym.training.loop import Curate
from kbgym.training.reasons import Words
from kbgym.training.session import Session
from kbgym.training.trial import Trial, land, refuse, trial, without

Verdict = dict[str, Any] | None  # as the trace keeps it; None if there was nothing to judge

MARGIN = 0.01
_RECENT = 200


class Admission(msgspec.Struct, frozen=True):
    """What the gate found: mean F1 without and with the edits, and the sample's best so far.

    `withheld` are new documents nothing speaks for; without them the pass may be judged again.
    """

    admitted: bool
    asked: int
    reached: int
    before: float = 0.0
    after: float = 0.0
    best: float = 0.0
    reason: str = ""
    withheld: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True):
    """A question's pass: on which store, its score, its length, what it saw, and each search with the score a new
    document must reach to be on its page."""

    store: str
    f1: float
    actions: int
    seen: frozenset[str]
    queries: tuple[tuple[str, float], ...]


class _Noting:
    """A search that notes what was searched for, and the score of the last on each page."""

    def __init__(self, engine: Overlay) -> None:
        self._engine, self.trained = engine, engine.trained
        self.noted: list[tuple[str, float]] = []

    async def prepare(self, texts: Iterable[str]) -> None:
        await self._engine.prepare(texts)

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        hits = self._engine.search(query, offset, limit)
        # Only a cosine can be compared with what a new text would score; any other page may change.
        told = len(hits) == limit and self._engine.kind == "vectors" and self.trained is None
        self.noted.append((query, hits[-1][1] if told else -1.0))
        return hits

    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[Hit]:
        return self._engine.nearest(text, limit, exclude)

    def set_apart(self, texts: Sequence[tuple[str, str]]) -> None:
        raise NotImplementedError("a reader changes nothing")

    def put(self, id: str, text: str) -> None:
        raise NotImplementedError("a reader changes nothing")

    def remove(self, id: str) -> None:
        raise NotImplementedError("a reader changes nothing")


class Judging(Protocol):
    """Decides whether the edits of a pass may stay."""

    async def judge(self, before: Environment, after: Environment, touched: set[str], number: int) -> Admission: ...


async def judged(gate: Judging | None, made: Trial, number: int) -> tuple[Trial, Verdict]:
    """The part of a trial that may land, and the verdict as the trace keeps it: none where nothing was to be judged."""
    if gate is None or not made.changed:
        return made, None
    before = made.base.environment()
    found = await gate.judge(before, made.environment, made.touched, number)
    withheld = [made.environment.store[id].text for id in found.withheld]
    if withheld and not made.touched <= set(found.withheld):
        made = without(made, found.withheld)
        rest = await gate.judge(before, made.environment, made.touched, number)
        found = msgspec.structs.replace(rest, reason=rest.reason or found.reason)
    data: dict[str, Any] = msgspec.to_builtins(found)
    del data["admitted"]
    return made, {"verdict": "admitted" if found.admitted else "quarantined", **data, "withheld": withheld}


async def settle(live: LiveStore, number: int, phase: Phase, question: str, made: Trial, verdict: Verdict) -> bool:
    """Apply a judged pass to the live store or record it as refused; return whether it was applied.

    The caller holds the turn.
    """
    applied = verdict is None or verdict["verdict"] != "quarantined"
    if applied:
        await land(live, number, phase, made)
    else:
        refuse(live, number, phase, made)
    if verdict is not None:
        live.record(Noted(number, "gate", {"question": question, **verdict}))
    return applied


def gated_curate(gate: GateQuestions) -> Curate:
    """Return a `curate` that plays the backward pass on a copy and applies it only if the gate admits it."""

    async def curate(session: Session, lesson: Lesson, curator: Agent, task: Backward) -> Transcript:
        live, settings, number = session.live, session.settings, session.state(lesson).iteration
        made = await trial(live, curator, task, settings.backward_budget, settings.memory)
        gate.answered = qa_pairs(session.answered(lesson))
        made, verdict = await judged(gate, made, number)
        async with live.turn():
            await settle(live, number, "backward", lesson.question.id, made, verdict)
        return made.transcript

    return curate


class GateQuestions:
    """Judges the lessons of a training: mean F1 of a panel must not fall."""

    def __init__(self, n: int, held_out: Sequence[QAPair], reader: Agent, seed: int, budget: int, memory: int) -> None:
        self._n, self._held_out, self._reader, self._seed = n, tuple(held_out), reader, seed
        self._budget, self._memory = budget, memory
        self.answered: list[QAPair] = []  # the questions answered so far, in order

    def panel(self, number: int) -> list[QAPair]:
        """As many held-out questions as the setting says, and as many of those answered last."""
        draw = Random(f"{self._seed}:admission:{number}")
        held_out = draw.sample(self._held_out, min(self._n, len(self._held_out)))
        recent = list(dict.fromkeys(reversed(self.answered)))[: self._n]
        return [*held_out, *(asking for asking in recent if asking not in held_out)]

    async def judge(self, before: Environment, after: Environment, touched: set[str], number: int) -> Admission:
        panel = self.panel(number)
        without, with_edits = [await self._mean(panel, environment) for environment in (before, after)]
        return Admission(with_edits >= without - 1e-9, len(panel), 0, round(without, 6), round(with_edits, 6))

    async def _mean(self, panel: Sequence[QAPair], environment: Environment) -> float:
        grades = [(await ask(one, environment, self._reader, self._budget, self._memory))[1] for one in panel]
        return sum(grade.f1 for grade in grades) / max(1, len(grades))


class Gate:
    """A panel of questions and what each scored; up to `n` are asked about every pass that changes something."""

    def __init__(
        self,
        n: int,
        held_out: Sequence[QAPair],
        reader: Agent,
        margin: float = MARGIN,
        evidence: int = 0,
        seed: int = 0,
        budget: int = FORWARD_BUDGET,
        memory: int = MEMORY,
    ) -> None:
        self.n, self.margin, self.evidence = n, margin, evidence
        self._held_out = {asking.id: asking for asking in held_out}
        self._recent: dict[str, QAPair] = {}
        self._reader = reader
        self._seed = seed
        self._budget, self._memory = budget, memory
        self._best: dict[str, float] = {}
        self._paths: dict[str, Seen] = {}
        self._words = Words()

    def answered(self, asking: QAPair) -> None:
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
        self, touched: set[str], new: Sequence[str], environment: Environment, number: int
    ) -> tuple[list[QAPair], int]:
        """Questions the edits can reach, then others, each in an order of this pass's own; and how many they reach."""
        qa_pairs = list({**self._held_out, **self._recent}.values())
        Random(f"{self._seed}:gate:{number}").shuffle(qa_pairs)
        reached = {asking.id for asking in qa_pairs if self._reached(asking, touched, new, environment)}
        qa_pairs.sort(key=lambda asking: asking.id not in reached)
        return qa_pairs[: self.n], len(reached)

    def _reached(self, asking: QAPair, touched: set[str], new: Sequence[str], environment: Environment) -> bool:
        path = self._paths.get(asking.id)
        if path is None or not touched.isdisjoint(path.seen):
            return True
        if not new or not path.queries:
            return False
        assert isinstance(environment.engine, Overlay)
        embedding = environment.engine.embedding
        queries = np.stack([embedding(query) for query, _ in path.queries])
        least = np.array([score for _, score in path.queries], dtype=np.float32)
        texts = np.stack([embedding(text) for text in new])
        return bool((queries @ texts.T >= least[:, None] - 1e-5).any())

    async def judge(self, before: Environment, after: Environment, touched: set[str], number: int) -> Admission:
        """Ask the sample on the store without and with the edits."""
        for asking in (*self._held_out.values(), *self._recent.values()):
            if asking.id not in self._paths:
                self._paths[asking.id] = path = await self.ask(asking, before)
                self._best[asking.id] = path.f1
        new = [after.store[id].text for id in sorted(touched) if id in after.store]
        await after.engine.prepare(new)
        await after.engine.prepare({query for path in self._paths.values() for query, _ in path.queries})
        sample, reached = self.sample(touched, new, after, number)
        if reached < self.evidence:
            return Admission(False, 0, reached, reason=f"only {reached} questions could tell what it does")
        befores = [await self._asked_before(asking, before) for asking in sample]
        afters = [await self.ask(asking, after) for asking in sample]
        found = self._weigh(sample, befores, afters, reached)
        if silent := self._without_reason(before, after, touched, befores, afters):
            found = _withholding(found, silent, before, after)
        for asking, path, now in zip(sample, befores, afters, strict=True):
            best = max(self._best.get(asking.id, 0.0), path.f1)
            self._best[asking.id] = max(best, now.f1) if found.admitted else best
            self._paths[asking.id] = now if found.admitted else path
        return found

    async def _asked_before(self, asking: QAPair, before: Environment) -> Seen:
        """Asked on the store without the edits, unless that is the very store it was last asked on."""
        known = self._paths[asking.id]
        return known if known.store == before.store.fingerprint else await self.ask(asking, before)

    def _weigh(
        self, sample: Sequence[QAPair], befores: Sequence[Seen], afters: Sequence[Seen], reached: int
    ) -> Admission:
        """Whether the sample's mean falls."""
        if not sample:
            return Admission(True, 0, 0, reason="there is no question to ask yet")
        bests = [max(self._best.get(asking.id, 0.0), path.f1) for asking, path in zip(sample, befores, strict=True)]
        scores = [path.f1 for path in befores], [path.f1 for path in afters], bests
        was, now, best = (sum(values) / len(sample) for values in scores)
        admitted, reason = now >= min(was, best - self.margin) - 1e-9, ""
        if not admitted:
            worst = min(zip(afters, befores, sample, strict=True), key=lambda row: row[0].f1 - row[1].f1)
            reason = f"F1 of {len(sample)} questions would fall from {was:.3f} to {now:.3f} (at best {best:.3f}): "
            reason += f"{worst[2].id} from {worst[1].f1:.2f} to {worst[0].f1:.2f}"
        return Admission(admitted, len(sample), reached, round(was, 6), round(now, 6), round(best, 6), reason)

    def _without_reason(
        self,
        before: Environment,
        after: Environment,
        touched: set[str],
        befores: Sequence[Seen],
        afters: Sequence[Seen],
    ) -> list[str]:
        """The documents for whose change neither their words speak nor a question that is answered better with it."""
        self._words.follow(before.store)
        pairs = list(zip(befores, afters, strict=True))
        helped = [then.seen | now.seen for then, now in pairs if now.f1 > then.f1]
        hurt = [then.seen | now.seen for then, now in pairs if now.f1 < then.f1]
        return [
            id
            for id in self._words.unreasoned(before.store, after.store, touched)
            if not any(id in seen for seen in helped) or any(id in seen for seen in hurt)
        ]

    async def ask(self, asking: QAPair, environment: Environment) -> Seen:
        """One question on one state of the store."""
        assert isinstance(environment.engine, Overlay)
        engine = _Noting(environment.engine)
        noting = Environment(environment.store, engine, ranking=environment.ranking)
        passed, grade = await ask(asking, noting, self._reader, self._budget, self._memory)
        f1 = grade.f1
        return Seen(environment.store.fingerprint, f1, len(passed.steps), _seen(passed), tuple(engine.noted))


def _withholding(found: Admission, silent: list[str], before: Environment, after: Environment) -> Admission:
    """New documents nothing speaks for can be left out; what was done to others cannot be taken apart."""
    old = [id for id in silent if id in before.store]
    store = before.store if old else after.store
    first = (old or silent)[0]
    more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
    reason = f"nothing speaks for what was done to [{first}] {store[first].text!r}{more}"
    kept_out = () if old else tuple(silent)
    return msgspec.structs.replace(found, admitted=False, reason=found.reason or reason, withheld=kept_out)


def _seen(transcript: Transcript) -> frozenset[str]:
    seen: set[str] = set()
    for step in transcript.steps:
        match step.result:
            case Found() | Opened():
                seen.update(shown_by(step.result))
    return frozenset(seen)
