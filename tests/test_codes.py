"""Ids that are codes: one to one, counted on by the store, never handed out twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbgym.codes import MOST, code, number_of
from kbgym.store import Record, Store


@given(st.integers(1, MOST - 1))
def test_a_code_is_read_back(number: int) -> None:
    assert number_of(code(number)) == number


@given(st.text(max_size=9))
def test_other_ids_are_no_codes_unless_they_are_one(id: str) -> None:
    found = number_of(id)
    assert found == 0 or code(found) == id


def test_the_usual_ids_are_no_codes() -> None:
    usual = [f"d{number:05d}" for number in range(3_000)] + [f"n{number}" for number in range(3_000)]
    assert not any(map(number_of, usual))


def coded(count: int) -> Store:
    return Store(Record(code(number), f"Fact {number}.", origin=code(number)) for number in range(1, count + 1))


def test_a_store_of_codes_counts_on_in_codes() -> None:
    store = coded(5)
    assert store.coded and [store.add("One."), store.add("Two.")] == [code(6), code(7)]
    assert Store(list(store)).add("Three.") == code(8)


def test_a_code_is_never_handed_out_again() -> None:
    store = coded(3)
    gone = store.add("One.")
    earlier = coded(3)
    store.delete(gone)
    assert store.add("Two.") != gone
    opened = Store(list(store))
    earlier.never_reissue(opened)
    assert earlier.add("Three.") not in opened


def test_a_store_of_other_ids_counts_as_before() -> None:
    store = Store([Record("d1", "Fact.")])
    assert not store.coded and store.add("One.") == "n1"
