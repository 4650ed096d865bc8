"""Corrections supersede what they link to, rank before it, and leave no trace once deleted."""

from __future__ import annotations

import asyncio

import pytest
from store_fixtures import engine_of

from kbgym.gym.actions import Add, Correct, Corrected, Delete, Edit, Error, Found, Invalid, Search, Unlink
from kbgym.gym.environment import Environment, apply
from kbgym.gym.observations import documents
from kbgym.gym.tools import check, is_editing, parse
from kbgym.store import Record, Store, ledger
from kbgym.store.record import source

TEXTS = {"d1": "Ada Alm is a baker.", "d2": "Bo Berg is a smith.", "d3": "Cy Dahl is a tailor."}


@pytest.fixture
def store() -> Store:
    return Store(source(id, text) for id, text in TEXTS.items())


def test_a_correction_supersedes_what_it_names_until_it_is_deleted(store: Store) -> None:
    before = store.fingerprint
    result = apply(store, Correct("Ada Alm is a smith, says ada.", ("d1", "d2")))
    assert result == Corrected("n1", ("d1", "d2"))
    for kept in (store, store.copy(), Store(store)):
        assert kept.superseded_by("d1") == ("n1",) and kept.superseded_by("d3") == ()
    assert ledger(store).authored == 1 and store.authored() == []
    apply(store, Unlink("n1", "d2"))
    assert store.superseded_by("d2") == ()
    apply(store, Edit("n1", "Ada Alm is a tailor, says ada."))
    assert store["n1"].flag == "correction"
    apply(store, Delete("n1"))
    assert store.fingerprint == before and store.superseded_by("d1") == () and not store.corrections()


@pytest.mark.parametrize("action", [Correct("Something new.", ("nowhere",)), Correct(TEXTS["d1"], ("d2",))])
def test_a_correction_that_names_no_document_or_says_nothing_new_changes_nothing(store: Store, action: Correct) -> None:
    before = store.fingerprint
    assert isinstance(apply(store, action), Error)
    assert store.fingerprint == before and store.issued == 0


def test_agents_are_given_no_tool_for_corrections() -> None:
    action = Correct("Ada Alm is a smith.", ("d1",))
    assert is_editing(action) and check(action, "curator") == action
    assert isinstance(check(action, "reader"), Invalid)
    assert isinstance(parse("correct", {"text": "x"}, "curator"), Invalid)


@pytest.mark.parametrize("ranking", ["paper", "apart"])
@pytest.mark.parametrize("kind", ["paper", "rich"])
def test_a_search_shows_the_correction_before_what_it_supersedes(store: Store, ranking: str, kind: str) -> None:
    environment = Environment(store, engine_of(store), ranking=ranking, observations=kind)  # type: ignore[arg-type]
    asyncio.run(environment.carry_out(Correct("Not so: tailor.", ("d1",))))
    step = asyncio.run(environment.carry_out(Search("Ada Alm is a baker.")))
    assert isinstance(step.result, Found)
    ids = step.result.ids
    assert ids.index("n1") == ids.index("d1") - 1 and set(ids) == {*TEXTS, "n1"}
    shown = {document.id: document for document in step.observation.documents}
    assert shown["d1"].superseded_by == ("n1",) and shown["d2"].superseded_by == ()
    lines = [line for line in step.observation.text.split("\n") if line.endswith(" (superseded by [n1])")]
    assert [line.startswith("[d1] ") for line in lines] == [True]
    assert dict(documents(step.observation.text))["d1"] == TEXTS["d1"], "the mark is not part of the text"


def test_a_correction_pushes_nothing_out_of_a_page(store: Store) -> None:
    for number in range(20):
        apply(store, Add(f"Ada Alm has {number} loaves."))
    environment = Environment(store, engine_of(store))
    flat = environment.page("Ada Alm has loaves", 1)
    apply(store, Correct("Something else altogether.", (flat[2],)))
    correction = next(iter(store.corrections()))
    assert environment.page("Ada Alm has loaves", 1) == [*flat[:2], correction, *flat[2:]]


def test_a_store_of_records_knows_its_corrections() -> None:
    store = Store([source("d1", "One."), Record("n1", "Two, says bo.", ("d1",), flag="correction")])
    assert store.superseded_by("d1") == ("n1",)
