"""The trace file: append-only JSON lines, each chained to the one before it by a hash.

    {"event":"act",...,"chain":"<sha256 of the previous chain and this line's body>"}

A transaction is written in one piece and flushed to the disk before it counts. Reading drops a torn last line and an
unfinished transaction, and says so; any other damage is named by its line.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kbgym.canonical import encode
from kbgym.errors import BadInput, Damaged
from kbgym.trace.events import SCHEMA, Committed, Event, Genesis

_LINK = b',"chain":"'
_TAIL = len(_LINK) + 64 + len(b'"}')
_decoder = msgspec.json.Decoder(Event)
_START = "0" * 64


class Reading(msgspec.Struct, frozen=True):
    """A trace as found on disk: its committed events, where they end, and what was left out."""

    events: tuple[Event, ...]
    chain: str
    length: int
    dropped: str | None = None

    @property
    def iteration(self) -> int:
        last = self.events[-1] if self.events else None
        return last.iteration if isinstance(last, Committed) else 0


def chained(body: bytes, chain: str) -> tuple[bytes, str]:
    """A body (one JSON object) as a line of the file, and the chain after it."""
    link = hashlib.sha256(chain.encode() + body).hexdigest()
    return body[:-1] + _LINK + link.encode() + b'"}\n', link


def read_trace(path: Path) -> Reading:
    """Every committed event, verified."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}.") from error
    events: list[Event] = []
    committed, length, chain_there = 0, 0, _START
    chain, position = _START, 0
    lines = data.split(b"\n")
    torn = lines.pop()
    for number, line in enumerate(lines, 1):
        event, chain = _verified(path, number, line, chain)
        position += len(line) + 1
        events.append(event)
        if number == 1:
            _check_genesis(path, event)
        if isinstance(event, Committed | Genesis):
            committed, length, chain_there = len(events), position, chain
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
    return Reading(tuple(events[:committed]), chain_there, length, " and ".join(parts) or None)


def _verified(path: Path, number: int, line: bytes, chain: str) -> tuple[Event, str]:
    body = line[:-_TAIL] + b"}"
    expected = hashlib.sha256(chain.encode() + body).hexdigest()
    if line[-_TAIL:] != _LINK + expected.encode() + b'"}':
        raise Damaged(f"{path}, line {number}: the hash chain breaks here; the line was changed, moved or lost bytes.")
    try:
        return _decoder.decode(line), expected
    except msgspec.DecodeError as error:
        raise Damaged(f"{path}, line {number}: {error}") from error


def _check_genesis(path: Path, event: Event) -> None:
    if not isinstance(event, Genesis):
        raise Damaged(f"{path}, line 1: a trace starts with a genesis line.")
    if event.schema != SCHEMA:
        raise BadInput(f"{path} has schema {event.schema}; this version reads {SCHEMA}.")


class Writer:
    """Appends whole transactions. One writer a trace: a second process is refused."""

    def __init__(self, path: Path, reading: Reading | None) -> None:
        """Go on after what was read, cutting off whatever was never committed; with no reading, start a new file."""
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if reading is None else 0)
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise BadInput(f"cannot write {path}: {error.strerror}.") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise BadInput(f"{path} is being written by another process.") from None
        self._chain = _START
        if reading is not None:
            if os.fstat(self._file).st_size < reading.length:
                os.close(self._file)
                raise Damaged(f"{path} became shorter while it was opened.")
            os.ftruncate(self._file, reading.length)
            self._chain = reading.chain

    def commit(self, events: Sequence[Event]) -> None:
        """Write a transaction and return once it is on the disk."""
        block, chain = bytearray(), self._chain
        for event in events:
            line, chain = chained(encode(event), chain)
            block += line
        view = memoryview(block)
        while view:
            view = view[os.write(self._file, view) :]
        os.fsync(self._file)
        self._chain = chain

    def close(self) -> None:
        os.close(self._file)
