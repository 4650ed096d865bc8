"""The general reader: it knows no grammar, follows names and links, and resumes from its turns."""

from __future__ import annotations

import asyncio

from turns import turn

from kbgym.agents.general.answers import best_answer, record_value
from kbgym.agents.general.reader import GeneralReader
from kbgym.agents.general.text import is_telling, names, split_title
from kbgym.gym.actions import Answer, Read, Search
from kbgym.gym.policy import Forward, Turn, View

QUESTION = "Who founded the yard that built the Kestrel?"
FIRST = turn(Search(QUESTION), "[d1] Kestrel: The Kestrel was built by Holm Yard.\n[n1] Holm Yard (2 links)")


def act(*turns: Turn, remaining: int = 10) -> object:
    return asyncio.run(GeneralReader().act(View("reader", Forward(QUESTION), turns, remaining)))


def test_it_searches_the_question_first_and_answers_with_its_last_action() -> None:
    assert act() == Search(QUESTION)
    assert isinstance(act(FIRST, remaining=1), Answer)


def test_it_opens_what_a_relevant_document_names() -> None:
    second = turn(Search(QUESTION, 2), "[d7] Gull: The Gull is grey.\n[d8] Tern: The Tern is white.")
    assert act(FIRST, second) == Read("n1")


def test_it_goes_on_from_its_turns_alone() -> None:
    reader = GeneralReader()
    asyncio.run(reader.act(View("reader", Forward(QUESTION), (), 10)))
    assert asyncio.run(reader.act(View("reader", Forward(QUESTION), (FIRST,), 9))) == act(FIRST, remaining=9)


def test_without_links_it_turns_the_first_pages_of_the_question() -> None:
    turns: list[Turn] = []
    for page in range(1, 5):
        assert act(*turns, remaining=16 - page) == Search(QUESTION, page)
        lines = (f"[d{page}{n}] Bird {page}{n}: It met Ada Alm and Bo Dahl." for n in range(5))
        turns.append(turn(Search(QUESTION, page), "\n".join(lines)))


def test_where_nothing_says_what_has_links_only_headings_are_opened() -> None:
    plain = "\n".join(f"[d{n}] Kestrel: Sentence {n} about the Kestrel." for n in range(4))
    assert not isinstance(act(turn(Search(QUESTION), plain)), Read)
    assert act(turn(Search(QUESTION), f"[n1] Yard that built the Kestrel\n{plain}")) == Read("n1")


def test_it_stops_where_what_it_opened_holds_the_question() -> None:
    head = "[d1] Kestrel: The Kestrel was built by the yard they founded (1 link)"
    found = turn(Search(QUESTION), "\n".join([head, *(f"[e{n}] Kestrel: It is boat {n}." for n in range(4))]))
    opened = turn(Read("d1"), f"{head}\nIt links to:\n[d2] Kestrel: It is old.")
    turns = [found, opened, *(Turn(Search(QUESTION, page), found.observation) for page in range(2, 9))]
    assert isinstance(act(*turns, remaining=6), Answer)
    assert not isinstance(act(found, *turns[2:], remaining=6), Answer)  # nothing was opened


def test_it_stops_on_a_flat_store_once_pages_and_names_promise_little() -> None:
    question = "Which yard built the Kestrel?"

    def pages(number: int, text: str) -> list[Turn]:
        shown = [[f"[d{page}{n}] {text}" for n in range(5)] for page in range(1, number + 1)]
        return [turn(Search(question, page), "\n".join(lines)) for page, lines in enumerate(shown, 1)]

    def acted(turns: list[Turn]) -> object:
        return asyncio.run(GeneralReader().act(View("reader", Forward(question), tuple(turns), 6)))

    assert acted(pages(5, "the yard built the kestrel.")) == Search(question, 6)
    assert isinstance(acted(pages(9, "the yard built the kestrel.")), Answer)


def test_how_many_is_counted_over_an_index() -> None:
    question = "How many boats were built in Lund?"
    shown = "[n1] Boats built in Lund (3 links)"
    opened = turn(Read("n1"), f"{shown}\nIt links to:\n[a] Gull is a boat.\n[b] Tern is a boat.\n[c] Kite is a boat.")
    turns = (turn(Search(question), shown), opened)
    assert asyncio.run(GeneralReader().act(View("reader", Forward(question), turns, 1))) == Answer("3")


def test_of_an_index_only_what_the_question_names_is_counted() -> None:
    question = "How many people have their office in the Workshop?"
    shown = "[n1] office, how many and which (3 links)"
    offices = "[a] Jon: office: Workshop\n[b] Ada: office: Workshop\n[c] Eva: office: Tower"
    turns = (turn(Search(question), shown), turn(Read("n1"), f"{shown}\nIt links to:\n{offices}"))
    assert asyncio.run(GeneralReader().act(View("reader", Forward(question), turns, 1))) == Answer("2")


def test_which_names_are_worth_a_search() -> None:
    text = "Kestrel: However, she left Lund in May 1969 with the English."
    told = ("Lund", "Holm Yard", "However", "May 1969", "English")
    assert [is_telling(name, text) for name in told] == [True, True, False, False, False]


def test_names_and_titles() -> None:
    assert names("The boat of Ada Alm was at the University of Lund.") == ["Ada Alm", "University of Lund"]
    assert split_title("Kestrel: It was built in 1987.") == ("Kestrel", "It was built in 1987.")


def test_a_heading_the_question_says_all_of_is_opened_wherever_it_ranks() -> None:
    question = "Which building on the ridge was built first?"
    others = "\n".join(f"[d{n}] Hut {n}: The ridge has a building." for n in range(4))
    for heading, opened in (("built, how many and which", Read("n1")), ("built by Ann, how many", Search(question, 2))):
        turns = (turn(Search(question), f"{others}\n[n1] {heading} (6 links)"),)
        assert asyncio.run(GeneralReader().act(View("reader", Forward(question), turns, 10))) == opened


def test_how_many_is_what_a_sentence_says_before_what_an_index_counts() -> None:
    index = ["Anvil: cost_crowns: 11,200,000", "Kite: cost_crowns: 20"]
    assert best_answer("How many crowns did Anvil cost?", index, listed=2) == "11,200,000"
    assert best_answer("How many turns close it?", ["The crank closes it in 140 turns."], listed=3) == "140"
    assert best_answer("How many instruments are by Andor?", ["Kite: detector: Andor 897"], listed=3) == "3"


def test_how_many_is_counted_over_the_pages_that_state_the_value() -> None:
    seen = [f"Tool {n}: kind: {'saw' if n < 3 else 'axe'}. It is from 19{n}0." for n in range(5)]
    assert best_answer("How many tools are of the kind saw?", seen) == "3"
    assert best_answer("How many hammers are there?", seen) == "unknown"


def test_a_field_of_the_page_that_is_named_is_the_answer_and_headings_are_none() -> None:
    texts = ["Kestrel: keeper: Jon Eide", "Petrel: keeper: Ada Ek"]
    assert record_value("Who is the keeper of the Petrel?", texts) == "Ada Ek"
    assert (
        record_value("Who is the keeper?", texts) == "" == record_value("Is Jon Eide the keeper of the Kestrel?", texts)
    )
    assert best_answer("Which yard built the Kestrel?", ["Yard > Boats: The yard built the kestrel."]) == "unknown"
    assert best_answer("When was the Kestrel sold?", ["Gull: It was painted on 1 May 1999."]) == "unknown"


def test_the_index_of_a_value_the_question_has_is_read_to_its_end() -> None:
    question = "Which tools have the category saw?"
    page = "\n".join(f"[d{n}] Axe {n}: It cuts." for n in range(5))
    found = turn(Search(question), f"{page}\n[n1] category: saw. Name the saws (9 links)\n[s0] Saw 0: category: saw")
    acted = asyncio.run(GeneralReader().act(View("reader", Forward(question), (found,), 9)))
    assert acted == Read("n1")
    opened = turn(Read("n1"), "[n1] category: saw. Name the saws (9 links)\nIt links to:\n[s0] Saw 0: category: saw")
    acted = asyncio.run(GeneralReader().act(View("reader", Forward(question), (found, opened), 8)))
    assert acted == Read("n1", 2)
