"""The gate: edits stay if they harm no question on average and help at least one.

The readers here answer by what they see of a store, so that every score is known beforehand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Action, Answer, Search
from kbgym.gym.environment import Environment, Ranking
from kbgym.gym.grading import f1
from kbgym.gym.policy import Agent, View
from kbgym.search.factory import live_engine_for
from kbgym.store import Record, Store, source
from kbgym.training.gate import Gate, GateDecision, qa_pair
from kbgym.worlds.world import Question

TEXTS = ("Ada Alm's job is baker.", "Bo Alm's job is baker.", "Ada Alm lives in Lund.", "Bo Alm lives in Lund.")
BAKERS = ("People whose job is baker.", ("d0", "d1"))
LUND = ("People who live in Lund.", ("d2", "d3"))
GOLD = " ".join(f"w{n}" for n in range(200))

Index = tuple[str, tuple[str, ...]]


def environment(*indexes: Index, texts: tuple[str, ...] = TEXTS, ranking: Ranking = "paper") -> Environment:
    """The documents, and indexes n1, n2, ... over them."""
    written = [Record(f"n{n}", text, to, flag="authored") for n, (text, to) in enumerate(indexes, 1)]
    store = Store([*(source(f"d{n}", text) for n, text in enumerate(texts)), *written])
    return Environment(store, live_engine_for(store, embedder_named("hash")).overlay(), ranking=ranking)


class Reader:
    """Looks at `pages` pages, then answers what `said` makes of the question and of all it saw."""

    def __init__(self, said: Callable[[str, str], str], pages: Callable[[str], int] = lambda seen: 2) -> None:
        self.said, self.pages = said, pages

    def __call__(self) -> Reader:
        return self

    async def act(self, view: View) -> Action:
        seen = "\n".join(turn.observation.text for turn in view.history)
        if view.history and len(view.history) >= self.pages(seen):
            return Answer(self.said(view.task.question, seen))
        return Search("anything", len(view.history) + 1)


def missing(words: int) -> str:
    """The gold without so many of its words."""
    return " ".join(GOLD.split()[words:])


def judge(reader: Agent | None, before: Environment, after: Environment, *questions: Question) -> GateDecision:
    changed = {record.id for place in (before, after) for record in place.store}
    return asyncio.run(Gate(9, questions, reader).judge(before, after, changed, 1))


def qa(*ids: str) -> list[Question]:
    return [qa_pair(id, id, (GOLD,)) for id in ids]


@pytest.mark.parametrize(
    ("better", "worse", "admitted"),
    [("", "", False), ("a", "", True), ("ab", "", True), ("a", "b", False), ("", "b", False)],
)
def test_edits_stay_if_the_mean_does_not_fall_and_something_gains(better: str, worse: str, admitted: bool) -> None:
    def said(question: str, seen: str) -> str:
        if BAKERS[0] in seen:
            return missing(80 if question in better else 130 if question in worse else 100)
        return missing(100)

    found = judge(Reader(said), environment(), environment(BAKERS), *qa("a", "b"))
    assert found.admitted == admitted == (not found.reason)
    assert found.asked == 2 and found.before == round(f1(missing(100), GOLD), 6)
    assert (found.after > found.before) == admitted


def test_fewer_actions_are_a_gain_unless_something_was_taken_away() -> None:
    faster = Reader(lambda question, seen: GOLD, lambda seen: 1 if BAKERS[0] in seen else 2)
    assert judge(faster, environment(), environment(BAKERS), *qa("a")).admitted
    lost = environment(BAKERS, texts=TEXTS[:3])
    assert not judge(faster, environment(), lost, *qa("a")).admitted
    edited = environment(BAKERS, texts=("Ada Alm's job is miller.", *TEXTS[1:]))
    assert not judge(faster, environment(), edited, *qa("a")).admitted
    fewer = environment((BAKERS[0], ("d0",)))
    assert not judge(faster, environment((LUND[0], ("d2",)), BAKERS), fewer, *qa("a")).admitted


def test_evidence_on_the_first_page_is_measured_without_any_reader() -> None:
    near = qa_pair("q", "Ada Alm's job is baker.", ("x",), support=("d0",))
    other = qa_pair("o", "Zebra", ("lund",))
    many = tuple(f"Ada Alm's job is baker number {n}." for n in range(6))
    found = judge(None, environment(texts=many), environment(texts=(near.text, *many)), near)
    assert (found.evidence_before, found.evidence_after, found.before, found.after) == (1.0, 1.0, 0.0, 0.0)
    apart = qa_pair("q", near.text, ("x",), support=("d6",))
    gained = judge(None, environment(texts=many), environment(texts=(*many, near.text)), apart, other)
    assert gained.admitted and (gained.evidence_before, gained.evidence_after) == (0.0, 0.5)
    crowded = judge(None, environment(texts=(*many, near.text)), environment(texts=many), apart, other)
    assert not crowded.admitted and "evidence" in crowded.reason


def test_without_supports_evidence_is_the_answer_on_the_page() -> None:
    asked = qa_pair("q", "Where does Ada live?", ("Lund",))
    found = judge(None, environment(texts=TEXTS[:2]), environment(), asked)
    assert (found.evidence_before, found.evidence_after, found.admitted) == (0.0, 1.0, True)


def test_without_any_question_edits_stay() -> None:
    found = judge(None, environment(), environment(BAKERS))
    assert found.admitted and found.asked == 0


def test_the_panel_is_drawn_anew_and_holds_what_was_answered_last() -> None:
    gate = Gate(4, qa(*(f"h{n}" for n in range(20))), None)
    for question in qa(*(f"r{n}" for n in range(300)), "r7"):
        gate.answered(question)
    one, other = gate.panel(1), gate.panel(2)
    assert one == gate.panel(1) != other and len(one) == 8
    assert [question.id for question in one[4:]] == ["r7", "r299", "r298", "r297"]
    assert Gate(4, qa(*(f"h{n}" for n in range(20))), None, seed=1).panel(1) != one[:4]
    gate.n = 1000
    assert {question.id for question in gate.panel(1)} == {f"h{n}" for n in range(20)} | {"r7"} | {
        f"r{n}" for n in range(101, 300)
    }


def test_what_a_pass_learnt_counts_for_its_own_question_alone() -> None:
    """Evidence that was on the page already is now also in the reserved slot: nothing for the means."""
    asked = [qa_pair("q", "job is baker", ("x",), support=("d0",)), qa_pair("o", "Lund", ("x",), support=("d2",))]
    texts = (*TEXTS, *(f"Filler {n}." for n in range(8)))
    indexes = (), (("job is baker", ("d0",)),)
    before, after = (environment(*some, texts=texts, ranking="slot") for some in indexes)
    changed = {"n1"}
    decisions = [asyncio.run(Gate(9, asked, None).judge(before, after, changed, 1, own)) for own in ("q", "o", "")]
    assert [one.admitted for one in decisions] == [True, False, False]
