"""Copies of stores in folders: the same lines up to where one asks, nothing that was never committed, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_fixtures import Live, lines, records

from kbgym.canonical import write_lines
from kbgym.errors import BadInput, KbgymError
from kbgym.gym.actions import Add, Link
from kbgym.store import Store
from kbgym.trace import backend
from kbgym.trace.backend import Copied, copy_store, save_store
from kbgym.trace.events import Committed, Genesis
from kbgym.trace.folder import StoreFolder, open_folder
from kbgym.worlds.world import Document

ARM = '{"arm": "pages"}'


@pytest.fixture
def live(tmp_path: Path) -> Live:
    """An arm's store with two iterations, and a third that was torn off."""
    live = Live(tmp_path / "s")
    live.act(Add("Readers of Ibsen."))
    live.commit()
    live.act(Link("n3", "d0"))
    live.commit()
    live.close()
    (tmp_path / "s" / "arm.json").write_text(ARM)
    return live


def test_a_copy_holds_every_committed_line_and_says_what_it_holds(live: Live, tmp_path: Path) -> None:
    whole = (live.path / "trace.jsonl").read_bytes()
    with (live.path / "trace.jsonl").open("ab") as file:
        file.write(b'{"event":"begin","itera')
    (live.path / "exams").mkdir()
    said: list[tuple[int, int, str]] = []
    (tmp_path / "copy").mkdir()
    copied = copy_store(str(live.path), str(tmp_path / "copy"), lambda *words: said.append(words))
    store = live.store
    assert copied == Copied(len(store), store.links, len(StoreFolder(live.path).events), 2, store.fingerprint)
    assert said[0] == (0, 3, "reading") and said[1] == (1, 3, "writing") and said[-1] == (3, 3, "done")
    files = {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()}
    assert files.keys() == {"records.jsonl", "trace.jsonl", "arm.json"}
    assert files["trace.jsonl"] == whole and files["arm.json"].decode() == ARM
    assert files["records.jsonl"] == (live.path / "records.jsonl").read_bytes()
    assert open_folder(tmp_path / "copy").arm == "pages"


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_copy_up_to_an_iteration_ends_with_its_commit(live: Live, tmp_path: Path, at: int) -> None:
    copied = copy_store(f"{live.path}@{at}", str(tmp_path / "copy"))
    folder = StoreFolder(tmp_path / "copy")
    assert isinstance(folder.events[-1], Committed if at else Genesis)
    assert (copied.iteration, copied.events) == (at, len(folder.events))
    assert folder.events == StoreFolder(live.path).events[: len(folder.events)]
    assert lines(list(folder.store())) == lines(live.states[at])
    assert folder.reading is not None and folder.reading.dropped is None


def test_an_iteration_that_never_was_leaves_nothing_behind(live: Live, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no iteration 3"):
        copy_store(f"{live.path}@3", str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def test_a_store_without_history_has_none_in_its_copy(tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    write_lines(tmp_path / "world" / "documents.jsonl", [Document("a", "A – “naïve” 日本."), Document("b", "B.")])
    copied = copy_store(str(tmp_path / "world"), str(tmp_path / "copy"))
    assert (copied.documents, copied.events, copied.iteration) == (2, 0, 0)
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["documents.jsonl"]
    for name in ("documents.jsonl",):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / "world" / name).read_bytes()
    assert copy_store(f"{tmp_path / 'world'}@0", str(tmp_path / "zero")).events == 0
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "documents.jsonl").touch()
    assert copy_store(str(tmp_path / "empty"), str(tmp_path / "nothing")).documents == 0
    assert (tmp_path / "nothing" / "documents.jsonl").read_bytes() == b""


def test_nothing_is_written_over(live: Live, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note").touch()
    with pytest.raises(BadInput):
        copy_store(str(live.path), str(tmp_path / "other"))
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["note"]


def test_a_copy_that_is_another_store_is_no_copy(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database may change while it is read."""
    save_store(Store(records()[:3]), str(tmp_path / "other"), ARM)
    monkeypatch.setattr(backend, "write", lambda *_: open_folder(tmp_path / "other"))
    with pytest.raises(BadInput):
        copy_store(str(live.path), str(tmp_path / "copy"))
    assert open_folder(tmp_path / "other").arm == "pages"


def test_a_url_is_no_name_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KbgymError):
        save_store(Store(records()), "postgresql://nobody@127.0.0.1:1/nothing")
    assert list(tmp_path.iterdir()) == []
