"""Tables that are derived from the texts of a base: made by one process only, thrown away, filled quickly."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, LiteralString

from kbgym.search.base import TextBase

if TYPE_CHECKING:
    from kbgym.backends.postgres.server import Connection

_PAUSE = 0.2  # seconds between two looks at whether another process is done
_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)


def make_once(
    base: TextBase, what: str, ready: Callable[[Connection], bool], make: Callable[[Connection], None]
) -> None:
    """Have something derived made by one process only; others wait until it is there, or until that one is gone."""
    with base.connection() as connection:
        lock = "(hashtext(current_schema()), hashtext(%s))"
        while not ready(connection):
            row = connection.execute(f"SELECT pg_try_advisory_lock{lock}", [what]).fetchone()
            if row is None or not row[0]:
                time.sleep(_PAUSE)
                continue
            try:
                if not ready(connection):
                    make(connection)
            finally:
                with suppress(Exception):  # a connection that is lost holds no lock
                    connection.execute(f"SELECT pg_advisory_unlock{lock}", [what])


def made_as(connection: Connection, table: str) -> str | None:
    """What the comment on a derived table says it was made with; none where there is no such table, or no comment."""
    row = connection.execute(
        "SELECT obj_description(to_regclass(quote_ident(current_schema()) || '.' || %s), 'pg_class')", [table]
    ).fetchone()
    return None if row is None else row[0]


def drop_own(connection: Connection, *tables: LiteralString) -> None:
    """Throw derived tables away; one of that name in another schema is not ours."""
    for (schema,) in connection.execute("SELECT quote_ident(current_schema())").fetchall():
        for table in tables:
            connection.execute(f"DROP TABLE IF EXISTS {schema}.{table}")


def copy_in(connection: Connection, table: str, rows: Iterable[tuple[bytes, ...]]) -> None:
    """Add rows to a table, each field in the database's binary form."""
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(_HEADER)
        for row in rows:
            fields = [part for field in row for part in (struct.pack(">i", len(field)), field)]
            copy.write(b"".join((struct.pack(">h", len(row)), *fields)))
        copy.write(struct.pack(">h", -1))
