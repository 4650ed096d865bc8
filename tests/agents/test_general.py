"""The general reader: it knows no grammar, follows names and links, and resumes from its turns."""

from __future__ import annotations

import asyncio

from kbgym.actions import Answer, Read, Search
from kbgym.agents.general.reader import GeneralReader
from kbgym.agents.general.text import names, split_title
from kbgym.policy import Forward, Turn, View

QUESTION = "Who founded the yard that built the Kestrel?"
FIRST = Turn(Search(QUESTION), "[d1] Kestrel: The Kestrel was built by Holm Yard.\n[n1] Holm Yard (2 links)")


def act(*turns: Turn, remaining: int = 10) -> object:
    return asyncio.run(GeneralReader().act(View("reader", Forward(QUESTION), turns, remaining)))


def test_it_searches_the_question_first_and_answers_with_its_last_action() -> None:
    assert act() == Search(QUESTION)
    assert isinstance(act(FIRST, remaining=1), Answer)


def test_it_opens_what_a_relevant_document_names() -> None:
    second = Turn(Search(QUESTION, 2), "[d7] Gull: The Gull is grey.\n[d8] Tern: The Tern is white.")
    assert act(FIRST, second) == Read("n1")


def test_it_goes_on_from_its_turns_alone() -> None:
    reader = GeneralReader()
    asyncio.run(reader.act(View("reader", Forward(QUESTION), (), 10)))
    assert asyncio.run(reader.act(View("reader", Forward(QUESTION), (FIRST,), 9))) == act(FIRST, remaining=9)


def test_names_and_titles() -> None:
    assert names("The boat of Ada Alm was at the University of Lund.") == ["Ada Alm", "University of Lund"]
    assert split_title("Kestrel: It was built in 1987.") == ("Kestrel", "It was built in 1987.")
