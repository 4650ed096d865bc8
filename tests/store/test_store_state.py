"""The store's operations one by one: what each does, what each refuses, and what a merge carries over."""

from __future__ import annotations

import pytest
from store_fixtures import check_invariants

from kbgym.errors import BadInput
from kbgym.store import Record, Refused, Store, source


def small() -> Store:
    return Store([source("a", "A."), source("b", "B."), source("c", "C."), source("d", "D.")])


def linked(store: Store, *pairs: str) -> Store:
    for pair in pairs:
        assert store.link(pair[0], pair[1])[0] == (pair[1],)
    return store


def test_add_gives_fresh_ids_and_authored_documents() -> None:
    store = small()
    assert [store.add("X."), store.add("Y.")] == ["n1", "n2"]
    assert store["n1"] == Record("n1", "X.", flag="authored")
    store.delete("n2")
    assert store.add("Z.") == "n3", "a deleted document's id never comes back"


def test_ids_of_initial_documents_never_come_back_either() -> None:
    store = Store([Record("n2", "Two.", flag="authored"), source("n7", "Seven."), source("n" + "9" * 30, "Long.")])
    store.delete("n7")
    assert store.add("New.") == "n8"


@pytest.mark.parametrize("id", ["n", "nn1", "n1x", "n٣", "N5", "m5", "n-5", "n 5"])
def test_other_ids_do_not_move_the_counter(id: str) -> None:
    assert Store([source(id, "Text.")]).add("New.") == "n1"


def test_edit_flags_and_keeps_links() -> None:
    store = linked(small(), "ab", "ba")
    store.edit("a", "Other.")
    assert store["a"] == Record("a", "Other.", ("b",), "a", "edited")
    new = store.add("X.")
    store.edit(new, "Y.")
    assert store[new].flag == "authored", "what an agent wrote stays authored"


def test_delete_cascades() -> None:
    store = linked(small(), "ab", "ac", "bc", "ca", "cd")
    store.delete("c")
    assert store["a"].links == ("b",) and store["b"].links == ()
    assert store.inbound("d") == () and store.inbound("a") == ()
    assert store.links == 1
    check_invariants(store)


def test_link_names_what_it_does_not_link() -> None:
    store = linked(small(), "ab")
    assert store.link("a", ["b", "c", "a", "zz", "c", "d"]) == (("c", "d"), ("zz",), ("b",), True)
    assert store["a"].links == ("b", "c", "d"), "in the order asked for"


def test_unlink() -> None:
    store = linked(small(), "ab", "ac")
    store.unlink("a", "b")
    assert store["a"].links == ("c",) and store.inbound("b") == ()
    with pytest.raises(Refused, match="a has no link to b"):
        store.unlink("a", "b")


class TestMerge:
    def test_survivor_keeps_text_absorbs_origins_unites_links(self) -> None:
        store = linked(small(), "ac", "bc", "bd")
        store.merge("a", "b")
        assert "b" not in store
        assert store["a"] == Record("a", "A.", ("c", "d"), "a", absorbed=("b",))
        assert store.merges == 1
        check_invariants(store)

    def test_inbound_links_are_rewired_in_place_without_doubles(self) -> None:
        store = linked(small(), "cb", "cd", "da", "dc", "db")
        store.merge("a", "b")
        assert store["c"].links == ("a", "d"), "at the place the other had"
        assert store["d"].links == ("a", "c"), "already linked to the survivor: no double"
        check_invariants(store)

    def test_no_self_links_whichever_way_they_were_linked(self) -> None:
        for pairs in (["ab"], ["ba"], ["ab", "ba"], ["ab", "bc", "ca"]):
            store = linked(small(), *pairs)
            store.merge("a", "b")
            assert "a" not in store["a"].links
            check_invariants(store)

    def test_absorbed_origins_travel_on(self) -> None:
        store = small()
        store.merge("a", "b")
        store.merge("c", "a")
        assert store["c"].origins == ("c", "a", "b")

    def test_an_origin_is_not_absorbed_by_the_document_that_has_it(self) -> None:
        store = Store([source("a", "A."), Record("b", "B.", origin="b", absorbed=("a", "z"))])
        store.merge("a", "b")
        assert store["a"].absorbed == ("b", "z")

    def test_with_itself_or_nobody(self) -> None:
        store = small()
        with pytest.raises(Refused, match="itself"):
            store.merge("a", "a")
        with pytest.raises(Refused, match="no document zz"):
            store.merge("a", "zz")
        assert len(store) == 4


def test_freeze_refuses_every_change() -> None:
    store = linked(small(), "ab").freeze()
    before = list(store)
    for change in (
        lambda: store.add("X."),
        lambda: store.edit("a", "X."),
        lambda: store.delete("a"),
        lambda: store.link("a", ["c"]),
        lambda: store.unlink("a", "b"),
        lambda: store.merge("a", "b"),
    ):
        with pytest.raises(Refused, match="frozen"):
            change()
    assert list(store) == before
    assert not store.copy().frozen, "a copy is a store of its own"


@pytest.mark.parametrize("change", ["link", "unlink", "delete", "merge", "add"])
def test_a_store_and_its_copies_do_not_see_each_others_changes(change: str) -> None:
    changes = {
        "link": lambda store: store.link("c", ["b", "d"]),
        "unlink": lambda store: store.unlink("a", "b"),
        "delete": lambda store: store.delete("b"),
        "merge": lambda store: store.merge("b", "d"),
        "add": lambda store: store.link(store.add("X."), ["b"]),
    }

    def seen(store: Store) -> object:
        return list(store), {record.id: store.inbound(record.id) for record in store}, store.links, store.fingerprint

    first = linked(small(), "ab", "cb", "ad") if change == "merge" else linked(small(), "ab", "ad")
    second = first.copy()
    third = second.copy()
    before = seen(first)
    for one, others in ((first, (second, third)), (third, (second,))):
        changes[change](one)
        check_invariants(one)
        assert seen(one) != before and all(seen(other) == before for other in others)
    assert seen(first) == seen(third)


def test_a_document_that_comes_back_after_a_copy_can_be_linked_to_again() -> None:
    store = linked(small(), "ab")
    store.copy()
    store.link("c", ["b"])
    store.delete("b")
    store.apply_import((), (), [("b", "B.")], ())
    store.link("d", ["b"])
    assert store.inbound("b") == ("d",)
    check_invariants(store)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([source("a", "A."), source("a", "B.")], "'a' occurs twice"),
        ([Record("a", "A.", ("b",))], "points to 'b'"),
        ([Record("a", "A.", ("a",))], "'a' links to itself"),
        ([Record("a", "A.", ("b", "b")), source("b", "B.")], "twice"),
    ],
)
def test_initial_records_are_checked(records: list[Record], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Store(records)


def test_origins_are_counted_once_and_only_where_there_are_any() -> None:
    records = [source("a", "A."), Record("n1", "X.", flag="authored", absorbed=("b", "a")), Record("n2", "Y.")]
    assert Store(records).origins == 2 and Store().origins == 0


def test_same_text_and_its_upkeep() -> None:
    store = small()
    assert store.same_text(" a ") == "a" and store.same_text("A.", other_than="a") is None
    store.edit("a", "Else.")
    assert store.same_text("a") is None and store.same_text("ELSE") == "a"
    store.delete("a")
    assert store.same_text("else") is None
    new = store.add("Else")
    assert store.same_text("else.") == new


def test_a_deleted_text_is_kept_nowhere() -> None:
    store = small()
    store.same_text("x")
    new = store.add("A secret of long ago.")
    store.link("a", [new])
    store.delete(new)
    assert "secret" not in repr(vars(store))


def test_fingerprint_sees_every_byte_and_no_history() -> None:
    store = linked(small(), "ab", "ac")
    other = linked(small(), "ac", "ab")
    assert store.fingerprint != other.fingerprint, "link order counts"
    other.unlink("a", "c")
    other.link("a", ["c"])
    assert store.fingerprint == other.fingerprint, "how it came about does not"
    assert len(store.fingerprint) == 64


def test_refusals_show_short_printable_ids() -> None:
    store = small()
    for id in ("x" * 1000, "\u202eabc", "a\nb", ""):
        with pytest.raises(Refused) as refusal:
            store.get(id)
        assert str(refusal.value).isprintable() and len(str(refusal.value)) < 120
