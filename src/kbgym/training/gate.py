"""The gate, which applies the edits of a pass only if they do no harm on average and help a question.

A panel of questions with known answers is asked on the store without and with the edits: held-out questions, redrawn
for each pass, and the questions answered last, including the pass's own. For each the gate measures the evidence on the
first page of results and, with a reader, its score. Edits are rejected if the mean of either falls, or if neither a
mean nor the pass's own question gains. The gate has no state that a replay needs, so interrupted training makes the
same decisions. The test splits are never asked. Training and serving use the same gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from random import Random
from statistics import fmean
from typing import Any

import msgspec

from kbgym.gym.actions import Found, Search, changed_in, shown_by
from kbgym.gym.environment import Environment
from kbgym.gym.episode import FORWARD_BUDGET, MEMORY, Acting, Transcript, play
from kbgym.gym.grading import Grade, grade_question, normalise
from kbgym.gym.policy import Agent, Backward, Forward
from kbgym.index_keys import signature
from kbgym.store import Record, Store
from kbgym.trace.events import Noted, Phase
from kbgym.trace.live import LiveStore
from kbgym.training.lessons import Lesson
from kbgym.training.loop import Curate
from kbgym.training.session import Session
from kbgym.training.staged import StagedEdits, apply_edits, reject_edits, stage
from kbgym.worlds.world import Question

_RECENT = 200
_EXACT = 1e-9


def qa_pair(id: str, text: str, golds: tuple[str, ...], unanswerable: bool = False, **more: Any) -> Question:
    """Return a question with known answers that belongs to no world."""
    return Question(id, "", "", "", text, golds, unanswerable=unanswerable, **more)


async def ask(
    asked: Question, environment: Acting, reader: Agent, budget: int, memory: int
) -> tuple[Transcript, Grade]:
    """Play a reader's pass and return it with its grade; a pass without an answer scores 0."""
    passed = await play(reader(), environment, "reader", Forward(asked.text), budget, memory)
    return passed, grade_question(passed.answer, asked)


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
        held_out: Sequence[Question],
        reader: Agent | None,
        seed: int = 0,
        budget: int = FORWARD_BUDGET,
        memory: int = MEMORY,
    ) -> None:
        self.n = n
        self._held_out = tuple(held_out)
        self._recent: dict[str, Question] = {}
        self._words = Words()
        self._reader, self._seed = reader, seed
        self._budget, self._memory = budget, memory

    def answered(self, question: Question) -> None:
        """Add a question with a known answer to the recent questions."""
        self._recent.pop(question.id, None)
        self._recent[question.id] = question
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]

    def panel(self, number: int) -> list[Question]:
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

    async def _read(self, question: Question, seen: Measured, environment: Environment) -> Measured:
        assert self._reader is not None
        passed, grade = await ask(question, environment, self._reader, self._budget, self._memory)
        return msgspec.structs.replace(seen, f1=grade.f1, actions=len(passed.steps))

    async def _look(self, question: Question, environment: Environment) -> Measured:
        """Measure the evidence on the first page of results."""
        step = await environment.carry_out(Search(question.text))
        page = shown_by(step.result)
        slot = step.result.learnt if isinstance(step.result, Found) else ()
        learnt = {target for one in slot for target in one.targets}
        texts = {one.id: one.text for one in step.observation.documents}
        return Measured(page, _share(question, page, texts), _share(question, tuple(learnt), texts))


def _lost(id: str, before: Store, after: Store) -> bool:
    """Return True if a document was deleted, was edited or has lost a link."""
    if id not in before:
        return False
    return id not in after or after[id].text != before[id].text or not {*before[id].links} <= {*after[id].links}


def _share(question: Question, ids: Sequence[str], texts: dict[str, str]) -> float:
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
        for question in session.answered(lesson):
            gate.answered(question)
        verdict = await judged(gate, staged, number, lesson.question.id)
        async with live.write():
            await settle(live, number, "backward", lesson.question.id, staged, verdict)
        return staged.transcript

    return curate


# -- reasons for links ------------------------------------------------------------------------------------------------
# A link has a reason if its target contains the rarest word of its source ("baker" in "People whose job is baker"), or
# names a person named by an original document with that word (the city of a baker, under the cities of bakers). A
# change has a reason if every added link has one and no removed link had one. Only originals count as evidence, so that
# a curator's text cannot justify a curator's links. The check asks no questions and is independent of the language.

WHOLE = 0.25  # minimum share of its candidates that a new index must link
_RARE = 4  # a word is rare if its frequency is at most this multiple of that of the rarest
_WORD = re.compile(r"[^\W_]{2,}")


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in lower case and singular: "friends" and "friend" are equal."""
    words = _WORD.findall(text.casefold())
    return frozenset(word[:-1] if len(word) > 3 and word[-1] == "s" else word for word in words)


class Words:
    """An inverted index from words to originals, which `follow` updates to a store."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._holding: dict[str, set[str]] = {}

    def follow(self, store: Store) -> None:
        originals = {record.id: record.text for record in store if record.flag != "authored"}
        for id in [id for id, text in self._texts.items() if originals.get(id) != text]:
            for word in words_of(self._texts.pop(id)):
                self._holding[word].discard(id)
        for id, text in originals.items():
            if id not in self._texts:
                self._texts[id] = text
                for word in words_of(text):
                    self._holding.setdefault(word, set()).add(id)

    def rarest(self, text: str) -> list[str]:
        """Return the words of a text with the lowest document frequency above 0 among originals."""
        counts = {word: len(held) for word in words_of(text) if (held := self._holding.get(word))}
        return sorted(word for word, count in counts.items() if count == min(counts.values()))

    def candidates(self, text: str) -> set[str]:
        """Return the originals with every rare word of a text: about as many as belong under it, or more."""
        counts = {word: len(held) for word in words_of(text) if (held := self._holding.get(word))}
        rare = [word for word, count in counts.items() if count <= _RARE * min(counts.values())]
        return set.intersection(*(self._holding[word] for word in rare)) if rare else set()

    def speaks_for(self, source: str, target: str) -> bool:
        """Return True if the words show that a document `target` belongs under a document `source`."""
        rarest = self.rarest(source)
        if not words_of(target).isdisjoint(rarest):
            return True
        named = frozenset(signature(target)[0])
        between = {id for word in rarest for id in self._holding[word]}
        return any(len(named.intersection(signature(self._texts[id])[0])) > 1 for id in between)

    def unreasoned(self, before: Store, after: Store, touched: set[str]) -> Iterator[str]:
        """Yield the documents touched by a pass whose changes have no reason in their words."""
        for id in sorted(touched):
            was, now = (store[id] if id in store else None for store in (before, after))  # noqa: SIM401
            if was != now and not self._reasoned(was, now, before, after):
                yield id

    def _reasoned(self, was: Record | None, now: Record | None, before: Store, after: Store) -> bool:
        if was is not None and was.flag != "authored" and (now is None or now.text != was.text):
            return False
        held = {} if was is None else {id: self.speaks_for(was.text, before[id].text) for id in was.links}
        if now is None:
            return not any(held.values())
        if not now.links:
            return False
        if was is None and len(now.links) < WHOLE * len(self.candidates(now.text)):
            return False
        gone = [id for id in held if id not in now.links]
        fresh = [id for id in now.links if was is None or now.text != was.text or id not in held]
        return not any(held[id] for id in gone) and all(
            self.speaks_for(now.text, after[id].text) for id in fresh if id in after
        )
