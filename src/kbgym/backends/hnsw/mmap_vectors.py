"""Vectors in files that are mapped, not read: opening costs nothing, and processes that open one share its pages.

A set is a folder below the cache folder: `rows.f32` (one float32 row a text), `keys.bin` (what each row is the vector
of, as in `cache.keys`), the files of a search graph over the rows, and `about.json`. All of it is derived and may
be thrown away at any time. A set is written under another name and renamed when whole, so there is never half of one;
sizes, hashes and a sample of blocks are checked when it is opened, and a damaged set counts as none. A set knows texts,
not documents: it serves every store that has most of its texts, whatever was edited since. It knows nothing of how a
vector or a graph is made.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from kbgym.canonical import decode, digest, encode
from kbgym.search.cache import keys

Rows = NDArray[np.float32]
Keys = NDArray[np.void]
Places = NDArray[np.int64]

FOLDER = "indexes-1"
ROWS, KEYS, ABOUT = "rows.f32", "keys.bin", "about.json"
_KEY = np.dtype("V16")
_SKETCH = 256  # the smallest keys of a set: how many two sets share says how alike they are
_BLOCKS, _BLOCK = 64, 4096


class About(msgspec.Struct, frozen=True):
    """What a set holds, and how to tell that it is whole."""

    embedder: str
    dimensions: int
    count: int
    longest: float
    sketch: tuple[str, ...]
    sizes: dict[str, int]
    checks: dict[str, str]


class Mapped(msgspec.Struct, frozen=True):
    """An opened set; the rows are mapped and cannot be written to."""

    folder: Path
    about: About
    rows: Rows
    keys: Keys

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(self.about.sizes.values())


def text_keys(embedder: str, texts: Iterable[str]) -> Keys:
    """What each text's row is filed under."""
    return np.frombuffer(b"".join(keys(embedder, texts)), dtype=_KEY)


def find(cache: Path, embedder: str, dimensions: int | None, wanted: Keys) -> Mapped | None:
    """The whole set that has most of the wanted texts, if one has about half of them."""
    sketch = set(_sketch(wanted))
    best: tuple[int, Mapped] | None = None
    for place in sorted((cache / FOLDER).glob("*/" + ABOUT)):
        about = _about(place)
        if about is None or about.embedder != embedder or dimensions not in (None, about.dimensions):
            continue
        shared = len(sketch.intersection(about.sketch))
        if shared * 2 >= len(sketch) and (best is None or shared > best[0]):
            opened = open_set(place.parent)
            best = best if opened is None else (shared, opened)
    return best[1] if best else None


def open_set(folder: Path) -> Mapped | None:
    """A set, or None where it is missing, damaged or of another format."""
    about = _about(folder / ABOUT)
    if about is None:
        return None
    try:
        if {name: (folder / name).stat().st_size for name in about.sizes} != about.sizes:
            return None
        if {name: _check(folder / name) for name in about.sizes} != about.checks:
            return None
        rows: Rows = np.memmap(folder / ROWS, np.float32, "r", shape=(about.count, about.dimensions))
        names: Keys = np.memmap(folder / KEYS, _KEY, "r", shape=(about.count,))
    except (OSError, ValueError):
        return None
    return Mapped(folder, about, np.asarray(rows), np.asarray(names))


def discard(held: Mapped) -> None:
    """Throw a set away; whoever has it open keeps it."""
    (held.folder / ABOUT).unlink(missing_ok=True)
    shutil.rmtree(held.folder, ignore_errors=True)


def write(
    cache: Path,
    embedder: str,
    dimensions: int,
    names: Keys,
    batches: Iterable[Rows],
    link: Callable[[Rows, Path], None],
) -> Mapped:
    """Write a set: `batches` are its rows in order, `link` writes the graph of all of them into a folder.

    OSError where the disk does not take it; then nothing is left behind.
    """
    target = cache / FOLDER / digest(embedder.encode() + b"\0" + names.tobytes())[:24]
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".", dir=target.parent))
    try:
        longest = _write_rows(scratch / ROWS, batches)
        (scratch / KEYS).write_bytes(names.tobytes())
        rows: Rows = np.asarray(np.memmap(scratch / ROWS, np.float32, "r", shape=(len(names), dimensions)))
        link(rows, scratch)
        files = sorted(path.name for path in scratch.iterdir())
        for name in files:
            _flush(scratch / name)
        about = About(
            embedder,
            dimensions,
            len(names),
            longest,
            _sketch(names),
            {name: (scratch / name).stat().st_size for name in files},
            {name: _check(scratch / name) for name in files},
        )
        body = encode(about)
        (scratch / ABOUT).write_bytes(body + b"\n" + digest(body).encode() + b"\n")
        _flush(scratch / ABOUT)
        scratch.chmod(0o755)
        _place(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    opened = open_set(target)
    if opened is None:
        raise OSError(f"{target} could not be read back")
    return opened


def match(held: Keys, wanted: Keys) -> Places:
    """For each wanted key the row that has it, or -1; a key wanted twice needs two rows."""
    if len(held) == len(wanted) and held.tobytes() == wanted.tobytes():
        return np.arange(len(held))
    mine, theirs = _halves(held), _halves(wanted)
    order, places = np.lexsort(mine[::-1]), np.lexsort(theirs[::-1])
    sorted_held = held[order]
    sorted_wanted = wanted[places]
    # The n-th of several equal wanted keys takes the n-th of the equal held ones.
    new = np.concatenate([[True], sorted_wanted[1:] != sorted_wanted[:-1]]) if len(wanted) else np.zeros(0, bool)
    starts = np.flatnonzero(new)
    nth = np.arange(len(wanted)) - np.repeat(starts, np.diff(np.append(starts, len(wanted))))
    high = mine[0][order]
    at = np.searchsorted(high, theirs[0][places]) + nth
    found = np.full(len(wanted), -1, dtype=np.int64)
    inside = np.flatnonzero(at < len(held))
    same = inside[sorted_held[at[inside]] == sorted_wanted[inside]]
    found[places[same]] = order[at[same]]
    return found


def _halves(names: Keys) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    pairs = np.ascontiguousarray(names).view(">u8").reshape(-1, 2).astype(np.uint64)
    return pairs[:, 0], pairs[:, 1]


def _sketch(names: Keys) -> tuple[str, ...]:
    if not len(names):
        return ()
    high = _halves(names)[0]
    least = np.partition(high, min(_SKETCH, len(high)) - 1)[:_SKETCH]
    return tuple(f"{number:016x}" for number in np.unique(least).tolist())


def _about(place: Path) -> About | None:
    try:
        body, check, rest = place.read_bytes().split(b"\n")
        return decode(body, About) if digest(body).encode() == check and not rest else None
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def _check(path: Path) -> str:
    """A hash of blocks spread over a file, its first and its last among them."""
    size = path.stat().st_size
    hashed = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for number in range(_BLOCKS):
            file.seek(max(size - _BLOCK, 0) * number // (_BLOCKS - 1))
            hashed.update(file.read(_BLOCK))
    return hashed.hexdigest()


def _write_rows(path: Path, batches: Iterable[Rows]) -> float:
    """How long the longest row is."""
    longest = 0.0
    with path.open("wb") as out:
        for batch in batches:
            rows = np.ascontiguousarray(batch, dtype=np.float32)
            if len(rows):
                longest = max(longest, float(np.einsum("ij,ij->i", rows, rows).max()))
            out.write(rows.data)
    return float(np.sqrt(longest))


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _place(scratch: Path, target: Path) -> None:
    """Give a finished set its name; one that another process finished first is as good, a damaged one makes way."""
    for _ in range(2):
        try:
            scratch.rename(target)
            return
        except OSError:
            if open_set(target) is not None:
                return
            shutil.rmtree(target, ignore_errors=True)
    scratch.rename(target)


__all__ = ["About", "Keys", "Mapped", "Places", "Rows", "discard", "find", "match", "open_set", "text_keys", "write"]
