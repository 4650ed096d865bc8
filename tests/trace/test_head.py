"""The committed length is recorded apart from the trace: a shorter trace is reported, and nothing else is lost."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from store_fixtures import Live

from kbgym.canonical import encode
from kbgym.cli.main import run
from kbgym.errors import BadInput, Damaged, Failed, Incomplete
from kbgym.gym.actions import Add, Link
from kbgym.trace.events import SCHEMA, Committed, Genesis
from kbgym.trace.folder import StoreFolder
from kbgym.trace.log import TraceWriter, has_begun, read_head, read_trace, recover


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with three iterations."""
    live = Live(tmp_path / "s")
    for action in (Add("One."), Add("Two."), Link("n3", "d0")):
        live.act(action)
        live.commit()
    live.close()
    return live.path


def contents(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


def ends(data: bytes) -> list[int]:
    """Return the offset at which each transaction ends."""
    return [
        sum(map(len, lines[:n]))
        for lines in [data.splitlines(keepends=True)]
        for n in range(1, len(lines) + 1)
        if b'"event":"commit"' in lines[n - 1] or b'"event":"genesis"' in lines[n - 1]
    ]


def test_it_says_how_far_the_trace_was_committed(place: Path) -> None:
    head, reading = read_head(place / "trace.jsonl"), read_trace(place / "trace.jsonl")
    assert head is not None
    assert (head.iteration, head.size, head.chain) == (reading.end.iteration, reading.end.size, reading.end.chain)
    found = (place / "trace.head").stat()
    assert head.iteration == 3 and found.st_size == 160 and not found.st_mode & 0o111


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


def test_no_file_stays_open(place: Path) -> None:
    """Neither after a writer is done nor after one, or a recovery, was refused."""
    trace, before = place / "trace.jsonl", open_files()
    old = read_trace(trace)
    with TraceWriter(trace, old) as writer:
        for number in (4, 5, 6):
            writer.commit([Committed(number, number, "0" * 64, 0, 0)])
            assert open_files() == before + 1
    with pytest.raises(BadInput):
        TraceWriter(trace, old)
    (place / "trace.head").write_bytes(b"what?")
    with trace.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(BadInput):
            recover(trace)
        assert open_files() == before + 1
    assert recover(trace) is not None and open_files() == before


def test_a_trace_that_lost_its_end_is_not_a_shorter_trace(place: Path) -> None:
    trace = place / "trace.jsonl"
    whole = trace.read_bytes()
    for cut in [0, 1, 40, *range(100, len(whole), 37), *ends(whole)[:-1]]:
        trace.write_bytes(whole[:cut])
        before = contents(place)
        with pytest.raises(Incomplete):
            StoreFolder(place)
        assert contents(place) == before
    trace.unlink()
    assert has_begun(trace)
    with pytest.raises(Incomplete):
        StoreFolder(place)


def test_another_trace_in_its_place_is_noticed(place: Path, tmp_path: Path) -> None:
    other = Live(tmp_path / "other")
    for number in range(9):
        other.act(Add(f"Another {number}."))
        other.commit()
    other.close()
    (place / "trace.jsonl").write_bytes((other.path / "trace.jsonl").read_bytes())
    with pytest.raises(Damaged):
        StoreFolder(place)


def test_a_folder_without_a_head_is_read_and_gets_one_when_written(place: Path) -> None:
    (place / "trace.head").unlink()
    folder = StoreFolder(place)
    assert folder.iteration == 3
    folder.resume().close()
    assert read_head(place / "trace.jsonl") is not None


@pytest.mark.parametrize("left", [b"", b"\0" * 160])
def test_a_head_that_never_reached_the_disk_is_none(place: Path, left: bytes) -> None:
    (place / "trace.head").write_bytes(left)
    assert StoreFolder(place).iteration == 3


@pytest.mark.parametrize("left", [b"hello", b"{}", b'{"iteration":-1', b"[" * 100_000])
def test_a_head_that_is_none_is_said(place: Path, left: bytes) -> None:
    (place / "trace.head").write_bytes(left)
    with pytest.raises(Damaged):
        StoreFolder(place)


def test_what_was_never_acknowledged_may_still_be_lost(place: Path) -> None:
    trace = place / "trace.jsonl"
    with trace.open("ab") as file:
        file.write(b'{"event":"act"')
    assert "torn" in (StoreFolder(place).reading.dropped or "")  # type: ignore[union-attr]


class TestReplay:
    def call(self, capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            run([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    def test_exit_1(self, capfd: pytest.CaptureFixture[str], place: Path) -> None:
        trace = place / "trace.jsonl"
        trace.write_bytes(trace.read_bytes()[:-200])
        code, out, err = self.call(capfd, "store", "replay", place, "--json")
        assert code == 1 and json.loads(out)["identical"] is False and "iteration 3" in err and err.count("\n") == 1

    @pytest.mark.parametrize(("damage", "kept"), [("cut", 2), ("flip", 1), ("gone", 0), ("emptied", 0), ("head", 3)])
    def test_recover_keeps_what_is_whole_and_what_was_there(
        self, capfd: pytest.CaptureFixture[str], place: Path, damage: str, kept: int
    ) -> None:
        trace = place / "trace.jsonl"
        states = [StoreFolder(place).store(at).fingerprint for at in range(4)]
        whole = trace.read_bytes()
        if damage == "head":
            (place / "trace.head").write_bytes(b"what?")
        elif damage == "gone":
            trace.unlink()
        else:
            flipped = whole.replace(b"Two.", b"Six.")
            trace.write_bytes({"cut": whole[:-100], "flip": flipped, "emptied": b""}[damage])
        before = contents(place)
        code, out, err = self.call(capfd, "store", "replay", place, "--recover", "--json")
        assert code == 0, err
        found = json.loads(out)["recovered"]
        assert found["iteration"] == kept and found["lost"] == (None if damage == "head" else 3 - kept)
        beside = contents(Path(found["damaged"]))
        assert {name: beside[name] for name in before if name in beside} == beside
        assert "trace.head" in beside
        assert StoreFolder(place).store().fingerprint == states[kept]
        if kept:
            assert whole.startswith(trace.read_bytes()) and read_head(trace) is not None
            assert self.call(capfd, "store", "replay", place)[0] == 0
        else:
            assert not trace.exists() and not (place / "trace.head").exists()

    def test_nothing_to_recover(self, capfd: pytest.CaptureFixture[str], place: Path) -> None:
        before = contents(place)
        code, out, _ = self.call(capfd, "store", "replay", place, "--recover", "--json")
        assert code == 0 and "recovered" not in json.loads(out) and contents(place) == before

    def test_what_was_put_aside_before_stays(self, place: Path) -> None:
        trace = place / "trace.jsonl"
        for number, damage in ((1, b"what?"), (2, b"and now?")):
            (place / "trace.head").write_bytes(damage)
            found = recover(trace)
            assert found is not None and Path(found.damaged) == place / f"damaged-{number}"
        assert (place / "damaged-1/trace.head").read_bytes() == b"what?"

    def test_not_under_a_writer(self, place: Path) -> None:
        writer = StoreFolder(place).resume()
        (place / "trace.head").write_bytes(b"what?")
        with pytest.raises(BadInput):
            recover(place / "trace.jsonl")
        writer.close()


def replaced(path: Path) -> None:
    path.with_name("new").write_bytes(path.read_bytes())
    os.replace(path.with_name("new"), path)


def shortened(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 10)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def added_to(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x\n")


def linked(path: Path) -> None:
    os.rename(path, path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("change", [replaced, Path.unlink, shortened, emptied, added_to, linked])
def test_a_file_changed_while_it_is_written_is_noticed_before_the_next_acknowledgement(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path, None) as writer:
        writer.commit([Genesis(SCHEMA, 0, "0" * 64)])
        writer.commit([Committed(1, 1, "0" * 64, 0, 0)])
        change(path)
        before = path.read_bytes() if path.exists() else None
        for _ in range(2):
            with pytest.raises(Failed):
                writer.commit([Committed(2, 2, "0" * 64, 0, 0)])
        assert (path.read_bytes() if path.exists() else None) == before
        head = read_head(path)
        assert head is not None and head.iteration == 1


def test_changed_in_the_very_moment_of_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.jsonl"
    real = os.fsync

    def meanwhile(file: int) -> None:
        real(file)
        replaced(path)

    with TraceWriter(path, None) as writer:
        writer.commit([Genesis(SCHEMA, 0, "0" * 64)])
        monkeypatch.setattr(os, "fsync", meanwhile)
        with pytest.raises(Failed):
            writer.commit([Committed(1, 1, "0" * 64, 0, 0)])
        monkeypatch.undo()
    head = read_head(path)
    assert head is not None and head.iteration == 0, "what was not acknowledged is not counted"


def test_a_head_that_cannot_be_written_keeps_nobody_from_committing(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    target = tmp_path / "somewhere"
    target.write_bytes(b"mine")
    with TraceWriter(path, None) as writer:
        (tmp_path / "trace.head").symlink_to(target)
        writer.commit([Genesis(SCHEMA, 0, "0" * 64)])
    assert target.read_bytes() == b"mine"


def test_nothing_is_written_through_a_link(place: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("trace.head", "exams", "report", "cassette.jsonl"):
        path = place / name
        kept = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        path.symlink_to(tmp_path / "mine")
        if name != "trace.head":
            with pytest.raises(BadInput):
                StoreFolder(place).resume()
        path.unlink()
        if kept is not None:
            path.write_bytes(kept)
    (place / "exams").mkdir()
    (place / "exams" / "flat-one.jsonl").symlink_to(tmp_path / "mine" / "x")
    with pytest.raises(BadInput):
        StoreFolder(place).resume()
    assert list((tmp_path / "mine").iterdir()) == []


def test_the_same_history_is_the_same_head(place: Path, tmp_path: Path) -> None:
    live = Live(tmp_path / "again")
    for action in (Add("One."), Add("Two."), Link("n3", "d0")):
        live.act(action)
        live.commit()
    live.close()
    assert (live.path / "trace.head").read_bytes() == (place / "trace.head").read_bytes()
    assert encode(read_head(place / "trace.jsonl")) == (place / "trace.head").read_bytes().rstrip()
