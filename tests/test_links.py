"""`read` in pages: bounded for rich observations, by words with `about`, the same when replayed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.gym.actions import Action, Error, Opened, Read
from kbgym.gym.environment import Environment, Step, advice_of, apply
from kbgym.gym.links import PAGE_CHARACTERS, page_of_links
from kbgym.gym.observations import Observations
from kbgym.gym.tools import parse
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.store import Record, Store, source

NUMBERS = 300


def hub(count: int = NUMBERS, length: int = 60) -> Store:
    """A document with many links, every seventh of which speaks of ferries and one of whales."""
    texts = [f"{'The ferry' if n % 7 == 0 else 'A boat'} number {n} {'x' * length}" for n in range(count)]
    texts[-1] = "The ferry that saw whales"
    facts = [source(f"d{n}", text) for n, text in enumerate(texts)]
    return Store([*facts, Record("hub", "All boats", tuple(record.id for record in facts), flag="authored")])


def read(store: Store, action: Action, observations: Observations = "rich") -> Step:
    environment = Environment(store, Engine(HashEmbedder()), observations=observations)
    return asyncio.run(environment.step(action, "reader"))


def opened(step: Step) -> Opened:
    assert isinstance(step.result, Opened)
    return step.result


def test_all_pages_together_are_all_links_in_order_and_each_is_bounded() -> None:
    store, seen, page = hub(), [], 1
    while True:
        step = read(store, Read("hub", page))
        if isinstance(step.result, Error):
            break
        seen += opened(step).links
        assert len(step.observation.text) <= PAGE_CHARACTERS * 1.25
        assert step.observation.documents[0].id == "hub"
        page += 1
    assert tuple(seen) == store["hub"].links and page > 3


def test_about_lists_only_links_that_match_best_first() -> None:
    found = opened(read(hub(), Read("hub", about="ferries with whales")))
    assert found.links[0] == f"d{NUMBERS - 1}"
    assert found.total == len([n for n in range(NUMBERS) if n % 7 == 0]) + 1
    assert opened(read(hub(), Read("hub", about="zebra"))).links == ()


def test_about_prefers_a_rare_word_to_a_common_one() -> None:
    found = opened(read(hub(), Read("hub", about="boats, whales")))
    assert found.links[0] == f"d{NUMBERS - 1}" and found.total > NUMBERS / 2


def test_what_fits_on_one_page_reads_as_before() -> None:
    assert opened(read(hub(5), Read("hub"))) == Opened("hub", hub(5)["hub"].links)


def test_paper_observations_are_not_bounded_unless_a_page_is_asked_for() -> None:
    assert opened(read(hub(), Read("hub"), "paper")).links == hub()["hub"].links
    assert len(opened(read(hub(), Read("hub", 2), "paper")).links) < NUMBERS


@pytest.mark.parametrize("action", [Read("hub", 99), Read("d1", 2), Read("hub", 99, "whales")])
def test_page_that_does_not_exist_is_an_error_live_and_replayed(action: Read) -> None:
    step = read(hub(), action)
    assert isinstance(step.result, Error)
    assert apply(hub(), action, advice_of(step.result, None)) == step.result


@given(st.integers(1, 40), st.integers(1, 900), st.integers(1, 6), st.sampled_from(["", "ferry", "zebra"]))
def test_replay_gives_the_recorded_result(count: int, length: int, page: int, about: str) -> None:
    store = hub(count, length)
    step = read(store, Read("hub", page, about))
    assert apply(store, step.action, advice_of(step.result, None)) == step.result
    recorded = msgspec.json.decode(msgspec.json.encode(step.result), type=Error | Opened)
    assert recorded == step.result


@pytest.mark.parametrize("links", [(), ("d5",), tuple(f"d{n}" for n in range(100))])
def test_read_shows_the_documents_beside_it_on_its_page_and_is_replayed(links: tuple[str, ...]) -> None:
    store = Store([*(record for record in hub() if record.id != "hub"), Record("d", "Passage", links, origin="d")])
    engine = Engine(HashEmbedder(), beside={"d": ("d5", "d6", "gone")})
    environment = Environment(store, engine, observations="rich")
    step = asyncio.run(environment.step(Read("d"), "reader"))
    assert opened(step).near == ("d5", "d6")
    assert {"d", "d5", "d6"} <= step.observation.ids
    assert step.observation.text.count(f"[d5] {store['d5'].text}") == 1
    assert step.observation.text.count(f"[d6] {store['d6'].text}") == 1
    assert apply(store, step.action, advice_of(step.result, None)) == step.result
    store.delete("d6")
    assert isinstance(apply(store, step.action, advice_of(step.result, None)), Error)


def test_recorded_links_that_the_document_does_not_have_are_an_error() -> None:
    assert isinstance(apply(hub(), Read("d1"), Opened("d1", ("d2",), 1, 2, 9)), Error)


def test_one_long_link_has_a_page_of_its_own() -> None:
    store = hub(3, 5_000)
    pages = [page_of_links(store, "hub", page, "") for page in (1, 2, 3)]
    assert [page.links for page in pages if page] == [("d0",), ("d1",), ("d2",)]


def test_a_call_may_name_page_and_subject_and_the_trace_keeps_neither_by_default() -> None:
    assert parse("read", {"id": "a", "page": 2, "about": " two  words "}, "reader") == Read("a", 2, "two words")
    assert msgspec.json.encode(Read("a")) == b'{"tool":"read","id":"a"}'
    assert type(parse("read", {"id": "a", "page": 0}, "reader")).__name__ == "Invalid"
