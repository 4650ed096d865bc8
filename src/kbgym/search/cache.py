"""Vectors kept on disk between runs, by hash of model and text; anything here may be thrown away.

One sqlite file, safe for several processes at once. A cache that cannot be used is never an error: the work goes on
in memory, and one warning says so. It knows nothing of how a vector is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

FILE = "vectors-1.sqlite3"
_ASKED_AT_ONCE = 500  # below every sqlite's limit on parameters
_WAIT_SECONDS = 10.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"


def cache_folder() -> Path:
    """$KBGYM_CACHE, else kbgym below $XDG_CACHE_HOME, else ~/.cache/kbgym; it may not exist yet."""
    if own := os.environ.get("KBGYM_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "kbgym"
    return Path(os.path.expanduser("~/.cache/kbgym"))


def key(model: str, text: str) -> bytes:
    """What a text's vector is filed under; an unpaired surrogate is no reason to fail."""
    return hashlib.sha256(f"{model}\0{text}".encode("utf-8", "surrogatepass")).digest()[:16]


class VectorCache:
    """Key to float32 vector, in a folder; opened at the first use, and again in a forked child."""

    def __init__(self, folder: Path) -> None:
        self.path: Path | None = folder / FILE
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes], out: NDArray[np.float32]) -> list[int]:
        """Fill the rows of `out` whose keys are known; the positions of the others, ascending."""
        with self._lock:
            return self._guarded(lambda connection: _fill(connection, keys, out))

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep vectors; a key that is there already stays as it is."""
        rows = [(key, row.tobytes()) for key, row in zip(keys, vectors, strict=True)]
        with self._lock:
            self._guarded(lambda connection: _insert(connection, rows))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            connection.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._open())
        except (sqlite3.Error, OSError) as error:
            if self.path is None:
                raise
            warnings.warn(f"the vector cache {self.path} cannot be used ({error}); going on in memory.", stacklevel=4)
            self.path = None
            with contextlib.suppress(sqlite3.Error):
                self.close()
            self._connection = None
            return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        place = ":memory:" if self.path is None else str(self.path)
        connection = sqlite3.connect(place, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        self._connection, self._process = connection, os.getpid()
        # Five 384-dimensional rows fill a page of 8 KiB to 95%; two fill one of 4 KiB to 76%.
        connection.execute("PRAGMA page_size = 8192")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(_SCHEMA)
        connection.execute("SELECT key, vector FROM vectors LIMIT 0")  # a table of another shape fails here
        return connection


def _fill(connection: sqlite3.Connection, keys: Sequence[bytes], out: NDArray[np.float32]) -> list[int]:
    places: dict[bytes, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    size = out.shape[1] * 4
    for key, blob in _rows(connection, places):
        # A row of another size is not ours to trust: it counts as unknown.
        if len(blob) == size:
            vector = np.frombuffer(blob, dtype=np.float32)
            for place in places.pop(key):
                out[place] = vector
    return sorted(place for rest in places.values() for place in rest)


def _rows(connection: sqlite3.Connection, places: dict[bytes, list[int]]) -> Iterator[tuple[bytes, bytes]]:
    """The stored rows among `places`: by look-up, or by one pass over the table where that reads less."""
    (held,) = connection.execute("SELECT max(rowid) FROM vectors").fetchone()
    if not held:
        return
    if len(places) > _ASKED_AT_ONCE and len(places) * 2 > held:
        yield from ((k, blob) for k, blob in connection.execute("SELECT key, vector FROM vectors") if k in places)
        return
    wanted = list(places)
    for start in range(0, len(wanted), _ASKED_AT_ONCE):
        some = wanted[start : start + _ASKED_AT_ONCE]
        marks = ",".join("?" * len(some))
        yield from connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some).fetchall()


def _insert(connection: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
