"""A journal is a store that notes what changes: the notes are the whole difference, in the order it happened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from playing import ACTIONS, check_invariants, records

from kbgym.actions import Action
from kbgym.environment import apply
from kbgym.store import Record, Store, source
from kbgym.tools import check
from kbgym.trace.journal import Journal


def all_of(store: Store) -> tuple[object, ...]:
    """Everything about a store that can be asked, the order of records and of inbound links too."""
    inbound = {record.id: store.inbound(record.id) for record in store}
    return list(store), inbound, store.fingerprint, store.links, store.merges, store.origins


def links_of(store: Store) -> set[tuple[str, str]]:
    return {(record.id, target) for record in store for target in record.links}


@given(st.lists(ACTIONS, max_size=12), st.lists(ACTIONS, max_size=12))
def test_the_notes_are_the_difference(first: list[Action], then: list[Action]) -> None:
    plain, journal = Store(records()), Journal(records())
    assert not (journal.before or journal.added or journal.linked or journal.unlinked or journal.whole)
    for actions in (first, then):
        was = plain.copy()
        journal.clear()
        for action in actions:
            checked = check(action, "curator")
            assert apply(journal, checked) == apply(plain, checked)
        assert all_of(journal) == all_of(plain)
        check_invariants(journal)
        changed = {id for id in {r.id for r in [*was, *plain]} if _get(was, id) != _get(plain, id)}
        assert changed <= journal.before.keys(), "whatever changed is noted"
        assert all(journal.before[id] == _get(was, id) for id in journal.before)
        assert list(journal.added) == [record.id for record in plain if record.id not in was]
        kept = {pair for pair in links_of(was) if pair not in journal.unlinked} | set(journal.linked)
        assert kept == links_of(plain)
        assert not journal.whole
    assert journal.issued == int(plain.copy().add("Next.")[1:]) - 1


def _get(store: Store, id: str) -> Record | None:
    return store[id] if id in store else None  # noqa: SIM401 - a store's get refuses what is not there


def small() -> Journal:
    return Journal([source("a", "A."), source("b", "B."), source("c", "C.")])


def test_what_came_and_went_again() -> None:
    journal = small()
    made = journal.add("New.")
    journal.link("a", [made, "b"])
    assert list(journal.linked) == [("a", made), ("a", "b")] and list(journal.added) == [made]
    journal.unlink("a", "b")
    assert list(journal.linked) == [("a", made)] and not journal.unlinked, "it was not there before"
    journal.delete(made)
    assert not journal.added and not journal.linked and not journal.unlinked
    assert journal.before == {made: None, "a": source("a", "A.")}
    journal.clear()
    journal.link("a", ["b"])
    journal.clear()
    journal.unlink("a", "b")
    assert list(journal.unlinked) == [("a", "b")] and journal.before == {"a": Record("a", "A.", ("b",), "a")}
    journal.link("a", ["b"])
    assert list(journal.unlinked) == [("a", "b")] == list(journal.linked), "it goes and comes: its place is another"
    journal.clear()
    journal.link("a", ["c"])
    assert list(journal.linked) == [("a", "c")] and not journal.unlinked, "the link to b was there"


def test_becoming_the_very_same_store_changes_nothing() -> None:
    journal = small()
    journal.link("b", ["a"])
    journal.link("c", ["a"])
    journal.clear()
    journal.become(journal.copy())
    assert not journal.whole
    same_content = Store((journal["c"], journal["b"], journal["a"]))
    assert same_content.fingerprint == journal.fingerprint
    journal.become(same_content)
    assert journal.whole and [record.id for record in journal] == ["c", "b", "a"], "the order counts"
    journal.clear()
    other = journal.copy()
    other.unlink("c", "a")
    other.link("c", ["a"])
    assert other.inbound("a") == ("b", "c") != journal.inbound("a")
    journal.become(other)
    assert journal.whole, "so does the order of inbound links"
    journal.clear()
    longer = journal.copy()
    longer.add("More.")
    journal.become(longer)
    assert journal.whole and len(journal) == 4 and longer is not journal


def test_a_journal_goes_on_from_a_store_and_shares_nothing_but_records() -> None:
    store = Store(records())
    store.same_text("x")  # has looked at texts
    store.merge("d0", "d6")
    journal = Journal.of(store)
    assert all_of(journal) == all_of(store) and not journal.before and journal.issued == 2
    assert journal.same_text("bakers") == "n2"
    journal.edit("n2", "Millers.")
    journal.delete("d1")
    assert "d1" in store and store.same_text("bakers") == "n2" and journal.same_text("bakers") is None
    assert journal.add("New.") == store.add("New.")


def test_the_first_of_two_equal_texts_stays_the_first() -> None:
    """It is in the order in which texts came, which records do not tell."""
    store = Store([source("a", "Same."), source("b", "Other.")])
    assert store.same_text("same") == "a"
    store.edit("b", "same")
    store.edit("a", "Else.")
    store.edit("a", "Same.")
    assert store.same_text("SAME") == Journal.of(store).same_text("SAME") == "b"
    assert Store(store).same_text("SAME") == "a"


def test_counters_and_the_order_of_links_are_restored() -> None:
    journal = small()
    journal.link("c", ["a"])
    journal.link("b", ["a", "c"])
    order = journal.inbound_order()
    assert sorted(order, key=order.__getitem__) == [("c", "a"), ("b", "a"), ("b", "c")]
    again = Journal(list(journal))
    assert again.inbound("a") == ("b", "c")
    again.restore(7, 2, 5, sorted(order, key=order.__getitem__))
    assert again.inbound("a") == ("c", "b") == journal.inbound("a") and again.inbound("c") == ("b",)
    assert (again.issued, again.merges, again.origins) == (7, 2, 5) and again.add("New.") == "n8"
