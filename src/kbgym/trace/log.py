"""The trace file: append-only JSON lines, each chained to the one before it by a hash.

    {"event":"act",...,"chain":"<sha256 of the previous chain and this line's body>"}

A transaction is written in one piece and counts as committed once flushed to the disk. Reading drops and reports a torn
last line and an unfinished transaction; any other damage is an error with the line number.

A small file beside the trace records how much was committed, so that truncation of the trace is detected:

    trace.head    {"chain":"<of its last line>","iteration":57,"size":12345}

It is overwritten in place after each commit, once the trace is durable, so after a crash it may lag behind the trace
but is never ahead of it. Readers read the head first, since both may be growing. `recover` keeps the intact part of a
damaged trace.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kbgym.canonical import Decoder, decode, encode, open_file, read_file, refuse_links, sync, write_whole
from kbgym.errors import BadInput, Damaged, Failed, Incomplete, InUse
from kbgym.trace.events import SCHEMA, Committed, Event, Genesis

_ROOM = 160  # less than a sector, which is written atomically
START = "0" * 64


class CommitMarker(msgspec.Struct, frozen=True):
    """The committed part of a trace: its last iteration, its size in bytes, and the hash at its end."""

    iteration: int
    size: int
    chain: str


_NOTHING = CommitMarker(0, 0, START)


def head_of(trace: Path) -> Path:
    return trace.with_suffix(".head")


def read_head(trace: Path) -> CommitMarker | None:
    """Return the head of a trace, or None if it has none on the disk."""
    file = head_of(trace)
    if not os.path.lexists(file):
        return None
    data = read_file(file)
    if not data.strip(b"\0"):
        return None
    try:
        return decode(data, CommitMarker)
    except msgspec.DecodeError:
        raise Damaged(f"{file} is not the head of a trace; {_advice(trace)}.") from None


def check_head(trace: Path, head: CommitMarker, data: bytes, end: CommitMarker) -> None:
    """Raise an error if a trace lacks data that its head records as committed."""
    if head.size > end.size:
        raise Incomplete(
            f"{trace} ends with iteration {end.iteration} ({end.size:,} bytes), but {head_of(trace).name} says that "
            f"iteration {head.iteration} ({head.size:,} bytes) was committed; {_advice(trace)}."
        )
    if not data[: head.size].endswith(f'"chain":"{head.chain}"}}\n'.encode()):
        raise Damaged(f"{trace} is not the trace that {head_of(trace).name} was written for; {_advice(trace)}.")


def _advice(trace: Path) -> str:
    return f"put the right file back, or keep what is left with `kbgym store replay {trace.parent} --recover`"


def write_head(trace: Path, reached: CommitMarker) -> None:
    """Overwrite the head once the trace is durable; if that fails, the previous head is kept."""
    with suppress(OSError):
        file = os.open(head_of(trace), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(file, _ROOM)
            os.pwrite(file, encode(reached).ljust(_ROOM - 1) + b"\n", 0)
        finally:
            os.close(file)


_LINK = b',"chain":"'
_TAIL = len(_LINK) + 64 + len(b'"}')
_decoder: Decoder[Event] = Decoder(Event)
_BEGINNING = b'{"documents":'


class TraceReading(msgspec.Struct, frozen=True):
    """A trace read from disk: its committed events, their end, and a note on omitted data.

    The first event is its genesis. `size` is that of the file.
    """

    events: tuple[Event, ...]
    end: CommitMarker
    size: int
    dropped: str | None = None


def chained(body: bytes, chain: str) -> tuple[bytes, str]:
    """Return the line of the file for a body (one JSON object), and the chain after it."""
    link = hashlib.sha256(chain.encode() + body).hexdigest()
    return body[:-1] + _LINK + link.encode() + b'"}\n', link


def has_begun(path: Path) -> bool:
    """Return True if there is or was a trace; a file with an unfinished first line does not count."""
    if read_head(path) is not None:
        return True
    try:
        with open_file(path) as file:
            first = file.readline()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}.") from error
    return first.endswith(b"\n") or not _BEGINNING.startswith(first[: len(_BEGINNING)])


def read_trace(path: Path) -> TraceReading:
    """Read and verify a trace. Raise an error if committed events are missing."""
    head = read_head(path)
    data = b"" if head is not None and not path.exists() else read_file(path)
    if head is not None and b"\n" not in data:
        check_head(path, head, data, _NOTHING)
    *lines, torn = data.split(b"\n")
    reading = reading_of(lines, path, torn)
    if head is not None:
        check_head(path, head, data, reading.end)
    return reading


def reading_of(lines: Iterable[bytes], path: Path | str, torn: bytes = b"") -> TraceReading:
    """Verify the lines of a trace; `path` is used in messages, `torn` follows the last whole line."""
    events: list[Event] = []
    committed, end, last = 0, _NOTHING, _NOTHING
    for event, last in _verified_lines(path, lines):
        events.append(event)
        if isinstance(event, Committed | Genesis):
            committed, end = len(events), last
    if torn and _holds(torn[:-1], last.chain):
        raise Damaged(f"{path}, line {len(events) + 1}: the line is whole but does not end as it was written.")
    if not events:
        if torn:
            raise Damaged(f"{path}, line 1: the genesis line is torn; nothing was ever committed here.")
        raise Damaged(f"{path} is empty; a trace starts with its genesis line.")
    unfinished = len(events) - committed
    parts = [f"{unfinished} events of an unfinished iteration"] if unfinished else []
    parts += [f"a torn last line of {len(torn)} bytes"] if torn else []
    return TraceReading(tuple(events[:committed]), end, last.size + len(torn), " and ".join(parts) or None)


def _verified_lines(path: Path | str, lines: Iterable[bytes]) -> Iterator[tuple[Event, CommitMarker]]:
    """Yield every event with the place where its line ends and the last iteration committed by then."""
    iteration, size, chain = 0, 0, START
    for number, line in enumerate(lines, 1):
        event, chain = verified(path, number, line, chain)
        size += len(line) + 1
        if isinstance(event, Committed):
            iteration = event.iteration
        if (number == 1) != isinstance(event, Genesis):
            raise Damaged(f"{path}, line {number}: a trace starts with its only genesis line.")
        if isinstance(event, Genesis) and event.schema != SCHEMA:
            raise BadInput(f"{path} has schema {event.schema}; this version reads {SCHEMA}.")
        yield event, CommitMarker(iteration, size, chain)


def _holds(line: bytes, chain: str) -> bool:
    """Return True if a line's hash follows from its body and the chain before it."""
    body = line[:-_TAIL] + b"}"
    return line[-_TAIL:] == _LINK + hashlib.sha256(chain.encode() + body).hexdigest().encode() + b'"}'


def verified(path: Path | str, number: int, line: bytes, chain: str) -> tuple[Event, str]:
    if not _holds(line, chain):
        raise Damaged(f"{path}, line {number}: the hash chain breaks here; the line was changed, moved or lost bytes.")
    try:
        return _decoder.decode(line), line[-_TAIL + len(_LINK) : -2].decode()
    except msgspec.DecodeError as error:
        raise Damaged(f"{path}, line {number}: {error}") from error


class TraceWriter:
    """An `EventWriter` that appends whole transactions and rejects a second process."""

    def __init__(self, path: Path, reading: TraceReading | None) -> None:
        """Continue after a reading, truncating uncommitted data; without one, start a new file."""
        self._path = path
        refuse_links(path.parent)
        if reading is None and has_begun(path):
            raise BadInput(f"{path} exists; a trace is never written over.")
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if reading is None else 0)
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise BadInput(f"cannot write {path}: {error.strerror}.") from error
        self._end = reading.end if reading else _NOTHING
        try:
            self._claim(reading)
        except BaseException:
            os.close(self._file)
            raise
        if reading is not None:
            write_head(path, self._end)

    def _claim(self, reading: TraceReading | None) -> None:
        """Lock the file, check that it matches the reading, and truncate it at its end."""
        _lock(self._path, self._file)
        # Another process may have committed since the reading; its events must not be truncated.
        changed = os.fstat(self._file).st_size != reading.size if reading else has_begun(self._path)
        if changed:
            raise BadInput(f"{self._path} was written by another process since it was read; run the command again.")
        os.ftruncate(self._file, self._end.size)
        if reading is None:
            sync(self._path.parent)  # the directory entry of the new file

    def commit(self, events: Sequence[Event]) -> None:
        """Write a transaction and return once it is durable."""
        if not events or not isinstance(events[-1], Committed | Genesis):
            raise ValueError("a transaction ends with its commit")
        self._check()
        block, chain = bytearray(), self._end.chain
        for event in events:
            line, chain = chained(encode(event), chain)
            block += line
        try:
            view = memoryview(block)
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):  # if this fails too, the next commit detects that the file changed
                os.ftruncate(self._file, self._end.size)
            raise Failed(f"cannot write {self._path}: {error.strerror}; what was committed before is kept.") from error
        iteration = last.iteration if isinstance(last := events[-1], Committed) else 0
        self._end = CommitMarker(iteration, self._end.size + len(block), chain)
        self._check()
        write_head(self._path, self._end)

    def _check(self) -> None:
        """Raise Failed if the file was replaced or has an unexpected size.

        Called before a transaction is written and before it is acknowledged.
        """
        own = os.fstat(self._file)
        try:
            there = os.stat(self._path, follow_symlinks=False)
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino) or own.st_size != self._end.size:
            raise Failed(
                f"{self._path} was replaced, removed or changed by another process; nothing more is "
                "committed to it: stop this process and look at the file."
            )

    def close(self) -> None:
        with suppress(OSError):
            sync(head_of(self._path))
        os.close(self._file)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lock(path: Path, file: int) -> None:
    """Exclude every other writer of a trace."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InUse(f"{path} is being written by another process; stop it first.") from None


# -- recovery ---------------------------------------------------------------------------------------------------------


class Recovered(msgspec.Struct, frozen=True):
    """The outcome of a recovery. `lost` is the number of later iterations that the head recorded."""

    iteration: int
    size: int
    lost: int | None
    damaged: str


def recover(trace: Path) -> Recovered | None:
    """Cut a trace to its last whole transaction, keeping the damaged files; return None if it is not damaged."""
    try:
        read_trace(trace)
    except Damaged:
        pass
    else:
        return None
    if not trace.exists():
        return _recover(trace, b"")
    with trace.open("rb") as file:
        _lock(trace, file.fileno())
        return _recover(trace, file.read())


def _recover(trace: Path, data: bytes) -> Recovered:
    whole, head, number = _NOTHING, None, 1
    while (kept := trace.parent / f"damaged-{number}").exists():
        number += 1
    kept.mkdir()
    with suppress(Damaged):
        for event, end in _verified_lines(trace, data.split(b"\n")[:-1]):
            if isinstance(event, Committed | Genesis):
                whole = end
    with suppress(Damaged):
        head = read_head(trace)
    for file in (trace, head_of(trace)):
        if os.path.lexists(file):
            os.replace(file, kept / file.name)
    if whole.size:
        with write_whole(trace) as scratch:
            scratch.write_bytes(data[: whole.size])
        write_head(trace, whole)
    return Recovered(whole.iteration, whole.size, max(0, head.iteration - whole.iteration) if head else None, str(kept))
