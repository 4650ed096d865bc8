"""The trace file: append-only JSON lines, each chained to the one before it by a hash.

    {"event":"act",...,"chain":"<sha256 of the previous chain and this line's body>"}

A transaction is written in one piece and counts as committed once flushed to the disk. Reading drops and reports a torn
last line and an unfinished transaction; any other damage is an error with the line number.

A small file beside the trace records how much was committed, so that truncation of the trace is detected:

    trace.head    {"chain":"<of its last line>","iteration":57,"size":12345}

It is overwritten in place after each commit, once the trace is durable, so after a crash it may lag behind the trace
but is never ahead of it. Readers read the head first, since both may be growing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kbgym.canonical import Decoder, decode, encode, open_file, read_file, refuse_links, sync
from kbgym.errors import BadInput, Damaged, Failed, Incomplete, InUse
from kbgym.trace.events import SCHEMA, Committed, Event, Genesis

_ROOM = 160  # less than a sector, which is written atomically


class CommitMarker(msgspec.Struct, frozen=True):
    """The committed part of a trace: its last iteration, its size in bytes, and the hash at its end."""

    iteration: int
    size: int
    chain: str


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


def check_head(trace: Path, head: CommitMarker | None, data: bytes, iteration: int, length: int) -> None:
    """Raise an error if a trace lacks data that its head records as committed."""
    if head is None:
        return
    if head.size > length:
        raise Incomplete(
            f"{trace} ends with iteration {iteration} ({length:,} bytes), but {head_of(trace).name} says that "
            f"iteration {head.iteration} ({head.size:,} bytes) was committed; {_advice(trace)}."
        )
    if not data[: head.size].endswith(f'"chain":"{head.chain}"}}\n'.encode()):
        raise Damaged(f"{trace} is not the trace that {head_of(trace).name} was written for; {_advice(trace)}.")


def _advice(trace: Path) -> str:
    return f"put the right file back, or keep what is left with `kbgym store replay {trace.parent} --recover`"


class HeadFile:
    """The head file of a trace that is being written."""

    def __init__(self, trace: Path) -> None:
        self._path = head_of(trace)
        self._file: int | None = None

    def write(self, reached: CommitMarker) -> None:
        """Overwrite the head once the trace is durable; if that fails, the previous head is kept."""
        with contextlib.suppress(OSError):
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
                os.ftruncate(self._file, _ROOM)
            os.pwrite(self._file, encode(reached).ljust(_ROOM - 1) + b"\n", 0)

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
            self._file = None


_LINK = b',"chain":"'
_TAIL = len(_LINK) + 64 + len(b'"}')
_decoder: Decoder[Event] = Decoder(Event)
START = "0" * 64
_BEGINNING = b'{"documents":'


class TraceReading(msgspec.Struct, frozen=True):
    """A trace read from disk: its committed events, their end, and a note on omitted data.

    The first event is its genesis. `length` is the size of the committed part in bytes, `size` that of the file.
    """

    events: tuple[Event, ...]
    chain: str
    length: int
    size: int
    dropped: str | None = None

    @property
    def iteration(self) -> int:
        last = self.events[-1]
        return last.iteration if isinstance(last, Committed) else 0


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
        check_head(path, head, data, 0, 0)
    *lines, torn = data.split(b"\n")
    reading = reading_of(lines, path, torn)
    check_head(path, head, data, reading.iteration, reading.length)
    return reading


def reading_of(lines: Iterable[bytes], path: Path | str, torn: bytes = b"") -> TraceReading:
    """Verify the lines of a trace; `path` is used in messages, `torn` follows the last whole line."""
    events: list[Event] = []
    committed, length, chain_there = 0, 0, START
    chain, position = START, 0
    for number, line in enumerate(lines, 1):
        event, chain = verified(path, number, line, chain)
        position += len(line) + 1
        events.append(event)
        if number == 1:
            _check_genesis(path, event)
        if isinstance(event, Committed | Genesis):
            committed, length, chain_there = len(events), position, chain
    if torn and _holds(torn[:-1], chain):
        raise Damaged(f"{path}, line {len(events) + 1}: the line is whole but does not end as it was written.")
    unfinished = len(events) - committed
    parts = []
    if unfinished:
        parts.append(f"{unfinished} events of an unfinished iteration")
    if torn:
        parts.append(f"a torn last line of {len(torn)} bytes")
    if not events and not torn:
        raise Damaged(f"{path} is empty; a trace starts with its genesis line.")
    if not events:
        raise Damaged(f"{path}, line 1: the genesis line is torn; nothing was ever committed here.")
    return TraceReading(
        tuple(events[:committed]), chain_there, length, position + len(torn), " and ".join(parts) or None
    )


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


def _check_genesis(path: Path | str, event: Event) -> None:
    if not isinstance(event, Genesis):
        raise Damaged(f"{path}, line 1: a trace starts with a genesis line.")
    if event.schema != SCHEMA:
        raise BadInput(f"{path} has schema {event.schema}; this version reads {SCHEMA}.")


class TraceWriter:
    """An `EventWriter` that appends whole transactions and rejects a second process."""

    shared = False

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
        self._chain, self._length = (reading.chain, reading.length) if reading else (START, 0)
        self._head = HeadFile(path)
        try:
            self._claim(reading)
        except BaseException:
            os.close(self._file)
            raise
        if reading is not None:
            self._head.write(CommitMarker(reading.iteration, reading.length, reading.chain))

    def _claim(self, reading: TraceReading | None) -> None:
        """Lock the file, check that it matches the reading, and truncate it at its end."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse(f"{self._path} is being written by another process.") from None
        # Another process may have committed since the reading; its events must not be truncated.
        changed = os.fstat(self._file).st_size != reading.size if reading else has_begun(self._path)
        if changed:
            raise BadInput(f"{self._path} was written by another process since it was read; run the command again.")
        os.ftruncate(self._file, self._length)
        if reading is None:
            sync(self._path.parent)  # the directory entry of the new file

    def commit(self, events: Sequence[Event]) -> None:
        """Write a transaction and return once it is durable."""
        if not events or not isinstance(events[-1], Committed | Genesis):
            raise ValueError("a transaction ends with its commit")
        self._check()
        block, chain = bytearray(), self._chain
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
                os.ftruncate(self._file, self._length)
            raise Failed(f"cannot write {self._path}: {error.strerror}; what was committed before is kept.") from error
        self._chain, self._length = chain, self._length + len(block)
        self._check()
        last = events[-1]
        self._head.write(CommitMarker(last.iteration if isinstance(last, Committed) else 0, self._length, chain))

    def _check(self) -> None:
        """Raise Failed if the file was replaced or has an unexpected size.

        Called before a transaction is written and before it is acknowledged.
        """
        own = os.fstat(self._file)
        try:
            there = os.stat(self._path, follow_symlinks=False)
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino) or own.st_size != self._length:
            raise Failed(
                f"{self._path} was replaced, removed or changed by another process; nothing more is "
                "committed to it: stop this process and look at the file."
            )

    def close(self) -> None:
        self._head.close()
        os.close(self._file)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
