"""Canonical JSON, hashes, and atomic and durable file writes.

Keys are sorted, text is UTF-8, and there is no white space, so equal values have equal bytes on every platform and
Python version. The module is independent of the meaning of the values.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, overload

import msgspec

from kbgym.errors import BadInput, Damaged

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="sorted")


def encode(value: Any) -> bytes:
    """Return a value as canonical JSON."""
    return _encoder.encode(value)


class Decoder(Generic[T]):
    """A decoder of JSON into values of one type. Any defect, including deep nesting, raises `msgspec.DecodeError`."""

    def __init__(self, type: Any) -> None:
        self._decode: Callable[[bytes | str], T] = msgspec.json.Decoder(type).decode

    def decode(self, data: bytes | str) -> T:
        try:
            return self._decode(data)
        except UnicodeError as error:
            raise msgspec.DecodeError(f"JSON is malformed: {error}") from error
        except RecursionError:
            raise msgspec.DecodeError("JSON is malformed: it is nested too deeply") from None


@overload
def decode(data: bytes | str) -> Any: ...


@overload
def decode(data: bytes | str, type: type[T]) -> T: ...


def decode(data: bytes | str, type: Any = Any) -> Any:
    """Decode one JSON value; errors are those of `Decoder`."""
    return _decoder_of(type).decode(data)


@lru_cache(maxsize=256)
def _decoder_of(type: Any) -> Decoder[Any]:
    """Return the cached decoder of a type, since creating one takes longer than most decoding."""
    return Decoder(type)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    return digest(encode(value))


def is_text(value: str) -> bool:
    """Return True if a string can be encoded as UTF-8; an unpaired surrogate cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def pretty(value: Any) -> str:
    """Return a value as sorted, indented JSON, for files that people read."""
    return json.dumps(msgspec.to_builtins(value), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_lines(path: Path, values: Iterable[Any]) -> None:
    with path.open("wb") as out:
        for value in values:
            out.write(encode(value))
            out.write(b"\n")


def open_file(path: Path) -> IO[bytes]:
    """Open a file for reading. Raise OSError if it is not a regular file: a pipe or a device may never end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file")
    return os.fdopen(handle, "rb")


def read_file(path: Path) -> bytes:
    """Return the content of a file."""
    try:
        with open_file(path) as file:
            return file.read()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}.") from error


def read_value(path: Path, type: type[T]) -> T:
    """Return the value in a JSON file."""
    try:
        return decode(read_file(path), type)
    except msgspec.DecodeError as error:
        raise Damaged(f"{path}: {error}.") from error


def read_lines(path: Path, type: type[T]) -> Iterator[T]:
    """Yield the values of a JSONL file. Raise `Damaged` with the line number if a line does not fit."""
    decoder = Decoder[T](type)
    try:
        with open_file(path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield decoder.decode(line)
                except msgspec.DecodeError as error:
                    raise Damaged(f"{path}, line {number}: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}.") from error


# Files written to the folder of a store, a run or an experiment.
_WRITTEN = (
    "trace.jsonl trace.head cassette.jsonl run.json experiment.json tokens.jsonl verdict.json exams probe report arms"
).split()


def refuse_links(folder: Path) -> None:
    """Raise `BadInput` if a folder holds symbolic links, through which a write could land anywhere."""
    for name in _WRITTEN:
        path = folder / name
        for one in (path, *(path.glob("*") if path.is_dir() else ())):
            if one.is_symlink():
                raise BadInput(f"{one} is a symbolic link, which is never written through; replace it with the file.")


def check_name(where: Path, name: str) -> None:
    """Raise `Damaged` if a name that becomes part of a path could lead outside its folder."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,199}", name):
        raise Damaged(f"{where}: {name[:60]!r} is not a valid name; use letters, digits and -_.@ only.")


def sync(path: Path) -> None:
    """Flush a file's content or a folder's entries to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, durably, if they do not exist."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Yield a scratch file that atomically and durably replaces `path` if the block succeeds."""
    make_folder(path.parent)
    scratch = path.with_name(f".{os.getpid()}-{path.name}")  # two processes may write the same file concurrently
    try:
        yield scratch
        sync(scratch)
        os.replace(scratch, path)
        sync(path.parent)
    finally:
        scratch.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove scratch files of `write_whole` below a folder that were left by processes killed on this machine."""
    for path in folder.rglob(".*-*"):
        if (match := re.fullmatch(r"\.(\d+)-.+", path.name)) and path.is_file() and not _runs(int(match[1])):
            path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def atomic_dir(out: Path) -> Iterator[Path]:
    """Yield a scratch folder that atomically and durably becomes `out` if the block succeeds.

    An `out` that already holds the same files with the same bytes is left alone; any other content is rejected.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} exists and is not a folder; choose another --out.")
    try:
        make_folder(out.parent)
        scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise BadInput(f"cannot write beside {out}: {error.strerror}") from error
    try:
        yield scratch
        scratch.chmod(0o755)
        if out.exists() and any(out.iterdir()):
            if _contents(out) != _contents(scratch):
                raise BadInput(f"{out} exists with other content; remove it or choose another --out.")
        else:
            for path in scratch.rglob("*"):
                sync(path)
            sync(scratch)
            os.replace(scratch, out)
            sync(out.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _contents(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder by relative path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): digest(path.read_bytes()) for path in files}
