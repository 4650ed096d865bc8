"""A store that reads its documents on demand behaves like a store that holds them, under any edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fixtures import ACTIONS, SENTENCES, all_of, check_invariants, records

from kbgym.backends.postgres import store_layer
from kbgym.backends.postgres.store_layer import LayeredRecords, StoreLayer, named_in
from kbgym.gym.actions import Action, Add, Added, Found, Linked, LinkMany, Opened, Read, Search
from kbgym.gym.environment import apply
from kbgym.gym.tools import check
from kbgym.store import Record, Store, source
from kbgym.store.ledger import counts_of, ledger
from kbgym.store.record import Base, Counts, fingerprint_of, normalised
from kbgym.trace.events import Acted
from kbgym.trace.replay import catch_up, replay


class ListBase:
    """A base out of a list, which counts how often it is read from beginning to end."""

    def __init__(self, kept: Iterable[Record]) -> None:
        self._kept = {record.id: record for record in kept}
        self.counts: Counts = counts_of(Store(self._kept.values()))
        self.passes = 0
        self.fetched: list[tuple[list[str], list[str]]] = []

    def layer(self) -> StoreLayer:
        return StoreLayer(self)

    def get(self, id: str) -> Record | None:
        return self._kept.get(id)

    def fetch(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Return the documents at once, and record which ones were prefetched."""
        self.fetched.append((list(ids), list(texts)))

    def number(self, id: str) -> int:
        return list(self._kept).index(id) + 1

    def inbound(self, id: str) -> tuple[str, ...]:
        return tuple(record.id for record in self._kept.values() if id in record.links)

    def saying(self, text: str) -> list[tuple[int, str]]:
        numbered = enumerate(self._kept.values(), 1)
        return [(number, record.id) for number, record in numbered if normalised(record.text) == text]

    def carriers(self, origin: str) -> list[str]:
        return [record.id for record in self._kept.values() if origin in record.origins]

    def __iter__(self) -> Iterator[Record]:
        self.passes += 1
        return iter(self._kept.values())


ORIGINALS = st.lists(st.sampled_from([f"d{n}" for n in range(7)]), unique=True, max_size=3)
TEXTS = st.sampled_from([*SENTENCES, "Di Ek lives in Malmö.", "Bo Ek lives in Umeå."])


@st.composite
def imports(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    removed = draw(ORIGINALS)
    edited = [(id, draw(TEXTS)) for id in draw(ORIGINALS) if id not in removed]
    return removed, edited, draw(ORIGINALS)


def do(store: Store, deed: Action | tuple[list[str], list[tuple[str, str]], list[str]]) -> object:
    if not isinstance(deed, tuple):
        return apply(store, check(deed, "curator"))
    removed, edited, again = deed
    carried = {origin for record in store for origin in record.origins}
    removed = [id for id in removed if id in carried]
    edited = [(id, text) for id, text in edited if id in store]
    back = [(id, f"{id} is back.") for id in again if id not in store and id not in removed]
    store.apply_import(
        removed, edited, [one for one in back if one[0] in carried], [o for o in back if o[0] not in carried]
    )
    return None


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIONS | imports(), max_size=14), st.lists(ACTIONS | imports(), max_size=6))
def test_it_is_the_store_that_holds_them(deeds: list[Action], apart: list[Action]) -> None:
    held, read = Store(records()), Store.over(ListBase(records()))
    assert all_of(read) == all_of(held)
    held, read = Store(records()), Store.over(ListBase(records()))  # nothing has been looked up yet
    for deed in deeds:
        assert do(read, deed) == do(held, deed)
    twins = held.copy(), read.copy()
    assert [do(twins[1], deed) for deed in apart] == [do(twins[0], deed) for deed in apart]
    assert all_of(read) == all_of(held), "what is done to a copy is the copy's"
    assert all_of(twins[1]) == all_of(twins[0])
    check_invariants(read)
    differing = {id for id in {r.id for r in (*read, *twins[1])} if _found(read, id) != _found(twins[1], id)}
    assert differing <= set(read.unlike(twins[1]))


def _found(store: Store, id: str) -> list[Record]:
    return [store[id]] if id in store else []


def test_no_action_reads_everything() -> None:
    base: Base = ListBase(records())
    store = Store.over(base)
    first = store.add("Di Ek lives in Malmö.")
    store.link(first, ["d0", "d1"])
    store.edit("d0", "Anna Berg lives in Oslo.")
    store.merge("d1", "d2")
    store.delete("hub/lund")
    assert store.same_text("anna berg lives in lund") == "d6" and store.fingerprint and len(store) == 8
    gone, now = store.copy().since_base()
    assert set(gone) == {"d0", "d1", "d2", "n2", "hub/lund"}
    texts = {record.id: record.text for record in now}
    assert texts["d0"] == "Anna Berg lives in Oslo." and texts[first] == "Di Ek lives in Malmö."
    assert isinstance(base, ListBase) and base.passes == 0


def test_a_ledger_counts_what_was_changed_on_top_of_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_layer, "_BATCH", 2)
    base = ListBase(record for record in records() if record.flag != "authored")
    read, held = Store.over(base), Store(base)
    base.passes = 0
    for store in (read, held):
        index = store.add("People in Lund.")
        store.link(index, ["d0", "d1"])
        store.add("Anna Berg lives in Umeå.")
        store.edit("d6", "Anna Berg lives in Umeå!")  # until now it said the same as the first
        store.merge("d1", "d2")
        store.delete("d3")
    base.fetched.clear()
    assert ledger(read) == ledger(held) and [record.id for record in read.authored()] == ["n1", "n2"]
    assert all(len(ids) + len(texts) <= 2 for ids, texts in base.fetched)
    ids, texts = ([one for pair in base.fetched for one in pair[which]] for which in (0, 1))
    assert ids == ["d6", "d1", "d2", "d3", "d3"], "those that were changed, and originals carried otherwise than before"
    assert len(texts) == len(set(texts)) == 6, "what is said now and was not, and the other way round"
    assert (ledger(read).lost_origins, ledger(read).orphans, ledger(read).same_texts) == (1, 1, 0)
    assert base.passes == 0


def test_an_original_that_several_carry_is_counted_as_they_go() -> None:
    kept = [source("a", "A."), Record("b", "B.", origin="a"), Record("c", "C.", origin="c", absorbed=("a",))]
    base = ListBase(kept)
    read, held = Store.over(base), Store(kept)
    counted = []
    for gone in ("b", "c", "a"):
        for store in (read, held):
            store.delete(gone)
        assert ledger(read) == ledger(held)
        counted.append((ledger(read).duplicated_origins, ledger(read).lost_origins))
    assert counted == [(1, 0), (0, 1), (0, 2)]
    base.fetched.clear()
    linked = Store.over(base)
    linked.link("a", ["b"])
    assert ledger(linked).same_texts == 0 and base.fetched == [(["a"], [])], "what says the same is not looked up"


def test_what_is_read_ahead_is_the_base_s() -> None:
    base = ListBase(records())
    store = Store.over(base)
    store.edit("d0", "Anna Berg lives in Oslo.")
    new = store.add("Di Ek lives in Malmö.")
    store.fetch(["d1", "d0", new, "d1", "d2"], ["One  more.", "one more", "Two."])
    assert base.fetched == [(["d1", "d2"], ["one more", "two"])]
    Store(records()).fetch(["d1"], ["One more."])  # all of it is held


def test_a_copy_knows_who_says_what_came_before_it() -> None:
    held, read = Store(records()), Store.over(ListBase(records()))
    for store in (held, read):
        new = store.add("Di Ek lives in Malmö.")
        store.edit("d1", "Bo Ek lives in Umeå.")
        store.apply_import((), [("d4", "di ek lives in malmö")], (), ())
        store.delete("d0")
        store.apply_import((), (), (), [("a9", "Bakers.")])
        twin = store.copy()
        assert twin.same_text("bakers") == "n2", "the last of the base stands before what came since"
        assert twin.same_text("di ek lives in malmö") == "d4", "it stands before the other"
        assert twin.same_text("DI EK lives in Malmö.", other_than="d4") == new
        assert twin.same_text("Bo Ek lives in Umeå.") == "d1" and twin.same_text("Bo Ek lives in Lund.") is None
        assert twin.same_text("Anna Berg lives in Lund.") == "d6"
        assert twin.inbound("d0") == () and "d0" not in twin


def test_the_first_that_came_stands_behind_the_last_of_the_base() -> None:
    for store in (Store(records()), Store.over(ListBase(records()))):
        store.apply_import((), (), (), [("a9", "Bakers.")])
        assert store.copy().same_text("bakers") == "n2", "whatever their ids are"


def test_what_came_since_goes_like_the_rest() -> None:
    records_now = LayeredRecords(ListBase(records()))
    records_now["new"] = source("new", "New.")
    assert len(records_now) == 10 and list(records_now)[-1] == "new"
    del records_now["new"]
    del records_now["d0"]
    for gone in ("new", "d0", "nobody"):
        assert gone not in records_now
        with pytest.raises(KeyError):
            del records_now[gone]
        with pytest.raises(KeyError):
            records_now[gone]
    assert len(records_now) == 8
    records_now["d0"] = source("d0", "Again.")
    assert list(records_now)[-1] == "d0" and len(records_now) == 9


def test_codes_go_on_where_the_base_ended() -> None:
    from kbgym.codes import code

    kept = [source(code(number), f"Sentence {number}.") for number in (1, 2, 9)]
    assert Store.over(ListBase(kept)).add("One more.") == Store(kept).add("One more.") == code(10)


def test_a_fingerprint_needs_no_store() -> None:
    assert fingerprint_of(iter(records())) == Store(records()).fingerprint
    assert Store.over(ListBase(records())).fingerprint == Store(records()).fingerprint


def test_a_replay_reads_ahead_what_its_events_name(monkeypatch: pytest.MonkeyPatch) -> None:
    base = ListBase(records())
    store = Store.over(base)
    events = [
        Acted(1, "forward", 1, Search("Lund"), Found(("d0", "d1"), 1)),
        Acted(1, "forward", 2, Read("hub/lund"), Opened("hub/lund", ("d1", "d0"))),
        Acted(1, "backward", 1, Add("Di Ek lives in Malmö."), Added("n3")),
        Acted(1, "backward", 2, LinkMany("n3", ("d2", "d4")), Linked("n3", ("d2", "d4"))),
    ]
    assert set(named_in(events[1])) == {"hub/lund", "d1", "d0"}
    assert {"n3", "d2", "d4"} == set(named_in(events[3]))
    catch_up(store, events, 0, lambda to: Store())
    (ids, texts), *_ = base.fetched
    assert {"d0", "d1", "d2", "d4", "hub/lund"} <= set(ids) and texts == ["di ek lives in malmö"]
    assert store["n3"].links == ("d2", "d4")
    monkeypatch.setattr("kbgym.trace.replay._BATCH", 2)
    base.fetched.clear()
    assert replay(lambda: Store.over(base), events)["n3"].links == ("d2", "d4")
    assert [set(ids) & {"d0", "d1", "d2", "d4"} for ids, _ in base.fetched] == [{"d0", "d1"}, {"d2", "d4"}]
