"""Replay: verification of what was recorded, rollbacks of rollbacks, folders, and what a replay does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from store_fixtures import Live, check_invariants, lines, records

import kbgym
from kbgym.canonical import encode, write_lines
from kbgym.errors import BadInput, Damaged
from kbgym.gym.actions import Add, Added, Delete, Edit, Link, Search
from kbgym.store import Store
from kbgym.trace.backend import save_store
from kbgym.trace.events import Acted, Committed, Event, RolledBack
from kbgym.trace.folder import StoreFolder, open_folder
from kbgym.trace.replay import catch_up, effective, replay
from kbgym.worlds.world import Document, Source


@pytest.fixture
def live(tmp_path: Path) -> Live:
    """Five iterations: add, link, delete, back to 1, add."""
    live = Live(tmp_path / "s")
    live.act(Add("Readers of Ibsen."))
    live.commit()
    live.act(Link("n3", "d0"))
    live.act(Edit("d2", "Anna Berg has a father."))
    live.commit()
    live.act(Delete("d0"))
    live.commit()
    live.rollback(1, "wrong")
    live.act(Add("Readers of Strindberg."))
    live.commit()
    live.close()
    return live


def test_every_iteration_comes_back_in_every_byte(live: Live) -> None:
    folder = StoreFolder(live.path)
    for iteration, state in live.states.items():
        assert lines(list(folder.store(iteration))) == lines(state)
        assert lines(list(open_folder(f"{live.path}@{iteration}").store())) == lines(state)
    assert live.states[4] == live.states[1] != live.states[3]


def test_ids_skip_what_was_rolled_back(tmp_path: Path) -> None:
    live = Live(tmp_path / "s")
    live.act(Add("One."))
    live.commit()
    live.rollback(0)
    assert live.act(Add("Other.")).result == Added("n4"), "n3 was given out before the rollback"
    live.commit()
    live.close()
    assert "n4" in StoreFolder(live.path).store()


def test_no_such_iteration(live: Live) -> None:
    for at in (-1, 6, 10**20):
        with pytest.raises(BadInput, match=f"no iteration {at}: this store has 0 to 5"):
            StoreFolder(live.path).store(at)


def test_an_iteration_inside_a_batch_is_no_place_to_go(live: Live) -> None:
    live.reopen()
    live.iteration += 2  # iterations 6, 7 and 8 are one transaction
    for author in ("Heidenstam", "Lagerlöf"):
        live.act(Add(f"Readers of {author}."))
        live.commit()
    live.close()
    folder = StoreFolder(live.path)
    for at in (6, 7):
        with pytest.raises(BadInput, match=f"iteration {at} was committed together with 8: ask for 5 or 8"):
            folder.store(at)
        with pytest.raises(BadInput):
            folder.rollback(at)
    assert list(folder.store(8)) == live.states[8]


def changed(events: tuple[Event, ...], number: int, **fields: object) -> list[Event]:
    return [*events[: number - 1], msgspec.structs.replace(events[number - 1], **fields), *events[number:]]


def test_a_result_that_differs_is_named_by_line(live: Live) -> None:
    folder = StoreFolder(live.path)
    events = changed(folder.events, 3, result=Added("n99"))
    with pytest.raises(Damaged, match=r"trace line 3: the action gave Added\(id='n99'\) when recorded"):
        replay(folder.initial.copy, events)


@pytest.mark.parametrize("field", ["store", "documents", "links"])
def test_a_commit_that_differs_is_named_by_line(live: Live, field: str) -> None:
    folder = StoreFolder(live.path)
    number = next(n for n, event in enumerate(folder.events, 1) if isinstance(event, Committed))
    events = changed(folder.events, number, **{field: "0" * 64 if field == "store" else 77})
    with pytest.raises(Damaged, match=f"trace line {number}: the store after iteration 1 is not the one recorded"):
        replay(folder.initial.copy, events)


def test_other_initial_documents_are_found(live: Live) -> None:
    write_lines(live.path / "records.jsonl", records()[:-1])
    with pytest.raises(Damaged):
        StoreFolder(live.path).store()


def test_a_rollback_to_what_never_was_is_found(live: Live) -> None:
    folder = StoreFolder(live.path)
    number = next(n for n, event in enumerate(folder.events, 1) if isinstance(event, RolledBack))
    with pytest.raises(Damaged, match="iteration 4"):
        replay(folder.initial.copy, changed(folder.events, number, to=4))


def test_effective_history_leaves_out_what_was_undone(live: Live) -> None:
    events = effective(StoreFolder(live.path).events)
    assert [event.iteration for event in events if isinstance(event, Acted)] == [1, 5]
    assert [event.iteration for event in events if isinstance(event, Committed)] == [1, 4, 5]
    assert [event.to for event in events if isinstance(event, RolledBack)] == [1]


def test_a_rollback_can_be_rolled_back(live: Live) -> None:
    live.reopen()
    live.rollback(3)
    assert list(live.store) == live.states[3]
    live.close()
    events = effective(StoreFolder(live.path).events)
    assert [event.iteration for event in events if isinstance(event, Acted)] == [1, 2, 2, 3]
    assert lines(list(StoreFolder(live.path).store())) == lines(live.states[3])


def test_a_hundred_rollbacks_cost_no_more_than_their_events(tmp_path: Path) -> None:
    live = Live(tmp_path / "s")
    for number in range(100):
        live.act(Add(f"Sentence {number}."))
        live.commit()
        live.rollback(live.iteration - 1)
    live.close()
    applied = 0

    def watch(event: Event, store: Store) -> None:
        nonlocal applied
        applied += 1

    folder = StoreFolder(live.path)
    assert list(folder.store(watch=watch)) == live.states[0]
    assert applied == len(folder.events)
    assert not any(isinstance(event, Acted) for event in effective(folder.events))


@pytest.mark.parametrize("known", range(8))
def test_catching_up_from_any_commit_ends_where_a_replay_does(live: Live, known: int) -> None:
    """Rollbacks to before what was known, to the very state that was known, and to one that came since."""
    live.reopen()
    live.rollback(3)  # 6 has what 3 had
    live.act(Add("Readers of Lagerlöf."))
    live.commit()  # 7
    live.rollback(6)  # 8
    live.close()
    folder = StoreFolder(live.path)
    done = next((n for n, e in enumerate(folder.events, 1) if isinstance(e, Committed) and e.iteration == known), 1)
    store, asked, heard = folder.store(known), [], []

    def earlier(iteration: int) -> Store:
        asked.append(iteration)
        return folder.store(iteration)

    def watch(event: Event, now: Store) -> None:
        heard.append(event)
        if isinstance(event, Committed):
            assert list(now) == live.states[event.iteration]

    now = catch_up(store, folder.events[done:], known, earlier, watch)
    assert lines(list(now)) == lines(list(folder.store())) == lines(live.states[8])
    assert tuple(heard) == folder.events[done:]
    assert asked == [to for at, to in ((4, 1), (6, 3), (8, 6)) if at > known > to], "what is at hand is not fetched"
    assert now.add("Something.") == folder.store().add("Something."), "ids given out in between are not given out again"
    if known == 0:
        assert now.add("More.") == "n7"


def test_what_does_not_fit_when_catching_up_is_named_by_its_line(live: Live) -> None:
    folder = StoreFolder(live.path)
    events = changed(folder.events, 3, result=Added("n99"))[1:]
    with pytest.raises(Damaged, match="trace line 2: the action gave"):
        catch_up(folder.store(0), events, 0, folder.store)


def test_rollback_refuses_where_there_is_nothing(tmp_path: Path, live: Live) -> None:
    save_store(Store(records()), tmp_path / "plain")
    with pytest.raises(BadInput):
        StoreFolder(tmp_path / "plain").rollback(0)
    before = (live.path / "trace.jsonl").read_bytes()
    with pytest.raises(BadInput, match="no iteration 17"):
        StoreFolder(live.path).rollback(17)
    assert (live.path / "trace.jsonl").read_bytes() == before


def test_a_folder_can_roll_back_twice_and_go_on(live: Live) -> None:
    folder = StoreFolder(live.path)
    folder.rollback(3)
    store = folder.rollback(2)
    assert list(store) == live.states[2]
    assert folder.reading is not None and folder.iteration == 7
    assert store.add("Something.") == "n5", "an id given out in any iteration is not given out again"
    position = [event.position for event in folder.events if isinstance(event, Committed)]
    assert position == [1, 2, 3, 1, 5, 3, 2]


class TestFolders:
    def test_a_saved_store_opens_the_same(self, tmp_path: Path) -> None:
        store = Store(records())
        save_store(store, tmp_path / "saved")
        again = open_folder(tmp_path / "saved").store()
        assert list(again) == list(store)
        check_invariants(again)

    @pytest.mark.parametrize("below", [".", "world"])
    def test_a_world_is_a_store_without_links(self, tmp_path: Path, below: str) -> None:
        documents = [Document("a", "A.", "kind", ("p",), Source("notes.md", 3, 9)), Document("b", "B.")]
        (tmp_path / below).mkdir(exist_ok=True)
        write_lines(tmp_path / below / "documents.jsonl", documents)
        store = open_folder(tmp_path).store()
        assert [(record.id, record.origin, record.flag) for record in store] == [
            ("a", "a", "untouched"),
            ("b", "b", "untouched"),
        ]
        assert kbgym.open(tmp_path).sources(["a", "b"]) == {"a": Source("notes.md", 3, 9)}

    def test_a_folder_with_an_at_sign_is_itself(self, tmp_path: Path) -> None:
        save_store(Store(records()), tmp_path / "me@7")
        assert open_folder(tmp_path / "me@7").at is None
        with pytest.raises(BadInput, match="no iteration 3"):
            open_folder(f"{tmp_path}/me@7@3").store()

    def test_what_is_no_store_is_said(self, tmp_path: Path) -> None:
        for place in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(BadInput):
                open_folder(place)

    def test_a_store_handed_out_is_not_the_folders_own(self, live: Live) -> None:
        folder = StoreFolder(live.path)
        folder.store().delete("d0")
        assert "d0" in folder.store()


def test_replay_loads_no_embedding_and_no_index(live: Live) -> None:
    live.reopen()
    live.act(Search("Lund"), "reader")
    live.commit()
    live.close()
    code = (
        "import sys; from kbgym.trace.folder import StoreFolder; from pathlib import Path\n"
        f"StoreFolder(Path({str(live.path)!r})).store()\n"
        "print([name for name in ('numpy', 'onnxruntime', 'kbgym.search.embed') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_events_are_what_their_lines_say(live: Live) -> None:
    for event in StoreFolder(live.path).events:
        assert msgspec.json.decode(encode(event), type=Event) == event
