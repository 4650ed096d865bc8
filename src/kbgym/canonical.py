"""The one place that turns values into bytes and bytes into hashes.

Keys are sorted, text is UTF-8, there is no white space: the same value is the same bytes on every platform and Python
version. It knows nothing of what the values mean.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kbgym.errors import BadInput, Damaged

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="sorted")


def encode(value: Any) -> bytes:
    """Canonical JSON of a value."""
    return _encoder.encode(value)


def decode(data: bytes | str, type: type[T] = Any) -> T:  # type: ignore[assignment]
    return msgspec.json.decode(data, type=type)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    return digest(encode(value))


def is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8 at all (an unpaired surrogate cannot)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def pretty(value: Any) -> str:
    """Sorted, indented JSON for files people open."""
    return json.dumps(msgspec.to_builtins(value), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_lines(path: Path, values: Iterable[Any]) -> None:
    with path.open("wb") as out:
        for value in values:
            out.write(encode(value))
            out.write(b"\n")


def read_lines(path: Path, type: type[T]) -> Iterator[T]:
    """The values of a JSONL file; a line that does not fit is named by its number."""
    decoder = msgspec.json.Decoder(type)
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise Damaged(f"{path}, line {number}: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """A scratch file that becomes `path`, in the place of what is there, if the block succeeds, and vanishes if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{os.getpid()}-{path.name}")  # two processes may write the same file at once
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A scratch folder that becomes `out` if the block succeeds and vanishes if it does not.

    An `out` that already holds the same files with the same bytes is left alone; any other content is refused.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} exists and is not a folder; choose another --out.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
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
            os.replace(scratch, out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _contents(folder: Path) -> dict[str, str]:
    """Relative path to hash, for every file below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): digest(path.read_bytes()) for path in files}
