"""`kbgym watch`: a folder is looked at again and again, and what changed there is in the store by the next look."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgym.cli import corpus as watch
from kbgym.cli.main import run
from kbgym.trace.folder import StoreFolder
from kbgym.trace.log import TraceReading

HARBOUR = Path(__file__).parents[2] / "examples" / "harbour"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    shutil.copytree(HARBOUR / "notes", tmp_path / "notes")
    assert kbgym("import", "corpus", tmp_path / "notes", "--links", "--out", tmp_path / "store", "--quiet") == 0
    return tmp_path / "notes"


def kbgym(*words: object) -> object:
    with pytest.raises(SystemExit) as stopped:
        run([str(word) for word in words])
    return stopped.value.code


def watched(monkeypatch, notes: Path, *steps: Callable[[], object], flags: tuple[str, ...] = ()) -> object:
    """Watch, doing one of these between two looks; each is given a second look, since files must have settled."""
    left = [one for step in (*steps, None) for one in (step, None)]

    def sleep(seconds: float) -> None:
        if not left:
            raise KeyboardInterrupt
        if (step := left.pop(0)) is not None:
            step()

    monkeypatch.setattr(watch.time, "sleep", sleep)
    return kbgym("watch", notes, "--store", notes.parent / "store", *flags)


def reading(notes: Path) -> TraceReading:
    found = StoreFolder(notes.parent / "store").reading
    assert found is not None
    return found


def test_an_edit_a_new_file_and_a_rename_are_an_iteration_each(monkeypatch, capfd, notes):
    boats = notes / "boats.md"
    before = {record.id for record in StoreFolder(notes.parent / "store").store()}
    code = watched(
        monkeypatch,
        notes,
        lambda: boats.write_text(boats.read_text().replace("Her hull is green;", "Her hull is blue now;")),
        lambda: (notes / "new.md").write_text("# Crane\n\nThe crane was painted red in 1999.\n"),
        lambda: boats.rename(notes / "fleet.md"),
        flags=("--json",),
    )
    printed = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert code == 130
    assert [(one["iteration"], len(one["added"]), len(one["edited"])) for one in printed] == [
        (1, 0, 1),
        (2, 1, 0),
        (3, 0, 0),
    ]
    assert printed[2]["renamed"] == {"boats.md": "fleet.md"}
    store = StoreFolder(notes.parent / "store").store()
    assert before <= {record.id for record in store}
    assert any("blue now" in record.text for record in store) and reading(notes).end.iteration == 3


def test_nothing_is_written_while_nothing_changes(monkeypatch, capfd, notes):
    assert watched(monkeypatch, notes, lambda: (notes / "boats.md").touch()) == 130
    assert capfd.readouterr().out == "" and StoreFolder(notes.parent / "store").reading is None


def test_what_cannot_be_read_is_said_once_and_waited_for(monkeypatch, capfd, notes):
    bad = notes / "bad.md"
    code = watched(
        monkeypatch,
        notes,
        lambda: bad.write_bytes(b"caf\xe9 au lait\n"),
        lambda: None,
        lambda: bad.write_text("The crane is red.\n"),
    )
    printed = capfd.readouterr()
    assert code == 130 and printed.err.count("bad.md") == 1 and "Retrying." in printed.err
    assert "added [" in printed.out and "The crane is red." in printed.out


def test_only_a_corpus_can_be_followed(capfd, notes, tmp_path):
    assert kbgym("generate", "--people", 30, "--out", tmp_path / "people", "--quiet") == 0
    assert kbgym("watch", notes, "--store", tmp_path / "people") == 2
    assert "import corpus" in capfd.readouterr().err
    assert kbgym("watch", notes, "--store", f"{tmp_path / 'store'}@1") == 2
