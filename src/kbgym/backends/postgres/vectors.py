"""Vectors in the database, computed once and then read on demand instead of held in memory.

Every embedder has its own table, whose comment names it; all are derived and may be dropped. The database either
scans every vector or searches an HNSW graph; more results than asked for are fetched and scored again here in float64,
so scores and order are those of `ExactIndex`. pgvector stores float32, so the same bits come back. Pages too deep for
the graph are answered by a scan.
"""

from __future__ import annotations

import hashlib
import struct
from contextlib import suppress
from functools import partial
from itertools import dropwhile, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kbgym.backends.postgres.cache import LRUCache
from kbgym.backends.postgres.server import value_of
from kbgym.backends.postgres.tables import highest, is_labelled, make_once
from kbgym.errors import Missing
from kbgym.progress import ProgressCallback
from kbgym.search.embed import CachedEmbedder
from kbgym.search.index import BESIDE, Hit, LayeredIndex, check_page, check_shape, page_of

if TYPE_CHECKING:
    from kbgym.backends.postgres.base import DatabaseBase
    from kbgym.backends.postgres.prefetch import Prefetch
    from kbgym.backends.postgres.server import Connection

EXACT_UP_TO = 20_000
_EXTRA = 24  # results beyond a page, to correct float32 order and the graph's misses
# Results fetched if fewer are asked for: for the first pages, and for a hybrid search.
_AHEAD = (80, 320)
# Candidates of a graph search: at least, for each result, and at most (pgvector's limit). Among 100,000 with 400
# recall@10 was 0.9925, with 600 0.9950, with 1,000 1.0000 for twice the time of 400.
_LEAST, _WIDTH, _WIDEST = 512, 4, 1000
_DEEPEST = 400  # maximum results of a graph search
_DEEPEST_ITERATIVE = 1000  # the same with iterative scans
_BATCH = 8192  # texts embedded between two commits; an interruption loses at most this many
_CACHED_HITS = 60_000


def _version(connection: Connection) -> tuple[int, ...] | None:
    """Return the version of pgvector, enabling it for this database if allowed; None if the server has none."""
    import psycopg

    looked_up = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    if (found := value_of(connection, looked_up)) is None:
        with suppress(psycopg.Error):  # not allowed, not installed, or created by another process first
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
        found = value_of(connection, looked_up)
    return None if found is None else tuple(int(part) for part in found.split(".") if part.isdigit())


class PgVectorIndex:
    """The vectors of all texts of a base by id, searched in an HNSW graph if `graph` is true. Thread-safe.

    Creation embeds texts without vectors and reports progress to `tick`.
    """

    def __init__(
        self, base: DatabaseBase, embedder: CachedEmbedder, graph: bool, tick: ProgressCallback | None = None
    ) -> None:
        self._base, self._embedder, self._graph = base, embedder, graph
        with base.connection() as connection:
            version = _version(connection)
        if version is None:
            raise Missing(
                "a store in PostgreSQL is searched by vectors with the extension pgvector, which the server does not "
                "have or this user may not switch on; search by words needs none."
            )
        self._iterative = version >= (0, 8)
        self._ranked: LRUCache[bytes, list[Hit]] = LRUCache(_CACHED_HITS)
        self._label = f"{embedder.name}, {embedder.dimensions} numbers"
        name = hashlib.blake2b(self._label.encode(), digest_size=4).hexdigest()
        self._table, self._links = f"vectors_{name}", f"near_{name}"
        make_once(base, self._table, self._ready, partial(self._make, tick=tick))

    def __len__(self) -> int:
        return len(self._base)

    def __contains__(self, id: object) -> bool:
        return id in self._base

    # -- making -------------------------------------------------------------------------------------------------------

    def _ready(self, connection: Connection) -> bool:
        if not is_labelled(connection, self._table, self._label) or highest(connection, self._table) < len(self._base):
            return False
        return not self._graph or is_labelled(connection, self._links, "hnsw")

    def _make(self, connection: Connection, tick: ProgressCallback | None) -> None:
        if not is_labelled(connection, self._table, self._label):
            with connection.transaction():
                columns = "number bigint PRIMARY KEY, embedding public.vector({:d}) NOT NULL"
                connection.execute(f"CREATE TABLE {self._table} ({columns.format(self._embedder.dimensions)})")
                connection.execute(f"COMMENT ON TABLE {self._table} IS '" + self._label.replace("'", "''") + "'")
        done = highest(connection, self._table)
        left = dropwhile(lambda text: text[0] <= done, self._base.texts())
        while some := list(islice(left, _BATCH)):
            told = None if tick is None else partial(_told, tick, some[0][0] - 1, len(self._base))
            rows = self._embedder.embed([text for _, _, text in some], told)
            head, statement = struct.pack(">hh", rows.shape[1], 0), f"COPY {self._table} FROM STDIN (FORMAT BINARY)"
            with connection.transaction(), connection.cursor().copy(statement) as copy:
                for (number, _, _), row in zip(some, rows.astype(">f4"), strict=True):
                    copy.write_row((struct.pack(">q", number), head + row.tobytes()))
        connection.execute(f"ANALYZE {self._table}")
        if self._graph and not is_labelled(connection, self._links, "hnsw"):
            if tick is not None:
                tick(len(self._base), len(self._base), "linking")
            with connection.transaction():
                connection.execute("SET LOCAL maintenance_work_mem = '1GB'")
                kind = "hnsw (embedding public.vector_ip_ops)"
                connection.execute(f"CREATE INDEX {self._links} ON {self._table} USING {kind}")
                connection.execute(f"COMMENT ON INDEX {self._links} IS 'hnsw'")

    # -- searching ----------------------------------------------------------------------------------------------------

    def vector(self, id: str) -> NDArray[np.float32]:
        """Return the vector of an id. Raise KeyError if it is unknown."""
        statement = f"SELECT embedding FROM {self._table} JOIN initial USING (number) WHERE id = %s"
        with self._base.connection() as connection:
            row = connection.cursor(binary=True).execute(statement, [id]).fetchone()
        if row is None:
            raise KeyError(id)
        vector: NDArray[np.float32] = _numbers([row[0]])[0]
        return vector

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        """Return a page of (id, score), best first, ties by id; rankings are cached."""
        query: NDArray[np.float32] = np.asarray(vector, dtype=np.float32)
        check_page(offset, limit)
        if offset >= len(self) or limit == 0:
            return []
        check_shape(query, self._embedder.dimensions)
        wanted = next((count for count in _AHEAD if offset + limit <= count), offset + limit)
        end, key = min(wanted, len(self)), query.tobytes()
        ranked = self._ranked.get(key)
        if ranked is None or len(ranked) < end:
            ranked = self._first(query, end)
            self._ranked.put(key, ranked, len(ranked))
        return ranked[offset : offset + limit]

    def _first(self, query: NDArray[np.float32], end: int) -> list[Hit]:
        asked, deepest = end + _EXTRA, _DEEPEST_ITERATIVE if self._iterative else _DEEPEST
        graph = self._graph and asked <= deepest
        while True:
            hits = self._nearest(query, asked, graph)
            # Stop if the last result cannot belong among the first `end`, or if there are no more.
            if len(hits) > end and (graph or hits[end - 1][1] - hits[-1][1] > 1e-5):
                return hits[:end]
            if len(hits) < asked and not graph:
                return hits[:end]
            asked, graph = asked * 4, graph and asked * 4 <= deepest

    def _nearest(self, query: NDArray[np.float32], count: int, graph: bool) -> list[Hit]:
        """Return the `count` nearest rows in the database's order of distance, with exact scores, best first."""
        wanted = "[" + ",".join(repr(float(number)) for number in query) + "]"
        settings = {"enable_indexscan": "off"}
        if graph:
            settings = {"hnsw.ef_search": str(min(_WIDEST, max(_LEAST, _WIDTH * count))), "enable_seqscan": "off"}
            if self._iterative:
                settings["hnsw.iterative_scan"] = "strict_order"
        with self._base.connection() as connection, connection.transaction():
            names = ", ".join(["set_config(%s, %s, true)"] * len(settings))
            connection.execute(f"SELECT {names}", [part for pair in settings.items() for part in pair])
            order = "ORDER BY embedding OPERATOR(public.<#>) %s::public.vector LIMIT %s"
            statement, cursor = f"SELECT number, embedding FROM {self._table} {order}", connection.cursor(binary=True)
            # A prepared plan would ignore the settings.
            near = cursor.execute(statement, [wanted, count], prepare=False).fetchall()
        if not near:
            return []
        scores = (_numbers([embedding for _, embedding in near]) * query.astype(np.float64)).sum(axis=1).tolist()
        ids = self._base.ids([number for number, _ in near])
        return page_of(((ids[number], score) for (number, _), score in zip(near, scores, strict=True)), 0, count)


class DatabaseIndex(LayeredIndex):
    """The vectors of a base, and changes in memory on top."""

    prefetch: Prefetch

    def ahead(self, vector: ArrayLike, end: int) -> list[Hit]:
        """Prefetch the base's first hits into the cache, in any thread."""
        found: list[Hit] = self.base.search(vector, 0, end + BESIDE)
        return found


def _told(tick: ProgressCallback, before: int, total: int, done: int, _: int, note: str) -> None:
    tick(before + done, total, note)


def _numbers(embeddings: list[bytes]) -> NDArray[np.float32]:
    """Decode vectors from their binary form: length and an unused number of two bytes each, then float32 numbers."""
    raw = b"".join(bytes(embedding)[4:] for embedding in embeddings)
    return np.frombuffer(raw, dtype=">f4").reshape(len(embeddings), -1).astype(np.float32)
