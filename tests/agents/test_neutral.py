"""Readers that know no wording: what they open, what they believe, and that an index by anybody serves them."""

from __future__ import annotations

import asyncio

import pytest
from playing import engine_of

from kbgym.actions import Read, Search
from kbgym.agents.reference.neutral import NEUTRAL
from kbgym.agents.registry import make_agent
from kbgym.agents.trust import BUILT_IN
from kbgym.environment import Environment
from kbgym.episode import Transcript, play
from kbgym.errors import BadInput
from kbgym.policy import Forward
from kbgym.store import Record, Store

SMITHS = tuple(Record(f"s{n}", f"Anna Berg{n}'s job is smith.") for n in range(9))
LUND = tuple(Record(f"c{n}", f"Anna Berg{n} lives in the city of {'Lund' if n == 4 else 'Ystad'}.") for n in range(9))


def played(name: str, index: str) -> Transcript:
    """Who is the smith in Lund, in a store with one index of the smiths in these words."""
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


def test_names_are_checked_and_nobody_of_them_curates() -> None:
    assert {f"neutral:{name}" for name in NEUTRAL} <= BUILT_IN
    assert make_agent("neutral:first", "reader") is NEUTRAL["first"]
    with pytest.raises(BadInput, match="no neutral reader 'x'; there are trusting, sceptical, first, overlap"):
        make_agent("neutral:x", "reader")
    with pytest.raises(BadInput, match="does not curate"):
        make_agent("neutral:first", "curator")
