"""How far a trace was committed, in a small file beside it: a trace that lost its end, or everything, is noticed.

    trace.head    {"chain":"<of its last line>","iteration":57,"size":12345}

It is written over in place after each commit, once the trace is on the disk: after a crash it may say too little, never
too much. A folder without one is read as it is. Whoever reads a trace reads its head first, since both may be growing.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from kbgym.canonical import decode, encode, read_file
from kbgym.errors import Damaged, Incomplete

_ROOM = 160  # less than a sector, which is written whole or not at all


class Reached(msgspec.Struct, frozen=True):
    """What was committed: up to which iteration, how many bytes, and the hash at their end."""

    iteration: int
    size: int
    chain: str


def head_of(trace: Path) -> Path:
    return trace.with_suffix(".head")


def read_head(trace: Path) -> Reached | None:
    """What a trace's head says; None where there is none, or none that reached the disk."""
    file = head_of(trace)
    if not os.path.lexists(file):
        return None
    data = read_file(file)
    if not data.strip(b"\0"):
        return None
    try:
        return decode(data, Reached)
    except msgspec.DecodeError:
        raise Damaged(f"{file} is no trace's head; {_advice(trace)}.") from None


def check_head(trace: Path, head: Reached | None, data: bytes, iteration: int, length: int) -> None:
    """See that a trace holds what its head says was committed."""
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
    return f"put the right file back, or keep what is left with `kbgym replay {trace.parent} --recover`"


class HeadFile:
    """The head of a trace that is being written."""

    def __init__(self, trace: Path) -> None:
        self._path = head_of(trace)
        self._file: int | None = None

    def write(self, reached: Reached) -> None:
        """After the trace is on the disk. Should it fail, the last head stands, which says less."""
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
