"""The same protocol on a folder and on PostgreSQL: begin, commit, resume, roll back, look into history, start again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_stores import LiveClient
from postgres import Maker
from store_fixtures import ACTIONS, HASH, check_invariants, engine_of, lines, records

from kbgym.canonical import encode
from kbgym.cli.main import run
from kbgym.errors import BadInput
from kbgym.gym.actions import Action, Add, Added, Delete, Edit, Link, LinkMany, Merged, Search, Unlink
from kbgym.gym.environment import Environment
from kbgym.gym.tools import Role
from kbgym.store import Record, Store
from kbgym.trace.backend import copy_store, open_backend
from kbgym.trace.events import Acted, Began, Committed, Event, Imported, Noted
from kbgym.trace.history import blame, diff, log
from kbgym.trace.replay import effective, replay
from kbgym.worlds.world import Document


class Live:
    """A store being written, and a copy of every committed state to compare with."""

    def __init__(self, name: str) -> None:
        self.name = name
        place = open_backend(name)
        self.writer = place.start(HASH, {"seed": 0}) if place.genesis is None else place.resume()
        self.states: dict[int, list[Record]] = {0: list(place.initial)}
        self.iteration = place.iteration
        self.settle(place.store())
        self.pending: list[Event] = []

    def settle(self, store: Store) -> None:
        self.environment = Environment(store, engine_of(store))

    @property
    def store(self) -> Store:
        return self.environment.store

    def act(self, action: Action, role: Role = "curator") -> None:
        number = self.iteration + 1
        if not self.pending:
            self.pending.append(Began(number, "backward", "tester", f"q{number}", f"What is question {number}?"))
        done = asyncio.run(self.environment.step(action, role))
        self.pending.append(Acted(number, "backward", len(self.pending), done.action, done.result, done.verdict))

    def commit(self) -> None:
        self.iteration += 1
        with self.writer.locked() if hasattr(self.writer, "locked") else nullcontext() as news:
            assert not news
            self.writer.commit([*self.pending, committed(self.iteration, self.store)])
        self.pending = []
        self.states[self.iteration] = list(self.store)

    def rollback(self, to: int, reason: str = "") -> None:
        self.close()
        place = open_backend(self.name)
        self.settle(place.rollback(to, reason))
        self.iteration += 1
        self.states[self.iteration] = list(self.store)
        self.writer = place.resume()

    def close(self) -> None:
        self.pending = []
        self.writer.close()


def committed(iteration: int, store: Store) -> Committed:
    return Committed(iteration, iteration, store.fingerprint, len(store), store.links)


def play(make: Maker) -> Live:
    """Five iterations: add and link, edit into a merge, delete, back to 1, add."""
    live = Live(make(records()))
    live.act(Search("Lund"), "reader")
    live.act(Add("Readers of Ibsen."))
    live.act(LinkMany("n3", ("d1", "d0", "nobody")))
    live.commit()
    live.act(Edit("d4", "anna berg lives in lund."))
    live.act(Unlink("n3", "d1"))
    live.act(Link("n3", "d2"))
    live.commit()
    live.act(Delete("d0"))
    live.act(Delete("d0"))
    live.commit()
    live.rollback(1, "wrong")
    live.act(Add("Readers of Strindberg."))
    live.commit()
    live.close()
    return live


@pytest.fixture
def live(make: Maker) -> Live:
    return play(make)


def same(one: Store, other: Store) -> None:
    """The same store in everything that can be seen or will matter later."""
    assert lines(list(one)) == lines(list(other))
    assert [one.inbound(r.id) for r in one] == [other.inbound(r.id) for r in other]
    assert (one.merges, one.origins, one.links) == (other.merges, other.origins, other.links)
    assert one.copy().add("Zz.") == other.copy().add("Zz."), "the next id"


def test_every_iteration_comes_back_in_every_byte(live: Live) -> None:
    place = open_backend(live.name)
    assert place.iteration == 5 and place.position == 5
    for iteration, state in live.states.items():
        assert lines(list(place.store(iteration))) == lines(state)
        assert lines(list(open_backend(f"{live.name}@{iteration}").store())) == lines(state)
    same(place.store(), replay(place.initial.copy, place.events))
    place.verify()
    check_invariants(place.store())
    for at in (-1, 6, 99):
        with pytest.raises(BadInput, match=f"no iteration {at}: this store has 0 to 5"):
            place.store(at)


def test_history(live: Live) -> None:
    place = open_backend(live.name)
    entries = log(place.events)
    assert [entry.iteration for entry in entries] == [1, 2, 3, 4, 5]
    assert [entry.undone for entry in entries] == [False, True, True, False, False]
    assert (entries[3].rollback_to, entries[3].reason) == (1, "wrong")
    assert [entry.edits for entry in entries[:3]] == [
        {"adds": 1, "links": 2},
        {"merges": 1, "links": 1, "unlinks": 1},
        {"deletes": 1},
    ]
    found = blame(place.initial.copy, place.events, "n3")
    assert [(change.kind, change.by.iteration) for change in found.changes] == [("written", 1), ("linked", 1)]
    there = diff(place.store(1), place.store())
    assert [record.id for record in there.added] == ["n4"] and not there.removed
    assert [event.iteration for event in effective(place.events) if isinstance(event, Acted)] == [1, 1, 1, 5]


def test_it_goes_on_where_it_stopped(live: Live) -> None:
    again = Live(live.name)
    assert again.iteration == 5 and lines(list(again.store)) == lines(live.states[5])
    again.act(Add("Readers of Lagerlöf."))
    again.commit()
    again.close()
    place = open_backend(live.name)
    assert place.iteration == 6 and lines(list(place.store())) == lines(again.states[6])
    place.verify()


def test_a_rollback_can_be_rolled_back(live: Live) -> None:
    place = open_backend(live.name)
    same(place.rollback(3), place.store())
    assert lines(list(place.store())) == lines(live.states[3])
    assert lines(list(place.rollback(2))) == lines(live.states[2])
    place.verify()
    assert place.iteration == 7
    assert [event.position for event in place.events if isinstance(event, Committed)] == [1, 2, 3, 1, 5, 3, 2]


def test_a_quarantined_pass_leaves_the_store_as_it_was(live: Live) -> None:
    """A rejected pass and its undo are written as one transaction."""
    from kbgym.trace.events import RolledBack

    again = Live(live.name)
    scratch = again.store.copy()
    added = scratch.add("A bad idea.")
    events = [Began(6, "backward", "x"), Acted(6, "backward", 1, Add("A bad idea."), Added(added))]
    again.writer.commit(
        [*events, committed(6, scratch), RolledBack(7, 5, "refused"), committed(7, again.store)],
    )
    again.close()
    place = open_backend(live.name)
    place.verify()
    same(place.store(), replay(place.initial.copy, place.events))
    assert lines(list(place.store())) == lines(live.states[5])
    assert place.store().add("Zz.") == "n6", "n5 was given out"


def test_a_store_without_history(make: Maker) -> None:
    place = open_backend(make(records()))
    assert place.reading is None and place.events == () and place.iteration == 0 and place.genesis is None
    assert lines(list(place.store())) == lines(records())
    with pytest.raises(BadInput):
        place.rollback(0)


def test_a_transaction_that_fails_leaves_nothing(make: Maker) -> None:
    live = Live(make(records()))
    if hasattr(live.writer, "locked"):
        with pytest.raises(ZeroDivisionError), live.writer.locked():
            live.writer.commit([committed(1, live.store)])
            raise ZeroDivisionError
    assert open_backend(live.name).iteration == 0
    for events in ([], [Began(1, "serve", "x")], [Noted(1, "exam", {})]):
        with pytest.raises(ValueError):
            live.writer.commit(events)
    live.act(Add("Readers of Ibsen."))
    live.commit()
    live.close()
    assert open_backend(live.name).iteration == 1


def test_imports_and_the_order_of_equal_sentences(make: Maker) -> None:
    """The order of documents with equal text is part of the state and survives reopening."""
    live = Live(make([Record("a", "A.", origin="a"), Record("b", "B.", origin="b"), Record("c", "C.", origin="c")]))
    imported = Imported(1, edited=(Document("c", "Same."),), removed=("b",), added=(Document("d", "D."),))
    live.act(Add("E."))
    live.commit()
    from kbgym.trace.replay import follow_import

    live.store.same_text("x")
    for number, event in ((2, imported), (3, Imported(3, edited=(Document("a", "Same."),), restored=()))):
        follow_import(live.store, event)
        live.iteration = number
        live.writer.commit([Began(number, "idle", "import"), event, committed(number, live.store)])
    live.close()
    again = open_backend(live.name).store()
    assert again.same_text("same") == live.store.same_text("same") == "c"
    open_backend(live.name).verify()


def test_the_embedder_and_settings_are_kept(live: Live) -> None:
    genesis = open_backend(live.name).genesis
    assert genesis is not None and (genesis.embedder, genesis.settings) == (HASH, {"seed": 0})


def test_two_writers(live: Live) -> None:
    """A folder has one writer; a database any number, in turns, each told of the others."""
    place = open_backend(live.name)
    if place.folder is not None:
        with place.resume(), pytest.raises(BadInput):
            open_backend(live.name).resume()
        return
    one, other = LiveClient(live.name, "one"), LiveClient(live.name, "other")
    assert one.act(Add("Said by one.")) == Added("n5")
    assert other.act(Add("Said by other.")) == Added("n6")
    assert other.act(Add("said by one")) == Merged("n5")
    one.act(Search("anything"))  # looking follows the others
    same(one.store, other.store)
    assert one.iteration == other.iteration == 8
    one.close()
    other.close()
    open_backend(live.name).verify()


def test_a_copy_there_and_back_is_the_same_bytes(live: Live, make: Maker, tmp_path: Path) -> None:
    copy_store(live.name, str(tmp_path / "one"))
    again = play(make)  # an equal history makes equal bytes, wherever it is made
    copy_store(again.name, str(tmp_path / "two"))
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["records.jsonl", "trace.jsonl"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    with pytest.raises(BadInput):
        copy_store(live.name, again.name)
    with pytest.raises(BadInput):
        copy_store(live.name, str(tmp_path / "one"))


def test_a_copy_of_an_iteration(live: Live, tmp_path: Path) -> None:
    for iteration, state in live.states.items():
        copied = copy_store(f"{live.name}@{iteration}", str(tmp_path / str(iteration)))
        assert copied.iteration == iteration
        assert lines(list(open_backend(tmp_path / str(iteration)).store())) == lines(state)
    with pytest.raises(BadInput, match="no iteration 9"):
        copy_store(f"{live.name}@9", str(tmp_path / "nine"))


def test_the_command_line(live: Live, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def kbgym(*words: str) -> dict[str, object]:
        with pytest.raises(SystemExit) as stopped:
            run([*words, "--json"])
        printed = capfd.readouterr()
        assert (stopped.value.code, printed.err) == (0, "")
        found: dict[str, object] = json.loads(printed.out)
        return found

    stats = kbgym("store", "stats", live.name)
    replayed = kbgym("store", "replay", live.name)
    assert replayed["identical"] is True and replayed["hash"] == stats["hash"]
    assert kbgym("store", "read", live.name, "n3")["inbound"] == []
    assert kbgym("store", "log", live.name)["total"] == 5
    assert kbgym("store", "blame", live.name, "n3")["initial"] is False
    assert kbgym("store", "diff", f"{live.name}@1", live.name)["removed"] == []
    assert kbgym("learn", live.name, "--agenda")["counts"]
    assert kbgym("audit", live.name)["orphans"] is not None
    found = kbgym("store", "search", live.name, "Readers of Ibsen.")
    assert found["results"][0]["id"] == "n3"  # type: ignore[index]
    assert kbgym("store", "rollback", live.name, "--to", "2")["iteration"] == 6
    copied = kbgym("store", "copy", live.name, str(tmp_path / "copy"))
    assert copied["hash"] == kbgym("store", "replay", str(tmp_path / "copy"))["hash"]


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(ACTIONS, max_size=10), min_size=1, max_size=5), st.data())
def test_any_history(make: Maker, iterations: Sequence[Sequence[Action]], data: st.DataObject) -> None:
    """After every transaction the tables are the replay, in order and counters too."""
    live = Live(make(records()))
    for actions in iterations:
        for action in actions:
            live.act(action)
        live.commit()
        if data.draw(st.booleans()):
            live.rollback(data.draw(st.integers(0, live.iteration)))
        same(open_backend(live.name).store(), live.store)
    live.close()
    place = open_backend(live.name)
    place.verify()
    same(place.store(), replay(place.initial.copy, place.events))
    for iteration, state in live.states.items():
        assert lines(list(place.store(iteration))) == lines(state)


def test_encoded_events_are_the_same_lines(live: Live, tmp_path: Path) -> None:
    copy_store(live.name, str(tmp_path / "copy"))
    written = (tmp_path / "copy" / "trace.jsonl").read_bytes().splitlines()
    for event, line in zip(open_backend(live.name).events, written, strict=True):
        assert line.startswith(encode(event)[:-1])
