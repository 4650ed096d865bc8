"""Blame, log and diff on histories known by hand, and the laws they must keep on any history."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fixtures import ACTIONS, Live

from kbgym.errors import BadInput
from kbgym.gym.actions import Action, Add, Delete, Edit, Link, LinkMany, Unlink
from kbgym.store import Record, Store, ledger, source
from kbgym.trace.events import Began, Committed, Ended, Graded, Imported, Noted, committed
from kbgym.trace.folder import StoreFolder
from kbgym.trace.history import Author, Blame, Difference, LinkChange, TextChange, blame, diff, log
from kbgym.worlds.world import Document


def blamed(live: Live, id: str, at: int | None = None) -> Blame:
    folder = StoreFolder(live.path)
    return blame(folder.initial.copy, folder.events, id, at)


def by(iteration: int, step: int) -> Author:
    return Author(iteration, "backward", step, "tester", f"q{iteration}", f"What is question {iteration}?")


@pytest.fixture
def live(tmp_path: Path) -> Live:
    live = Live(tmp_path / "s")
    live.act(Add("Residents of Malmö."))  # n3
    live.act(LinkMany("n3", ("d0", "d1")))
    live.commit(graded=1.0)
    live.act(Edit("n3", "Residents of Lund and Malmö."))
    live.act(Unlink("n3", "d0"))
    live.commit(graded=0.25)
    live.act(Edit("d5", "Bo Ek lives in Lund"))  # folds d5 into d1
    live.act(Link("n3", "d4"))
    live.act(Delete("nobody"))
    live.commit()
    return live


class TestBlame:
    def test_the_life_of_a_document(self, live: Live) -> None:
        found = blamed(live, "n3")
        assert not found.initial and found.record == live.store["n3"]
        assert [(change.kind, change.by) for change in found.changes] == [
            ("written", by(1, 1)),
            ("linked", by(1, 2)),
            ("edited", by(2, 1)),
            ("linked", by(2, 2)),
            ("linked", by(3, 2)),
        ]
        assert found.changes[0].text == "Residents of Malmö."
        assert found.changes[3].removed == ("d0",)
        assert [(link.target, link.by) for link in found.links] == [("d1", by(1, 2)), ("d4", by(3, 2))]

    def test_merges_are_told_on_both_sides(self, live: Live) -> None:
        survivor, gone = blamed(live, "d1"), blamed(live, "d5")
        assert survivor.initial
        assert [(c.kind, c.other, c.by) for c in survivor.changes] == [("merged", "d5", by(3, 1))]
        assert gone.record is None and [(c.kind, c.other) for c in gone.changes] == [("folded", "d1")]

    def test_initial_links_have_no_author_and_rewired_ones_have(self, live: Live) -> None:
        assert [(link.target, link.by) for link in blamed(live, "hub/lund").links] == [("d1", None), ("d0", None)]
        live.act(Edit("d4", "anna berg lives in lund."))  # n2 linked to d4, and links to d0 now
        live.commit()
        assert [(link.target, link.by) for link in blamed(live, "n2").links] == [("d0", by(4, 1)), ("hub/lund", None)]

    def test_a_sentence_said_again_is_recorded_with_its_document(self, live: Live) -> None:
        live.act(Add("bo ek works as a baker"))
        live.commit()
        (change,) = blamed(live, "d4").changes
        assert (change.kind, change.text, change.other, change.by) == (
            "merged",
            "bo ek works as a baker",
            None,
            by(4, 1),
        )

    def test_at_an_iteration_and_deleted(self, live: Live) -> None:
        assert [change.kind for change in blamed(live, "n3", 1).changes] == ["written", "linked"]
        live.act(Delete("n3"))
        live.commit()
        found = blamed(live, "n3")
        assert found.record is None and found.changes[-1].kind == "deleted" and found.changes[-1].by == by(4, 1)

    def test_what_was_rolled_back_is_left_out(self, live: Live) -> None:
        live.rollback(1)
        assert [change.by.iteration for change in blamed(live, "n3").changes] == [1, 1]
        live.act(Link("n3", "d2"))
        live.commit()
        assert [(link.target, link.by) for link in blamed(live, "n3").links] == [
            ("d0", by(1, 2)),
            ("d1", by(1, 2)),
            ("d2", by(5, 1)),
        ]
        live.rollback(0)
        with pytest.raises(BadInput, match="no document 'n3'"):
            blamed(live, "n3")

    def test_an_import_is_nobodys_step(self, live: Live) -> None:
        changed = Document("d0", "Anna Berg lives in Ystad.")
        imported = Imported(4, edited=(changed,))
        live.store.apply_import((), [(changed.id, changed.text)], (), ())
        live.writer.commit([imported, committed(4, 4, live.store)])
        live.close()
        (change,) = blamed(live, "d0").changes
        assert (change.kind, change.by) == ("edited", Author(4, "idle", 0))

    def test_nobody(self, live: Live) -> None:
        with pytest.raises(BadInput):
            blamed(live, "zz")


class TestLog:
    def test_an_add_of_what_is_there_is_refused_and_no_merge(self, live: Live) -> None:
        """`log` and the ledger count the same merges."""
        live.act(Add("bo ek works as a baker"))
        live.commit()
        entries = log(StoreFolder(live.path).events)
        assert entries[-1].edits == {"refused": 1}
        assert sum(entry.edits.get("merges", 0) for entry in entries) == ledger(live.store).merged == 1

    def test_an_entry_an_iteration(self, live: Live) -> None:
        live.rollback(1, "a bad idea")
        live.close()
        entries = log(StoreFolder(live.path).events)
        assert [entry.iteration for entry in entries] == [1, 2, 3, 4]
        first, second, third, back = entries
        assert (first.question, first.text, first.outcome, first.f1) == ("q1", "What is question 1?", "answered", 1.0)
        assert first.agents == {"backward": "tester"}
        assert [entry.edits for entry in entries] == [
            {"adds": 1, "links": 2},
            {"edits": 1, "unlinks": 1},
            {"merges": 1, "links": 1},
            {},
        ]
        assert sum(entry.edits.get("merges", 0) for entry in entries[:3]) == 1
        assert (second.f1, third.f1, third.errors) == (0.25, None, 1)
        assert [entry.undone for entry in entries] == [False, True, True, False]
        assert (back.rollback_to, back.reason, back.position) == (1, "a bad idea", 1)
        assert [(entry.documents, entry.links) for entry in entries] == [
            (len(state), sum(len(record.links) for record in state)) for n, state in live.states.items() if n
        ]

    def test_a_batch_is_an_entry_for_each_of_its_questions(self, live: Live) -> None:
        live.close()
        with StoreFolder(live.path).resume() as writer:
            store = live.store.fingerprint, len(live.store), live.store.links
            writer.commit(
                [
                    Noted(3, "eval", {}),
                    Began(4, "forward", "a", "q4"),
                    Began(5, "forward", "b", "q5"),
                    Ended(5, "forward", "answered"),
                    Graded(5, "q5", ("x",), 1.0, 1.0, "x"),
                    Ended(4, "forward", "out_of_budget"),
                    Graded(4, "q4", ("x",), 0.0, 0.0),
                    Committed(5, 5, *store),
                ]
            )
        entries = log(StoreFolder(live.path).events)[3:]
        assert [(e.iteration, e.commit, e.question, e.outcome, e.f1, e.notes) for e in entries] == [
            (4, 5, "q4", "out_of_budget", 0.0, ()),
            (5, 5, "q5", "answered", 1.0, ("eval",)),
        ]

    def test_the_outcome_is_the_forward_passs_and_without_one_the_backwards(self, live: Live) -> None:
        store = live.store.fingerprint, len(live.store), live.store.links
        live.writer.commit(
            [Ended(4, "forward", "answered"), Ended(4, "backward", "out_of_budget"), Committed(4, 4, *store)]
        )
        live.writer.commit([Ended(5, "backward", "out_of_budget"), Committed(5, 5, *store)])
        live.close()
        assert [entry.outcome for entry in log(StoreFolder(live.path).events)[3:]] == ["answered", "out_of_budget"]

    def test_nothing_yet(self, tmp_path: Path) -> None:
        live = Live(tmp_path / "s")
        assert log(StoreFolder(live.path).events) == [] == log(())


class TestDiff:
    def test_every_kind_of_difference(self) -> None:
        before = Store([source("a", "A."), source("b", "B."), source("c", "C."), Record("h", "H.", ("a", "b"))])
        after = Store(
            [
                Record("a", "A!", ("c",), "a", "edited"),
                source("c", "C."),
                Record("h", "H.", ("a",), absorbed=("z",)),
                Record("n", "N.", ("a", "c"), flag="authored"),
            ]
        )
        assert diff(before, after) == Difference(
            added=(after["n"],),
            removed=(before["b"],),
            edited=(TextChange("a", "A.", "A!"),),
            links_added=(LinkChange("a", "c"), LinkChange("n", "a"), LinkChange("n", "c")),
            links_removed=(LinkChange("h", "b"),),
            provenance=("a", "h"),
        )

    def test_the_order_of_links_counts(self) -> None:
        one = Store([source("a", "A."), source("b", "B."), Record("h", "H.", ("a", "b"))])
        other = Store([source("a", "A."), source("b", "B."), Record("h", "H.", ("b", "a"))])
        assert diff(one, other) == Difference(reordered=("h",))

    def test_equal_stores_do_not_differ(self, live: Live) -> None:
        assert diff(live.store, live.store.copy()) == Difference()


@settings(max_examples=60)
@given(st.lists(st.lists(ACTIONS, max_size=8), min_size=1, max_size=4), st.data())
def test_laws_of_history(iterations: list[list[Action]], data: st.DataObject) -> None:
    """A diff is empty exactly when the bytes are equal; blame knows the author of every link that was not there."""
    with tempfile.TemporaryDirectory() as name:
        live = Live(Path(name))
        for actions in iterations:
            for action in actions:
                live.act(action)
            live.commit()
        live.close()
        folder = StoreFolder(Path(name))
        last, begin = folder.store(), folder.store(0)
        one, other = (data.draw(st.integers(0, live.iteration)) for _ in "ab")
        before, after = folder.store(one), folder.store(other)
        there, back = diff(before, after), diff(after, before)
        assert (there != Difference()) == (before.fingerprint != after.fingerprint)
        assert set(there.links_added) == set(back.links_removed)
        assert [record.id for record in there.removed] == [record.id for record in back.added]
        for record in last:
            found = blame(folder.initial.copy, folder.events, record.id)
            assert found.record == record
            assert found.initial == (record.id in begin)
            assert found.initial or found.changes[0].kind == "written"
            initial_links = begin[record.id].links if record.id in begin else ()
            for link in found.links:
                assert link.by is not None or link.target in initial_links
        for entry, commit in zip(log(folder.events), live.states, strict=False):
            assert entry.iteration == commit + 1 and entry.documents == len(live.states[entry.iteration])
