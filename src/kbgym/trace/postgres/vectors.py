"""Search in a PostgreSQL store without holding its vectors: those in the database, brought up to date first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbgym.search.embed import Embedder, Tick
from kbgym.search.engine import Engine
from kbgym.search.kinds import SearchKind
from kbgym.search.pgvector import PgVectorIndex, available
from kbgym.trace.place import Place
from kbgym.trace.postgres.place import PostgresStore

if TYPE_CHECKING:
    from kbgym.trace.postgres.server import Connection

# What has no vector, or one of an earlier text.
_BEHIND = """SELECT documents.id, documents.text FROM documents LEFT JOIN vectors ON vectors.id = documents.id
    WHERE vectors.id IS NULL OR vectors.iteration < documents.changed ORDER BY documents.place"""


def stored_engine(
    place: Place, embedder: Embedder, tick: Tick | None = None, search: SearchKind = "vectors"
) -> Engine | None:
    """An engine over the vectors in the database; none for an earlier iteration, or where there is no pgvector.

    Words are counted here, over the texts in the database, so that they rank as everywhere else.
    """
    if not isinstance(place, PostgresStore) or place.at is not None:
        return None
    with place.server.said():
        connection = place.server.connection
        if not available(connection):
            return None
        _check_model(connection, embedder.name)
        index = PgVectorIndex(connection, embedder.dimensions)
        name = embedder.name.replace("'", "''")
        connection.execute(f"COMMENT ON TABLE vectors IS '{name}'")
        connection.execute("DELETE FROM vectors WHERE NOT EXISTS (SELECT FROM documents WHERE id = vectors.id)")
        index.keep_only(id for (id,) in connection.execute("SELECT id FROM documents"))
        index.iteration = place.iteration
        engine = Engine(embedder, index, search)
        behind = connection.execute(_BEHIND).fetchall()
        if behind:
            index.put_many([id for id, _ in behind], engine.embedder.embed([text for _, text in behind], tick))
        if engine.words is not None:
            engine.words.load(connection.execute("SELECT id, text FROM documents").fetchall(), tick)
    return engine


def _check_model(connection: Connection, name: str) -> None:
    """Vectors of another model are of no use."""
    row = connection.execute("SELECT obj_description(to_regclass('vectors'))").fetchone()
    if row is not None and row[0] not in (None, name):
        connection.execute("DROP TABLE vectors")
