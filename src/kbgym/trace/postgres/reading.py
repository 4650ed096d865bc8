"""Reading a store out of PostgreSQL: its initial documents, its trace, any state of it. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from kbgym.canonical import decode
from kbgym.errors import BadInput, Damaged
from kbgym.store import Record, Store
from kbgym.trace.folder import RECORDS, InitialDocument
from kbgym.trace.journal import Journal
from kbgym.trace.log import Reading, reading_of
from kbgym.trace.postgres.server import Server
from kbgym.trace.postgres.tables import HEAD, VERSION, Head, head_of, load
from kbgym.trace.replay import replay

if TYPE_CHECKING:
    from kbgym.trace.postgres.server import Connection


class Meta(msgspec.Struct, frozen=True):
    """What kind of store it is: the name of the file its initial lines would stand in, and the arm that made it."""

    initial: str
    arm: str | None = None


def read_meta(server: Server) -> tuple[Meta, Head]:
    """What the store is and where it stands; one sentence where there is none."""
    shown = server.address.shown
    connection = server.connection
    with server.said():
        row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [f'"{server.address.schema}".meta']).fetchone()
        if row is None or not row[0]:
            raise BadInput(f"there is no store at {shown}; `kbgym store copy FOLDER URL` makes one.")
        found = connection.execute("SELECT version, initial, arm FROM meta").fetchone()
        if found is None or found[0] != VERSION:
            raise BadInput(f"{shown} has tables of version {found and found[0]}; this version reads {VERSION}.")
        return Meta(*found[1:]), head_of(connection.execute(HEAD).fetchone())


def initial_lines(connection: Connection) -> Iterator[str]:
    for (line,) in connection.execute("SELECT line FROM initial ORDER BY number"):
        yield line


def initial_store(server: Server, kind: str) -> Store:
    with server.said():
        lines = list(initial_lines(server.connection))
    try:
        if kind == RECORDS:
            return Store(decode(line, Record) for line in lines)
        return Store(decode(line, InitialDocument).record for line in lines)
    except msgspec.DecodeError as error:
        raise Damaged(f"{server.address.shown}, initial documents: {error}") from error


def trace_lines(connection: Connection, most: int) -> list[str]:
    rows = connection.execute("SELECT line FROM trace WHERE seq <= %s ORDER BY seq", [most])
    return [line for (line,) in rows.fetchall()]


def read_trace(server: Server, most: int) -> Reading | None:
    """The trace up to a line, verified."""
    with server.said():
        lines = trace_lines(server.connection, most)
    if not lines:
        return None
    reading = reading_of("".join(f"{line}\n" for line in lines).encode(), server.address.shown)
    if len(reading.events) != most or reading.dropped:
        raise Damaged(f"{server.address.shown}: the trace has {len(reading.events)} lines, not {most}.")
    return reading


def earlier_store(server: Server, to: int) -> Store:
    """The store after an iteration, by a replay of the whole trace there is now."""
    meta, head = read_meta(server)
    reading = read_trace(server, head.seq)
    return replay(initial_store(server, meta.initial).copy, reading.events if reading else (), to)


def tables_store(server: Server, head: Head) -> Journal:
    """The store at the head, by the shorter way.

    Where the user's files were imported anew, which of two equal sentences counts as the first depends on history that
    tables do not hold: such a store is replayed.
    """
    if head.imports:
        return Journal.of(earlier_store(server, head.iteration))
    return load(server.connection, head)
