"""The ranking `apart`: an index pushes no document out of a page, and paging stays whole while the store changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fixtures import SENTENCES, engine_of, records, step

from kbgym.gym.actions import Add, Delete, Error, Found, Link, Search
from kbgym.gym.environment import MOST_APART, Environment
from kbgym.gym.tools import PAGE_SIZE
from kbgym.search.ranking import page_apart, whole_ranking
from kbgym.store import Store

ORIGINALS = {f"d{number}" for number in range(len(SENTENCES))}


def environment_of(ranking: str = "apart") -> Environment:
    store = Store(records())
    return Environment(store, engine_of(store), ranking=ranking)


def pages(environment: Environment, query: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    while isinstance(result := step(environment, Search(query, len(found) + 1), "reader").result, Found) and result.ids:
        found.append(result.ids)
    assert isinstance(result, Error) and "no page" in result.message
    return found


def test_an_index_pushes_no_document_out():
    flat, crowded = environment_of(), environment_of()
    for number in range(12):  # indexes that are nearer to the query than the documents
        made = step(crowded, Add(f"Lund lives in number {number}."))
        step(crowded, Link(made.result.id, "d0"))
    (first, *_), (page, *_) = pages(flat, "lives in Lund"), pages(crowded, "lives in Lund")
    assert [id for id in first if id in ORIGINALS] == [id for id in page if id in ORIGINALS]
    assert len([id for id in page if id in ORIGINALS]) == PAGE_SIZE
    assert len(page) - PAGE_SIZE == MOST_APART == 5
    paper = environment_of("paper")
    for number in range(12):
        step(paper, Add(f"Lund lives in number {number}."))
    (worse, *_) = pages(paper, "lives in Lund")
    assert len(worse) == PAGE_SIZE > len(ORIGINALS & set(worse)), "in the paper's ranking they do"


words = st.sampled_from("Lund lives baker Anna Bo friend child city works people".split())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(words, min_size=1, max_size=4), max_size=25), st.lists(words, min_size=1, max_size=3))
def test_paging_shows_every_document_once_whatever_was_added_and_deleted(texts, query):
    environment = environment_of()
    for number, text in enumerate(texts):
        result = step(environment, Add(" ".join([*text, str(number)]))).result
        if number % 3 == 0 and hasattr(result, "id"):
            step(environment, Delete(result.id))
    shown = [id for page in pages(environment, " ".join(query)) for id in page]
    assert len(shown) == len(set(shown)) and set(shown) == {record.id for record in environment.store}


@pytest.mark.parametrize("ranking", ["paper", "apart"])
def test_without_indexes_the_rankings_are_one(ranking):
    store = Store(record for record in records() if record.flag != "authored")
    environment = Environment(store, engine_of(store), ranking=ranking)
    expected = [id for id, _ in environment.engine.search("lives in Lund", 0, len(store))]
    assert [id for page in pages(environment, "lives in Lund") for id in page] == expected


# -- pages of a ranking ------------------------------------------------------------------------------------------------

rankings = st.lists(st.booleans(), max_size=60)


def pages_apart(apart: list[bool], size: int, most: int) -> list[list[str]]:
    """Every page up to the first empty one."""
    ranked = [str(number) for number in range(len(apart))]
    found: list[list[str]] = []
    while page := page_apart(ranked, lambda id: apart[int(id)], len(found) + 1, size, most):
        found.append(page)
    return found


@given(rankings, st.integers(1, 6), st.integers(1, 6))
def test_every_document_stands_on_exactly_one_page(apart, size, most):
    shown = [id for page in pages_apart(apart, size, most) for id in page]
    assert sorted(shown, key=int) == [str(number) for number in range(len(apart))]


@given(rankings, st.integers(1, 6), st.integers(1, 6))
def test_plain_documents_stand_where_they_would_if_nothing_were_set_apart(apart, size, most):
    plain = [str(number) for number, is_apart in enumerate(apart) if not is_apart]
    expected = [plain[start : start + size] for start in range(0, len(plain), size)]
    found = [[id for id in page if not apart[int(id)]] for page in pages_apart(apart, size, most)]
    assert found[: len(expected)] == expected and not any(found[len(expected) :])


@given(st.integers(0, 400))
def test_a_ranking_is_fetched_whole_and_in_order(count):
    asked = []

    def search(offset: int, limit: int) -> list[tuple[str, float]]:
        asked.append((offset, limit))
        return [(str(number), 0.0) for number in range(offset, min(count, offset + limit))]

    assert list(whole_ranking(search)) == [str(number) for number in range(count)]
    assert [offset for offset, _ in asked] == sorted({offset for offset, _ in asked})
