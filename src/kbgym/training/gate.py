"""The gate, which applies the edits of a pass only if they do no harm on average and help a question.

A panel of questions with known answers is asked on the store without and with the edits: held-out questions, redrawn
for each pass, and the questions answered last, including the pass's own. For each the gate measures the evidence on the
first page of results and, with a reader, its score. Edits are rejected if the mean of either falls, or if neither a
mean nor the pass's own question gains. The gate has no state that a replay needs, so interrupted training makes the
same decisions. The test splits are never asked. Training and serving use the same gate.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from random import Random
from statistics import fmean
from typing import Any

import msgspec

from kbgym.gym.actions import Found, Search, changed_in, shown_by
from kbgym.gym.environment import Environment
from kbgym.gym.episode import FORWARD_BUDGET, MEMORY, Transcript
from kbgym.gym.grading import Grade, normalise
from kbgym.gym.policy import Agent, Backward
from kbgym.store import Store
from kbgym.trace.events import Noted, Phase
from kbgym.trace.live import LiveStore
from kbgym.training.asking import QAPair, ask, qa_pairs
from kbgym.training.lessons import Lesson
from kbgym.training.loop import Curate
from kbgym.training.reasons import Words
from kbgym.training.session import Session
from kbgym.training.staged import StagedEdits, apply_edits, reject_edits, stage

_RECENT = 200
_EXACT = 1e-9


class GateDecision(msgspec.Struct, frozen=True):
    """Means over the panel without and with the edits. F1 is 0 for questions that were not asked of a reader."""

    admitted: bool
    asked: int
    evidence_before: float = 0.0
    evidence_after: float = 0.0
    before: float = 0.0
    after: float = 0.0
    reason: str = ""


class Measured(msgspec.Struct, frozen=True):
    """Measurements of a question on one state of the store: evidence on the first page, its learnt part, the score."""

    page: tuple[str, ...]
    evidence: float
    learnt: float
    f1: float = 0.0
    actions: int = 0

    def is_better_than(self, other: Measured, by_actions: bool) -> bool:
        sooner = by_actions and self.f1 == other.f1 == 1.0 and self.actions < other.actions
        return self.evidence > other.evidence or self.learnt > other.learnt or self.f1 > other.f1 or sooner


class Gate:
    """A gate that asks up to `n` held-out and `n` recent questions for each pass that changes the store.

    Args:
        reader: answers for F1; None measures evidence only.
    """

    def __init__(
        self,
        n: int,
        held_out: Sequence[QAPair],
        reader: Agent | None,
        seed: int = 0,
        budget: int = FORWARD_BUDGET,
        memory: int = MEMORY,
    ) -> None:
        self.n = n
        self._held_out = tuple(held_out)
        self._recent: dict[str, QAPair] = {}
        self._words = Words()
        self._reader, self._seed = reader, seed
        self._budget, self._memory = budget, memory

    def answered(self, question: QAPair) -> None:
        """Add a question with a known answer to the recent questions."""
        self._recent.pop(question.id, None)
        self._recent[question.id] = question
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]

    def panel(self, number: int) -> list[QAPair]:
        """Return the held-out questions drawn for this pass and the questions answered last."""
        draw = Random(f"{self._seed}:gate:{number}")
        held_out = draw.sample(self._held_out, min(self.n, len(self._held_out)))
        recent = list(reversed(self._recent.values()))[: self.n]
        return [*held_out, *(one for one in recent if one not in held_out)]

    async def judge(
        self, before: Environment, after: Environment, touched: Set[str], number: int, own: str = ""
    ) -> GateDecision:
        """Ask the panel on the store without and with the edits, which changed or added the documents `touched`.

        Fewer actions for a right answer count as a gain only if nothing was removed and the words of each new document
        justify its links, since a store that lost facts, or has a partial index, is read faster.

        Args:
            own: id of the question that the pass was played for.
        """
        added = not any(_lost(id, before.store, after.store) for id in touched)
        if added and self._reader is not None:
            self._words.follow(before.store)
            added = not any(self._words.unreasoned(before.store, after.store, set(touched)))
        panel, was, now = self.panel(number), [], []
        for question in panel:
            first, later = [await self._look(question, environment) for environment in (before, after)]
            # If edits can change only the first page, a reader that sees the same page gives the same answer.
            if self._reader is not None and not (after.ranking == "slot" and first.page == later.page):
                first, later = [await self._read(question, *seen) for seen in ((first, before), (later, after))]
            was.append(first)
            now.append(later)
        if not panel:
            return GateDecision(True, 0, reason="there is no question to ask yet")
        pairs = list(zip(panel, was, now, strict=True))
        shares = [round(fmean(one.evidence for one in some), 6) for some in (was, now)]
        scores = [round(fmean(one.f1 for one in some), 6) for some in (was, now)]
        reason = ""
        if shares[1] < shares[0] - _EXACT:
            reason = f"evidence on the first page would fall from {shares[0]:.3f} to {shares[1]:.3f}"
        elif scores[1] < scores[0] - _EXACT:
            lost = min(range(len(panel)), key=lambda at: now[at].f1 - was[at].f1)
            reason = f"F1 would fall from {scores[0]:.3f} to {scores[1]:.3f}, most for {panel[lost].id}"
        elif not (
            shares[1] > shares[0]
            or scores[1] > scores[0]
            or (added and sum(later.actions - first.actions for _, first, later in pairs if later.f1 == 1.0) < 0)
            or any(q.id == own and later.is_better_than(first, added) for q, first, later in pairs)
        ):
            reason = "the edits help neither the panel nor their own question"
        return GateDecision(not reason, len(panel), shares[0], shares[1], scores[0], scores[1], reason)

    async def ask(self, question: QAPair, environment: Environment) -> Grade:
        """Return the score of the reader on one state of the store."""
        assert self._reader is not None
        return (await ask(question, environment, self._reader, self._budget, self._memory))[1]

    async def _read(self, question: QAPair, seen: Measured, environment: Environment) -> Measured:
        assert self._reader is not None
        passed, grade = await ask(question, environment, self._reader, self._budget, self._memory)
        return msgspec.structs.replace(seen, f1=grade.f1, actions=len(passed.steps))

    async def _look(self, question: QAPair, environment: Environment) -> Measured:
        """Measure the evidence on the first page of results."""
        step = await environment.carry_out(Search(question.text))
        page = shown_by(step.result)
        learnt: set[str] = set()
        if isinstance(step.result, Found):
            learnt.update(target for one in step.result.learnt for target in one.targets)
        texts = {one.id: one.text for one in step.observation.documents}
        return Measured(page, _share(question, page, texts), _share(question, tuple(learnt), texts))


def _lost(id: str, before: Store, after: Store) -> bool:
    """Return True if a document was deleted, was edited or has lost a link."""
    if id not in before:
        return False
    return id not in after or after[id].text != before[id].text or not {*before[id].links} <= {*after[id].links}


def _share(question: QAPair, ids: Sequence[str], texts: dict[str, str]) -> float:
    """Return the share of a question's supports among documents; without supports, 1 if any has its answer, else 0."""
    if question.support:
        return len({*question.support} & {*ids}) / len({*question.support})
    answers = [f" {normalise(gold)} " for gold in question.golds if not question.unanswerable]
    return float(any(answer in f" {normalise(texts.get(id, ''))} " for answer in answers for id in ids))


Verdict = dict[str, Any] | None  # in the form stored in the trace; None if there was nothing to judge


async def judged(gate: Gate | None, staged: StagedEdits, number: int, own: str = "") -> Verdict:
    """Return the gate's decision on the edits of a pass in the form stored in the trace; None if nothing changed."""
    if gate is None or not staged.changed:
        return None
    touched = {id for step in staged.edits for id in changed_in(step.result)}
    found = await gate.judge(staged.base.environment(), staged.environment, touched, number, own)
    data: dict[str, Any] = msgspec.to_builtins(found)
    del data["admitted"]
    return {"verdict": "admitted" if found.admitted else "quarantined", **data}


async def settle(
    live: LiveStore, number: int, phase: Phase, question: str, staged: StagedEdits, verdict: Verdict
) -> bool:
    """Apply a judged pass to the live store or record it as rejected; return True if it was applied.

    The caller holds the turn.
    """
    applied = verdict is None or verdict["verdict"] != "quarantined"
    if applied:
        await apply_edits(live, number, phase, staged)
    else:
        reject_edits(live, number, phase, staged)
    if verdict is not None:
        live.record(Noted(number, "gate", {"question": question, **verdict}))
    return applied


def gated_curate(gate: Gate) -> Curate:
    """Return a `curate` that plays the backward pass on a copy and applies it only if the gate admits it."""

    async def curate(session: Session, lesson: Lesson, curator: Agent, task: Backward) -> Transcript:
        live, settings, number = session.live, session.settings, session.state(lesson).iteration
        staged = await stage(live, curator, task, settings.backward_budget, settings.memory)
        for question in qa_pairs(session.answered(lesson)):
            gate.answered(question)
        verdict = await judged(gate, staged, number, lesson.question.id)
        async with live.write():
            await settle(live, number, "backward", lesson.question.id, staged, verdict)
        return staged.transcript

    return curate
