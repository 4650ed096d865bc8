"""Reading a store out of PostgreSQL: what it is, where it stands, its trace. Older tables are upgraded first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kbgym.backends.postgres.server import Server
from kbgym.backends.postgres.tables import VERSION, Head, Meta, read_head, upgrade
from kbgym.canonical import decode
from kbgym.errors import BadInput, Damaged
from kbgym.store.record import Counts
from kbgym.trace.log import TraceReading, reading_of

if TYPE_CHECKING:
    from kbgym.backends.postgres.server import Connection

_AT_ONCE = 5_000  # lines


def read_meta(server: Server) -> tuple[Meta, Head]:
    """What the store is and where it stands; one sentence where there is none."""
    shown = server.address.shown
    connection = server.connection
    with server.said():
        row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [f'"{server.address.schema}".meta']).fetchone()
        if row is None or not row[0]:
            raise BadInput(f"there is no store at {shown}; `kbgym store copy FOLDER URL` makes one.")
        if _version(connection) < VERSION:
            with connection.transaction():
                # Whoever reads or writes in the meantime waits; another that upgrades it finds it done.
                connection.execute("LOCK TABLE meta, trace IN ACCESS EXCLUSIVE MODE")
                upgrade(connection, _version(connection))
        if (version := _version(connection)) != VERSION:
            raise BadInput(f"{shown} has tables of version {version}; this version of kbgym reads {VERSION}.")
        found = connection.execute("SELECT initial, arm, counts FROM meta").fetchone()
        assert found is not None
        return Meta(found[0], found[1], decode(found[2], Counts)), read_head(connection)


def _version(connection: Connection) -> int:
    row = connection.execute("SELECT version FROM meta").fetchone()
    if row is None:
        raise Damaged("the store has lost its meta row.")
    return int(row[0])


def trace_lines(connection: Connection, most: int) -> Iterator[str]:
    """The lines of a trace up to one, some at a time in memory."""
    last = 0
    while last < most:
        rows = connection.execute(
            "SELECT line FROM trace WHERE seq > %s AND seq <= %s ORDER BY seq LIMIT %s", [last, most, _AT_ONCE]
        ).fetchall()
        if not rows:
            return
        yield from (line for (line,) in rows)
        last += len(rows)


def read_trace(server: Server, most: int) -> TraceReading | None:
    """The trace up to a line, verified."""
    if not most:
        return None
    with server.said():
        reading = reading_of((line.encode() for line in trace_lines(server.connection, most)), server.address.shown)
    if len(reading.events) != most or reading.dropped:
        raise Damaged(f"{server.address.shown}: the trace has {len(reading.events)} lines, not {most}.")
    return reading
