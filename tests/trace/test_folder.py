"""The metadata of a store folder, before and after its first event; imported sentences stay unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from shared_place import URL, OpenedPlace, SharedPlace
from store_fixtures import HASH, Live, records

import kbgym
from kbgym.canonical import write_lines
from kbgym.errors import BadInput
from kbgym.gym.actions import Add
from kbgym.store import Store, source
from kbgym.trace import backend as module
from kbgym.trace.backend import is_url, save_store, shown, store_at
from kbgym.trace.events import SCHEMA, Committed, Genesis, Imported, RolledBack
from kbgym.trace.folder import StoreFolder, folder_and_iteration, imported, open_folder
from kbgym.trace.log import TraceWriter
from kbgym.worlds.world import Document, Source


def test_a_store_without_history(tmp_path: Path) -> None:
    save_store(Store(records()), str(tmp_path / "s"))
    folder = open_folder(tmp_path / "s")
    assert (folder.events, folder.genesis, folder.iteration, folder.position, folder.arm) == ((), None, 0, 0, "")
    assert folder.name == str(tmp_path / "s") and list(folder.store()) == records()
    with folder.start(HASH, {"seed": 3}):
        pass
    begun = open_folder(tmp_path / "s")
    assert begun.genesis == begun.events[0] == Genesis(1, 9, folder.initial.fingerprint, HASH, {"seed": 3})
    assert (len(begun.events), begun.iteration, begun.position) == (1, 0, 0)
    with pytest.raises(BadInput, match=f"{tmp_path / 's'} has no history"):
        begun.rollback(0)


def test_the_iteration_asked_for_comes_before_the_one_in_the_name(tmp_path: Path) -> None:
    live = Live(tmp_path / "s")
    for number in range(3):
        live.act(Add(f"Sentence {number}."))
        live.iteration += number  # iterations 1, 3 and 6, which teach as many lessons
        live.commit()
    live.close()
    folder = open_folder(f"{live.path}@3")
    assert (folder.at, folder.iteration, folder.position) == (3, 6, 6)
    for at, expected in ((None, 3), (0, 0), (1, 1), (6, 6)):
        assert list(folder.store(at)) == live.states[expected]
    assert folder_and_iteration(f"{live.path}@3") == (live.path, 3)
    assert folder_and_iteration(live.path) == (live.path, None)
    for to in (3, 0):
        again = StoreFolder(live.path)
        again.rollback(to, "because")
        assert isinstance(last := again.events[-2], RolledBack) and (last.to, last.reason) == (to, "because")
        assert again.position == to and again.iteration == last.iteration


def doc(id: str, text: str, start: int | None = None, *links: str) -> Document:
    return Document(id, text, source=None if start is None else Source("notes.md", start, start + 9), links=links)


FIRST = Imported(
    1,
    removed=("a", "nobody"),
    edited=(doc("b", "B is new.", 5),),
    restored=(doc("d", "D.", 20),),
    added=(doc("e", "E.", 30, "b"),),
    moved={"c": Source("other.md", 0, 3), "b": None},
    relinked={"c": ("b", "e")},
)
SECOND = Imported(2, removed=("b",), added=(doc("f", "F."),))


def test_the_originals_are_what_imports_made_of_them() -> None:
    began = [doc("a", "A.", 0), doc("b", "B.", 1), doc("c", "C.", 2)]
    genesis = Genesis(SCHEMA, 3, "0" * 64)
    commits = [Committed(n, 0, "0" * 64, 0, 0) for n in range(4)]
    assert imported(began, [genesis]) == {document.id: document for document in began}
    once = {
        "b": doc("b", "B is new."),
        "c": Document("c", "C.", source=Source("other.md", 0, 3), links=("b", "e")),
        "d": doc("d", "D.", 20),
        "e": doc("e", "E.", 30, "b"),
    }
    assert imported(began, [genesis, FIRST, commits[1]]) == once
    twice = [genesis, FIRST, commits[1], SECOND, commits[2]]
    assert imported(began, twice) == {**{id: once[id] for id in "cde"}, "f": doc("f", "F.")}
    assert imported(began, twice, ("c", "f", "a")) == {"c": once["c"], "f": doc("f", "F.")}, "only those asked for"
    assert imported(began, [*twice, RolledBack(3, 1), commits[3]]) == once, "an import that was rolled back is undone"


def test_where_originals_stand_is_read_from_the_world_and_the_trace(tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    write_lines(tmp_path / "world" / "documents.jsonl", [doc("a", "A.", 0), doc("b", "B.", 1), doc("c", "C.")])
    assert kbgym.open(tmp_path).sources(()) == {}
    assert kbgym.open(tmp_path).sources(("a", "c", "zz")) == {"a": Source("notes.md", 0, 9)}
    with TraceWriter(tmp_path / "trace.jsonl", None) as writer:
        writer.commit([Genesis(SCHEMA, 3, "0" * 64)])
        writer.commit([FIRST, Committed(1, 0, "0" * 64, 0, 0)])
    known = kbgym.open(tmp_path).sources(("a", "b", "c", "e"))
    assert known == {"c": Source("other.md", 0, 3), "e": Source("notes.md", 30, 39)}
    assert kbgym.open(tmp_path).sources(("e",)) == {"e": Source("notes.md", 30, 39)}
    save_store(Store(records()), str(tmp_path / "bare"))
    assert StoreFolder(tmp_path / "bare").originals() == {}


def test_a_name_is_shown_without_its_password() -> None:
    secret = "postgresql://ada:secret@db.example.org/knowledge"
    assert shown(secret) == "postgresql://ada@db.example.org/knowledge"
    assert shown(f"{secret}#57") == "postgresql://ada@db.example.org/knowledge@57"
    assert shown("runs/a@57") == shown(Path("runs/a@57")) == "runs/a@57"


def test_a_place_opened_for_one_look_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(OpenedPlace, "close", lambda place: closed.append(place))
    monkeypatch.setattr(module, "open_backend", SharedPlace([source("a", "A.")]).open)
    assert [record.id for record in store_at(URL, 0)] == ["a"] and len(closed) == 1
    with pytest.raises(BadInput, match="no iteration 7"):
        store_at(URL, 7)
    assert len(closed) == 2


@pytest.mark.parametrize("place", ["runs/first", "postgresql", "hnsw", "file:///tmp/x", "nowhere://x"])
def test_what_is_no_url_of_a_database(place: str) -> None:
    assert not is_url(place) and is_url("postgresql://h/d") and shown(place) == place
