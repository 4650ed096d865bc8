"""pgvector behind the index seam: vectors in the database, so that a process need not hold them.

Below `EXACT_UP_TO` vectors the database looks at every one of them, above it walks an HNSW graph; either way more is
fetched than is asked for and scored again here in float64, so the order is that of every index. A page deeper than the
graph can see is answered by looking at every vector. pgvector keeps float32: the same bits come back.

A table of one store may be filled by several processes. Each sees the ids it put or loaded itself; a row remembers the
iteration it was put at, so that a process that lags behind does not overwrite a newer vector. It knows no texts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kbgym.errors import BadInput, Missing
from kbgym.search.index import Hit, page_of

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

EXACT_UP_TO = 20_000
_EXTRA = 24  # results beyond a page: float32 order and a graph's misses are mended within them
_DEEPEST = 160  # results a graph is asked for at most
_WIDTH = 6  # candidates a walk of the graph keeps, for each result; pgvector takes up to 1,000
_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)


def available(connection: Connection) -> bool:
    """Whether the server has pgvector, switching it on for this database where that is allowed."""
    import psycopg

    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    except psycopg.Error:
        return False
    return True


class PgVectorIndex:
    """Vectors in the table `vectors` of the connection's first schema. It fits `VectorIndex`."""

    def __init__(self, connection: Connection, dimensions: int, exact_up_to: int = EXACT_UP_TO) -> None:
        if not available(connection):
            raise Missing("the server has no pgvector extension, or this user may not switch it on.")
        self._connection, self._width, self._exact_up_to = connection, dimensions, exact_up_to
        self.iteration = 0  # of the store the vectors put from now on belong to
        connection.execute(
            f'CREATE TABLE IF NOT EXISTS vectors (id text COLLATE "C" PRIMARY KEY, iteration bigint NOT NULL, '
            f"embedding public.vector({int(dimensions)}) NOT NULL)"
        )
        row = connection.execute(
            "SELECT atttypmod FROM pg_attribute WHERE attrelid = 'vectors'::regclass AND attname = 'embedding'"
        ).fetchone()
        if row is not None and row[0] != dimensions:
            raise BadInput(f"the vectors there have {row[0]} dimensions, not {dimensions}.")
        self._ids: set[str] = {id for (id,) in connection.execute("SELECT id FROM vectors")}
        self._graph = self._has_graph()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:
        return id in self._ids

    # -- changing -----------------------------------------------------------------------------------------------------

    def put(self, id: str, vector: ArrayLike) -> None:
        self.put_many([id], np.asarray(vector, dtype=np.float32)[None])

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        rows = np.asarray(vectors, dtype=np.float32)
        if rows.shape != (len(ids), self._width):
            raise BadInput(f"{len(ids)} ids need as many vectors of {self._width}, not an array of {rows.shape}.")
        if not np.isfinite(rows).all():
            raise BadInput("a vector is not finite, or too long to compare.")
        last = {id: place for place, id in enumerate(ids)}
        with self._connection.transaction():
            self._connection.execute("CREATE TEMP TABLE coming (LIKE vectors) ON COMMIT DROP")
            with self._connection.cursor().copy("COPY coming FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(_HEADER)
                for id, place in last.items():
                    copy.write(_binary(id, self.iteration, rows[place]))
                copy.write(struct.pack(">h", -1))
            self._connection.execute(
                "INSERT INTO vectors SELECT * FROM coming ON CONFLICT (id) DO UPDATE SET "
                "iteration = excluded.iteration, embedding = excluded.embedding "
                "WHERE vectors.iteration <= excluded.iteration"
            )
        self._ids.update(last)

    def remove(self, id: str) -> None:
        """Forget an id; KeyError where it is unknown."""
        self._ids.remove(id)
        self._connection.execute("DELETE FROM vectors WHERE id = %s AND iteration <= %s", [id, self.iteration])

    def keep_only(self, ids: Iterable[str]) -> None:
        """Forget every id but these."""
        self._ids &= set(ids)

    def build_graph(self) -> None:
        """Make the HNSW graph, once there are many; later changes enter it by themselves."""
        self._connection.execute("SET maintenance_work_mem = '1GB'")
        self._connection.execute(
            "CREATE INDEX IF NOT EXISTS near ON vectors USING hnsw (embedding public.vector_ip_ops)"
        )
        self._graph = True

    def _has_graph(self) -> bool:
        row = self._connection.execute("SELECT to_regclass('near') IS NOT NULL").fetchone()
        return bool(row and row[0])

    # -- looking ------------------------------------------------------------------------------------------------------

    def search(self, vector: ArrayLike, offset: int, limit: int) -> list[Hit]:
        query: NDArray[np.float32] = np.asarray(vector, dtype=np.float32)
        if offset < 0 or limit < 0:
            raise BadInput(f"no page starts at {offset} with {limit} results.")
        if offset >= len(self) or limit == 0:
            return []
        if query.shape != (self._width,):
            raise BadInput(f"a query of shape {query.shape} cannot be searched among {self._width} dimensions.")
        end = min(offset + limit, len(self))
        if len(self) > self._exact_up_to and not self._graph:
            self.build_graph()
        asked = end + _EXTRA
        graph = self._graph and len(self) > self._exact_up_to and asked <= _DEEPEST
        while True:
            found = self._nearest(query, asked, graph)
            hits = [hit for hit in found if hit[0] in self._ids]
            # Enough is seen when what lies at the edge cannot belong on the page, or when there is no more.
            if len(hits) > end and (graph or hits[end - 1][1] - hits[-1][1] > 1e-5):
                break
            if len(found) < asked and not graph:
                break
            asked, graph = asked * 4, graph and asked * 4 <= _DEEPEST
        return page_of(hits, offset, limit)

    def _nearest(self, query: NDArray[np.float32], count: int, graph: bool) -> list[Hit]:
        """So many of the nearest rows by the database's own reckoning, with exact scores, best first."""
        wanted = "[" + ",".join(repr(float(number)) for number in query) + "]"
        cursor = self._connection.cursor(binary=True)
        with self._connection.transaction():
            if graph:
                self._connection.execute(
                    "SELECT set_config('hnsw.ef_search', %s, true)", [str(max(200, _WIDTH * count))]
                )
            else:
                self._connection.execute("SET LOCAL enable_indexscan = off")
            rows = cursor.execute(
                "SELECT id, embedding FROM vectors ORDER BY embedding OPERATOR(public.<#>) %s::public.vector LIMIT %s",
                [wanted, count],
            ).fetchall()
        if not rows:
            return []
        # The binary form of a vector: its length and a spare number, two bytes each, then its float32 numbers.
        raw = b"".join(bytes(embedding)[4:] for _, embedding in rows)
        matrix = np.frombuffer(raw, dtype=">f4").reshape(len(rows), -1).astype(np.float32)
        scores = (matrix * query.astype(np.float64)).sum(axis=1).tolist()
        return page_of(((id, score) for (id, _), score in zip(rows, scores, strict=True)), 0, count)


def _binary(id: str, iteration: int, vector: NDArray[np.float32]) -> bytes:
    """A row of a binary COPY."""
    name, numbers = id.encode(), vector.astype(">f4").tobytes()
    parts = [struct.pack(">hi", 3, len(name)), name, struct.pack(">iq", 8, iteration)]
    parts += [struct.pack(">ihh", 4 + len(numbers), len(vector), 0), numbers]
    return b"".join(parts)
