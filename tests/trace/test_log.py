"""The trace file: what is written comes back, a torn tail is dropped and reported, other damage named by its line."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_fixtures import Live

from kbgym.errors import BadInput, Damaged, Failed
from kbgym.gym.actions import Add, Delete, Link, Search
from kbgym.trace.events import SCHEMA, Began, Committed, Event, Genesis, Noted
from kbgym.trace.folder import StoreFolder
from kbgym.trace.log import TraceReading, TraceWriter, chained, has_begun, read_trace


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("written") / "s")


def write(path: Path) -> bytes:
    """The bytes of a small trace: genesis, three iterations, a rollback."""
    live = Live(path)
    live.act(Search("Lund"), "reader")
    live.act(Add("Readers of Ibsen – “naïve” 日本."))
    live.commit(graded=0.5)
    live.act(Link("n3", "d0"))
    live.commit()
    live.act(Delete("d1"))
    live.commit()
    live.rollback(2)
    live.close()
    return (path / "trace.jsonl").read_bytes()


def read(data: bytes, tmp_path: Path) -> TraceReading:
    (tmp_path / "trace.jsonl").write_bytes(data)
    return read_trace(tmp_path / "trace.jsonl")


def line_of(data: bytes, place: int) -> int:
    return data[:place].count(b"\n") + 1


def test_a_line_is_one_json_object_with_its_chain(written: bytes) -> None:
    lines = written.splitlines()
    assert len(lines) == 15
    assert all(re.fullmatch(rb'\{.*,"chain":"[0-9a-f]{64}"\}', line) for line in lines)
    body = lines[0][: -len(b',"chain":"') - 66] + b"}"
    assert chained(body, "0" * 64)[0] == lines[0] + b"\n"


def test_the_same_run_is_the_same_bytes(written: bytes, tmp_path: Path) -> None:
    assert write(tmp_path / "again") == written


def test_a_flipped_byte_is_found_and_named_wherever_it_is(written: bytes, tmp_path: Path) -> None:
    edges = [match.start() + beside for match in re.finditer(rb"\n", written) for beside in (-1, 0, 1)]
    places = {*range(0, len(written), 5), *(place for place in edges if place < len(written))}
    for place in sorted(places):
        flip = (0x01, 0x80, written[place] ^ 0x0A or 0x01)[place % 3]  # the last makes it a newline
        data = bytearray(written)
        data[place] ^= flip
        with pytest.raises(Damaged, match=rf"line {line_of(written, place)}\b"):
            read(bytes(data), tmp_path)


def test_every_cut_drops_the_tail_and_says_so(written: bytes, tmp_path: Path) -> None:
    whole = read(written, tmp_path).events
    ends = [match.end() for match in re.finditer(rb"\n", written)]
    commits = [0, *(n for n, event in enumerate(whole, 1) if isinstance(event, Committed))]
    for cut in range(len(written)):
        if cut < ends[0]:
            with pytest.raises(Damaged, match=r"empty|line 1: the genesis line is torn"):
                read(written[:cut], tmp_path)
            assert not has_begun(tmp_path / "trace.jsonl")
            continue
        reading = read(written[:cut], tmp_path)
        complete = sum(end <= cut for end in ends)
        kept = max(max((n for n in commits if n <= complete), default=1), 1)
        assert reading.events == whole[:kept]
        assert reading.end.size == ends[kept - 1]
        assert (reading.dropped is None) == (cut == ends[kept - 1])


@given(st.data())
def test_lines_removed_swapped_or_doubled_are_named(written: bytes, data: st.DataObject) -> None:
    lines = written.splitlines(keepends=True)
    one = data.draw(st.integers(0, len(lines) - 2))
    other = data.draw(st.integers(one + 1, len(lines) - 1))
    removed = [*lines[:one], *lines[one + 1 :]]
    swapped = list(lines)
    swapped[one], swapped[other] = swapped[other], swapped[one]
    doubled = [*lines[: one + 1], *lines[one:]]
    moved = [*lines[: other + 1], lines[one], *lines[other + 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        for damaged, number in ((removed, one + 1), (swapped, one + 1), (doubled, one + 2), (moved, other + 2)):
            with pytest.raises(Damaged, match=rf"line {number}\b"):
                read(b"".join(damaged), Path(folder))


def test_what_was_cut_off_is_written_again(written: bytes, tmp_path: Path) -> None:
    live = Live(tmp_path / "s")
    live.act(Add("One."))
    live.commit()
    live.close()
    trace = live.path / "trace.jsonl"
    good = trace.read_bytes()
    trace.write_bytes(good + written.splitlines(keepends=True)[3][:50])
    folder = StoreFolder(live.path)
    assert folder.reading is not None and "torn last line of 50 bytes" in (folder.reading.dropped or "")
    live.reopen()
    live.act(Add("Two."))
    live.commit()
    live.close()
    assert trace.read_bytes().startswith(good)
    assert list(StoreFolder(live.path).store()) == list(live.store)


def test_an_unfinished_transaction_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path, None) as writer:
        writer.commit([Genesis(SCHEMA, 0, "0" * 64)])
    reading = read_trace(path)
    line, _ = chained(b'{"agent":"x","event":"begin","iteration":1,"phase":"serve"}', reading.end.chain)
    path.write_bytes(path.read_bytes() + line)
    reading = read_trace(path)
    assert reading.dropped == "1 events of an unfinished iteration" and len(reading.events) == 1


def test_a_file_cut_short_in_its_first_line_is_begun_anew(written: bytes, tmp_path: Path) -> None:
    for left in (b"", written[:5], written[:40]):
        path = tmp_path / "trace.jsonl"
        path.write_bytes(left)
        assert not has_begun(path)
        with TraceWriter(path, None) as writer:
            writer.commit([Genesis(SCHEMA, 0, "0" * 64)])
        assert len(read_trace(path).events) == 1
        path.unlink()
        path.with_suffix(".head").unlink()


@pytest.mark.parametrize("content", [b"hello", b"{}\n", b'{"documents":1}\n', b"\n"])
def test_a_file_that_is_no_trace_is_never_written_over(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        TraceWriter(path, None)
    with pytest.raises(Damaged, match="line 1"):
        read_trace(path)
    assert path.read_bytes() == content


def test_a_trace_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path, None) as writer:
        writer.commit([Genesis(SCHEMA + 1, 0, "0" * 64)])
    with pytest.raises(BadInput, match=f"schema {SCHEMA + 1}; this version reads {SCHEMA}"):
        read_trace(path)


class TestWriter:
    def begin(self, path: Path) -> None:
        with TraceWriter(path, None) as writer:
            writer.commit([Genesis(SCHEMA, 0, "0" * 64)])

    def test_a_second_writer_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "trace.jsonl"
        self.begin(path)
        reading = read_trace(path)
        with TraceWriter(path, reading), pytest.raises(BadInput):
            TraceWriter(path, reading)
        TraceWriter(path, reading).close()

    def test_what_another_process_committed_meanwhile_is_never_cut_off(self, tmp_path: Path) -> None:
        path = tmp_path / "trace.jsonl"
        self.begin(path)
        stale = read_trace(path)
        with TraceWriter(path, read_trace(path)) as writer:
            writer.commit([Committed(1, 1, "0" * 64, 0, 0)])
        before = path.read_bytes()
        with pytest.raises(BadInput):
            TraceWriter(path, stale)
        assert path.read_bytes() == before

    def test_a_transaction_must_end_with_its_commit(self, tmp_path: Path) -> None:
        path = tmp_path / "trace.jsonl"
        self.begin(path)
        unfinished: list[list[Event]] = [[], [Began(1, "serve", "x")], [Noted(1, "exam", {})]]
        with TraceWriter(path, read_trace(path)) as writer:
            for events in unfinished:
                with pytest.raises(ValueError):
                    writer.commit(events)

    def test_a_full_disk_loses_nothing_that_was_committed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "trace.jsonl"
        self.begin(path)
        with TraceWriter(path, read_trace(path)) as writer:
            writer.commit([Committed(1, 1, "0" * 64, 0, 0)])
            before = path.read_bytes()
            real = os.write
            written = []

            def full(file: int, data: bytes) -> int:
                if written:
                    raise OSError(28, "No space left on device")
                written.append(real(file, bytes(data[:10])))
                return 10

            monkeypatch.setattr(os, "write", full)
            with pytest.raises(Failed):
                writer.commit([Committed(2, 2, "0" * 64, 0, 0)])
            monkeypatch.undo()
            assert path.read_bytes() == before
            writer.commit([Committed(2, 2, "0" * 64, 0, 0)])
        assert read_trace(path).end.iteration == 2

    def test_a_commit_returns_after_the_disk_has_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every commit is flushed once, whole; the first flushes the folder too, or the file's name could be lost."""
        path = tmp_path / "trace.jsonl"
        flushed: list[tuple[Path, int]] = []
        real = os.fsync

        def flush(file: int) -> None:
            same = (place for place in (path, tmp_path) if os.path.samestat(os.fstat(file), place.stat()))
            if (what := next(same, None)) is not None:  # the head file is flushed when the writer closes
                flushed.append((what, path.stat().st_size))
            real(file)

        monkeypatch.setattr(os, "fsync", flush)
        with TraceWriter(path, None) as writer:
            assert flushed == [(tmp_path, 0)]
            writer.commit([Genesis(SCHEMA, 0, "0" * 64)])
            assert flushed[1:] == [(path, path.stat().st_size)]
        with TraceWriter(path, read_trace(path)) as writer:
            for number in (1, 2):
                flushed.clear()
                writer.commit([Began(number, "serve", "x"), Committed(number, 1, "0" * 64, 0, 0)])
                assert flushed == [(path, path.stat().st_size)]

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput):
            TraceWriter(tmp_path / "no" / "trace.jsonl", None)
        with pytest.raises(BadInput):
            read_trace(tmp_path / "no" / "trace.jsonl")
