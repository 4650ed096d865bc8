"""The ledger on a store whose every count is known by hand."""

from __future__ import annotations

from kbgym.store import Ledger, Record, Store, ledger, source


def test_every_count() -> None:
    store = Store([*(source(f"d{n}", f"Fact {n}.") for n in range(6)), source("d6", "fact  5")])
    assert ledger(store).same_texts == 1
    index, lonely, pointed = store.add("Facts."), store.add("Nothing."), store.add("Pointed at.")
    store.link(index, ["d0", "d1", pointed])
    store.edit("d0", "Fact zero.")
    store.merge("d1", "d2")
    store.delete("d3")
    store.merge("d6", "d5")
    assert ledger(store) == Ledger(
        documents=7,  # d0 d1 d4 d6, three authored
        links=3,
        origins=7,
        lost_origins=1,  # d3; d2 and d5 are absorbed
        duplicated_origins=0,
        untouched=3,
        edited=1,
        authored=3,
        merged=2,
        orphans=1,  # lonely
        empty_indexes=2,  # lonely and pointed
        same_texts=0,
    )
    assert lonely in store


def test_an_edit_does_not_lose_an_origin_and_a_delete_of_the_absorber_loses_all() -> None:
    store = Store([source("a", "A."), source("b", "B.")])
    store.edit("a", "Something else entirely.")
    assert ledger(store).lost_origins == 0
    store.merge("a", "b")
    assert ledger(store).lost_origins == 0
    store.delete("a")
    assert ledger(store).lost_origins == 2


def test_an_origin_two_documents_carry_is_counted_once() -> None:
    store = Store([source("a", "A."), Record("b", "B.", origin="a"), Record("c", "C.", origin="c", absorbed=("a",))])
    counts = ledger(store)
    assert (counts.origins, counts.duplicated_origins, counts.lost_origins) == (2, 1, 0)
    store.delete("a")
    assert ledger(store).lost_origins == 0, "others still carry it"
    store.merge("b", "c")
    assert ledger(store).duplicated_origins == 0, "one document that has an origin twice over carries it once"
