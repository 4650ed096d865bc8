"""Evidence: what a pass was shown of what its question depends on, and when."""

from __future__ import annotations

import pytest

from kbgym.gym.actions import Answer, Answered, Error, Found, Observation, Opened, Read, Result, Search
from kbgym.gym.environment import Step
from kbgym.gym.episode import Transcript
from kbgym.training.evidence import Evidence, evidence_of, summarise_evidence
from kbgym.worlds.world import Question

QUESTION = Question("q", "test", "c", "t", "Where was it?", ("The Old Mill",), (), ("d1", "d2", "d3"))


def passed(*results: tuple[Result, str]) -> Transcript:
    steps = [Step(Read("x") if isinstance(r, Opened) else Search("x"), r, Observation(text)) for r, text in results]
    return Transcript(
        "reader", "answered", (*steps, Step(Answer("y"), Answered(), Observation("Answer submitted."))), "y"
    )


def test_each_support_counts_once_at_the_action_that_first_showed_it() -> None:
    found = evidence_of(
        passed(
            (Found(("d9", "d2"), 1), "12345"),
            (Error("no"), "xx"),
            (Opened("n1", ("d2", "d1")), "[d1] It was at the old mill."),
            (Found(("d3", "d1"), 1), "1234567890"),
        ),
        QUESTION,
    )
    assert found == Evidence(3, (1, 3, 4), 3, 5 + 2 + 28 + 10)
    assert found.share == 1.0 and found.actions == 4
    assert [found.all_within(k) for k in (3, 4)] == [False, True]


def test_what_was_never_shown_is_missing() -> None:
    found = evidence_of(passed((Found(("d1",), 1), "mill")), QUESTION)
    assert found == Evidence(3, (1,), 0, None) and found.share == pytest.approx(1 / 3) and found.actions is None
    assert not found.all_within(15)


@pytest.mark.parametrize(("golds", "unanswerable"), [(("4",), False), (("yes",), False), (("the old mill",), True)])
def test_a_gold_that_stands_anywhere_tells_nothing(golds: tuple[str, ...], unanswerable: bool) -> None:
    question = Question("q", "test", "c", "t", "?", golds, (), (), unanswerable)
    found = evidence_of(passed((Found(("d1",), 1), "4 yes the old mill")), question)
    assert found.gold is None and found.share is None


def test_a_gold_is_found_as_words_and_not_inside_them() -> None:
    question = Question("q", "test", "c", "t", "?", ("Lund",))
    assert evidence_of(passed((Found(("d1",), 1), "He went to Lundby.")), question).gold == 0
    assert evidence_of(passed((Found(("d1",), 1), "It is in LUND!")), question).gold == 1


def test_a_gold_counts_where_it_first_stood_in_a_document() -> None:
    question = Question("q", "test", "c", "t", "?", ("Lund",))
    found = Found(("d1",), 1)
    shown = passed((Error("no"), "Lund is no page."), (found, "Malmö."), (found, "Lund."), (found, "Lund."))
    assert evidence_of(shown, question).gold == 3


def test_means_are_over_what_can_tell() -> None:
    told = [Evidence(2, (1, 3), 2, 10), Evidence(2, (2,), 0), Evidence(0, (), None), None]
    found = summarise_evidence(told, 4)
    assert (found["evidence"], found["evidence_all"], found["gold_seen"]) == (0.75, 0.5, 0.5)
    assert found["evidence_all_by_action"] == (0.0, 0.0, 0.5, 0.5)
    found = summarise_evidence([*told, Evidence(2, (), 1), Evidence(1, (1,), None)], 1)
    assert (found["evidence"], found["evidence_all"], found["gold_seen"]) == (0.625, 0.5, 0.666667)
    nothing = summarise_evidence([Evidence(), None], 4)
    assert (nothing["evidence"], nothing["gold_seen"], nothing["evidence_all_by_action"]) == (None, None, ())


def test_the_first_page_is_what_the_first_action_showed() -> None:
    found = summarise_evidence([Evidence(4, (1, 1, 2)), Evidence(1, (1,)), Evidence(2, (2, 3)), Evidence()], 4)
    assert found["first_page"] == pytest.approx((2 / 4 + 1 / 1 + 0) / 3, abs=1e-6) and found["evidence_n"] == 3
