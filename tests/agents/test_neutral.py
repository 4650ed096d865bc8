"""Readers that know no wording: what they open, what they believe, and that an index by anybody serves them."""

from __future__ import annotations

import asyncio

import pytest
from store_fixtures import engine_of

from kbgym.agents.reference.neutral import NEUTRAL
from kbgym.agents.registry import make_agent
from kbgym.agents.trust import BUILT_IN
from kbgym.errors import BadInput
from kbgym.gym.actions import Read, Search
from kbgym.gym.environment import Environment
from kbgym.gym.episode import Transcript, play
from kbgym.gym.policy import Forward
from kbgym.store import Record, Store

SMITHS = tuple(Record(f"s{n}", f"Anna Berg{n}'s job is smith.") for n in range(9))
LUND = tuple(Record(f"c{n}", f"Anna Berg{n} lives in the city of {'Lund' if n == 4 else 'Ystad'}.") for n in range(9))

FRIENDS = (
    Record("f0", "Anna Berg0 is a friend of Anna Berg1."),
    Record("f1", "Anna Berg0 is a friend of Anna Berg2."),
    Record("m0", "Anna Berg0 is the mother of Cy Berg."),
)


def played(name: str, index: str) -> Transcript:
    """Ask for the smith in Lund, in a store with one index of the smiths in these words."""
    hub = Record("i", index, links=tuple(record.id for record in SMITHS), flag="authored")
    store = Store((*SMITHS, *LUND, hub))
    task = Forward("Who is the smith who lives in the city of Lund?")
    return asyncio.run(play(NEUTRAL[name](), Environment(store, engine_of(store)), "reader", task, 15))


@pytest.mark.parametrize("name", NEUTRAL)
@pytest.mark.parametrize("index", ["Smith", "All about the trade of smith", "People whose job is smith"])
def test_an_index_in_any_words_is_opened_and_the_answer_is_right(name: str, index: str) -> None:
    passed = played(name, index)
    assert passed.answer == "Anna Berg4"
    if name in ("trusting", "sceptical"):
        assert Read("i") in [step.action for step in passed.steps]


def test_who_trusts_stops_and_who_does_not_pages_on() -> None:
    searched = {
        name: sum(isinstance(step.action, Search) for step in played(name, "Job smith").steps)
        for name in ("trusting", "sceptical")
    }
    assert searched["trusting"] < searched["sceptical"]


def asked(name: str, question: str, *indexes: Record) -> Transcript:
    store = Store((*SMITHS, *LUND, *FRIENDS, *indexes))
    task = Forward(question)
    return asyncio.run(play(NEUTRAL[name](), Environment(store, engine_of(store)), "reader", task, 15))


def heading(id: str, text: str, *links: Record) -> Record:
    return Record(id, text, links=tuple(record.id for record in links), flag="authored")


def opened(passed: Transcript) -> list[str]:
    return [step.action.id for step in passed.steps if isinstance(step.action, Read)]


def test_what_says_most_of_what_is_asked_is_opened_first_and_read_as_it_is_headed() -> None:
    plain, of_each = heading("i", "Job is smith", *SMITHS), heading("j", "Job is smith: city", *LUND)
    passed = asked("trusting", "Who is the smith who lives in the city of Lund?", plain, of_each)
    assert passed.answer == "Anna Berg4" and opened(passed) == ["j"] and len(passed.steps) == 3
    passed = asked("trusting", "Who is the smith whose hobby is chess?", plain, of_each)
    assert opened(passed)[:1] == ["i"], "nobody asks for a city here"


def test_one_set_about_somebody_says_nothing_of_another() -> None:
    friends = heading("f", "Friends: Anna Berg0", *FRIENDS[:2])
    passed = asked("trusting", "How many children does Anna Berg0 have?", friends)
    everything = asked("trusting", "How many children does Anna Berg0 have?", heading("f", "Anna Berg0", *FRIENDS))
    assert passed.answer == everything.answer == "1" and opened(passed) == opened(everything) == ["f"]
    assert len(passed.steps) > len(everything.steps), "it went on, though all that it read is about her"


def test_names_are_checked_and_nobody_of_them_curates() -> None:
    assert {f"neutral:{name}" for name in NEUTRAL} <= BUILT_IN
    assert make_agent("neutral:first", "reader") is NEUTRAL["first"]
    with pytest.raises(BadInput, match="neutral:overlap, neutral:joining"):
        make_agent("neutral:x", "reader")
    with pytest.raises(BadInput, match="does not curate"):
        make_agent("neutral:first", "curator")


def test_the_joining_reader_asks_about_several_people_at_once() -> None:
    store = Store((*SMITHS, *LUND))
    task = Forward("Who is the smith who lives in the city of Lund?")
    passed = asyncio.run(play(NEUTRAL["joining"](), Environment(store, engine_of(store)), "reader", task, 15))
    queries = [step.action.query for step in passed.steps if isinstance(step.action, Search)]
    assert passed.answer == "Anna Berg4" and any(query.count("Anna Berg") == 3 for query in queries)
