"""A cache of vectors on disk between runs, by hash of model and text.

It is one SQLite file that several processes may use concurrently. It may be deleted at any time. If it
cannot be used, work continues in memory after one warning.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

FILE = "vectors-1.sqlite3"
_ROWS_PER_QUERY = 500  # below the parameter limit of any SQLite build
_WAIT_SECONDS = 10.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"

_INSERT = """INSERT INTO vectors VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET vector = excluded.vector
    WHERE length(vector) <> length(excluded.vector)"""


def cache_folder() -> Path:
    """Return $KBGYM_CACHE, else kbgym below $XDG_CACHE_HOME, else ~/.cache/kbgym; it may not exist yet."""
    if own := os.environ.get("KBGYM_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "kbgym"
    return Path(os.path.expanduser("~/.cache/kbgym"))


class VectorCache:
    """A map from key to float32 vector in a folder, opened at the first use and again in a forked child."""

    def __init__(self, folder: Path) -> None:
        self.path: Path | None = folder / FILE
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._lock = threading.Lock()

    def get(self, places: Mapping[bytes, int], out: NDArray[np.float32]) -> dict[bytes, int]:
        """Fill the rows of `out` at the places of the known keys. Return the unknown keys with their places."""
        with self._lock:
            return self._guarded(lambda connection: _fill(connection, dict(places), out))

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Store vectors; an existing row of the right size is kept."""
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
            warnings.warn(f"the vector cache {self.path} cannot be used ({error}); continuing in memory.", stacklevel=4)
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
        connection.execute("SELECT key, vector FROM vectors LIMIT 0")  # fails if the table has another schema
        return connection


def _fill(connection: sqlite3.Connection, places: dict[bytes, int], out: NDArray[np.float32]) -> dict[bytes, int]:
    size = out.shape[1] * 4
    for rows in _rows(connection, list(places)):
        # A row of another size is treated as unknown.
        found = [(places.pop(key), blob) for key, blob in rows if key in places and len(blob) == size]
        if found:
            joined = np.frombuffer(b"".join([blob for _, blob in found]), dtype=np.float32)
            out[[place for place, _ in found]] = joined.reshape(len(found), -1)
    return places


def _rows(connection: sqlite3.Connection, wanted: list[bytes]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield batches of stored rows that include all wanted ones, by lookup or, if cheaper, by one full scan."""
    (held,) = connection.execute("SELECT max(rowid) FROM vectors").fetchone()
    if len(wanted) > _ROWS_PER_QUERY and len(wanted) * 2 > (held or 0):
        cursor = connection.execute("SELECT key, vector FROM vectors")
        while rows := cursor.fetchmany(_ROWS_PER_QUERY):
            yield rows
        return
    for start in range(0, len(wanted), _ROWS_PER_QUERY):
        some = wanted[start : start + _ROWS_PER_QUERY]
        marks = ",".join("?" * len(some))
        yield connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some).fetchall()


def _insert(connection: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany(_INSERT, rows)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
