"""Aliases that point at the answer's place in a document, and the reader that follows them."""

from __future__ import annotations

import asyncio

import pytest

from kbgym.agents.general.answers import asks_for, listed_answer
from kbgym.agents.general.pointers import follow, pointer
from kbgym.agents.general.reader import GeneralReader
from kbgym.gym.actions import Action, Answer, Observation, Search, ShownDocument
from kbgym.gym.policy import Forward, Turn, View

SHIPS = (
    "Tern: voyages: number 21: left: 1901-02-03; back: 1901-05-06. "
    "voyages: number 22: left: 1902-02-03; back: 1902-07-08"
)


@pytest.mark.parametrize(
    ("text", "answer", "place"),
    [
        (SHIPS, "1902-07-08", "Tern: voyages: number 22 … back: ___"),
        (SHIPS, "1901-02-03", "Tern: voyages: number 21: left: ___"),
        ("Gull: It is grey. Gull 2 was built by Ada Alm in Lund.", "Ada Alm", "Gull: Gull 2 was built by ___ in Lund"),
        (
            "Eider: a b c d e f g h i j, from oak, l m n o p q.",
            "oak",
            "Eider: … c d e f g h i j, from ___, l m n o …",
        ),
    ],
)
def test_a_pointer_leads_back_to_the_answer(text: str, answer: str, place: str) -> None:
    assert pointer(text, [answer], len) == place
    heading = f"What was it? Tell me. {place}. Tern. A ship."
    assert follow(heading, text) == answer
    assert follow(heading, text.replace(answer, "1999-09-09")) == "1999-09-09"  # the document is what is read
    assert follow(heading, f"Other: {text}") == ""


def test_a_pointer_needs_a_sentence_that_states_the_answer_as_a_whole() -> None:
    assert pointer(SHIPS, ["02-03", "190"], len) == ""
    assert pointer(SHIPS, ["never", "1901-05-06"], len).endswith("number 21 … back: ___")
    assert follow("What was it. Tern: voyages: number 2 … back: ___.", SHIPS) == ""


@pytest.mark.parametrize(
    ("question", "value", "fits"),
    [
        ("When did it come back?", "1902-07-08", True),
        ("What was it called?", "1902-07-08", False),
        ("How many weeks was it away?", "3 weeks", True),
        ("How many weeks was it away?", "3 months", False),
        ("When did voyage 22 end?", "1902-07-08", True),
        ("When did voyage 23 end?", "1902-07-08", False),
        ("Which year saw it return, 1902 or later?", "1902", True),
        ("Who sailed it?", "Ada Alm", True),
    ],
)
def test_a_learnt_value_answers_only_questions_of_its_kind(question: str, value: str, fits: bool) -> None:
    assert asks_for(question, value, "Day of the return of voyage 22. Tern: number 22 … back: ___") is fits


def test_a_list_is_the_pages_that_state_the_value_that_a_question_names() -> None:
    texts = ["Tern: rig: brig; built: 1901", "Gull: rig: brig; built: 1902", "Gull: rig: brig; keel: oak"]
    assert listed_answer("Which ships have the rig brig?", "brig", texts) == "Tern, Gull"
    assert listed_answer("How many ships are rigged as a brig?", "brig", texts) == "2"
    assert listed_answer("Which ships with the rig brig are from 1902?", "brig", texts) == "Gull"
    assert listed_answer("Which ships are yawls?", "brig", texts) == ""


def asked(question: str, heading: str, *texts: str, links: int = 1) -> Action:
    plain = [ShownDocument(f"d{n}", f"Axe {n}: It cuts.") for n in range(5)]
    learnt = [ShownDocument("n1", heading, links), *(ShownDocument(f"t{n}", text) for n, text in enumerate(texts))]
    turn = Turn(Search(question), Observation("", (*plain, *learnt)))
    return asyncio.run(GeneralReader().act(View("reader", Forward(question), (turn,), 9)))


def test_the_reader_answers_from_the_slot() -> None:
    heading = "Day of the return of the second voyage. Tern: voyages: number 22 … back: ___. A ship."
    assert asked("When was the ship home again, the 22nd voyage?", heading, SHIPS) == Answer("1902-07-08")
    assert asked("Who was aboard?", heading, SHIPS) != Answer("1902-07-08")
    assert asked("When was Axe 3 home again?", heading, SHIPS) != Answer("1902-07-08")  # another page is named
    rigs = ("Tern: rig: brig", "Gull: rig: brig")
    assert asked("Name the ships with the rig brig", "rig: brig", *rigs, links=2) == Answer("Tern, Gull")
    assert asked("Name the ships with the rig brig", "rig: brig", *rigs, links=3) != Answer("Tern, Gull")
