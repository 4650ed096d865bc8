"""The tables of a store in PostgreSQL.

    meta       one row: the version of these tables, the kind of file the initial lines come from, `arm.json`, and
               counts of the initial documents
    initial    the initial documents, one line of their file each, with its id and a hash of its normalised text
    links      target and source of every initial link
    carried    originals carried by a document with another id
    trace      every event as a line of `trace.jsonl`, hash chain included
    vectors_*, word_*    derived by a search; may be dropped

Only the trace grows; the other tables never change. A store is the fold of its trace over its initial documents.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kbgym.backends.postgres.server import Server, value_of
from kbgym.canonical import Decoder, decode, encode
from kbgym.errors import BadInput, Damaged
from kbgym.progress import ProgressCallback
from kbgym.store import Record, Store
from kbgym.store.ledger import counts_of
from kbgym.store.record import Counts, normalised
from kbgym.trace.events import Event
from kbgym.trace.folder import RECORDS, InitialDocument
from kbgym.trace.log import START, TraceReading, reading_of

if TYPE_CHECKING:
    from kbgym.backends.postgres.base import DatabaseBase
    from kbgym.backends.postgres.server import Connection, Statement

VERSION = 2
_CREATE = Path(__file__).with_name("store.sql").read_text(encoding="utf-8")
_ADD = """INSERT INTO trace SELECT seq, iteration, %s::text, line
    FROM json_to_recordset(%s::json) AS new (seq bigint, iteration bigint, line text)"""
_BATCH = 5_000  # lines of a trace read at once
_PROGRESS_ROWS = 1000  # rows between two progress reports
_PAUSE = 0.2  # polling interval in seconds while another process builds a derived table


class Meta(msgspec.Struct, frozen=True):
    """The file name of the initial lines, the text of `arm.json`, and counts of the initial documents."""

    initial: str
    arm: str | None
    counts: Counts


class Head(msgspec.Struct, frozen=True):
    """The end of a trace."""

    seq: int = 0
    chain: str = START
    iteration: int = 0
    position: int = 0


# -- reading ----------------------------------------------------------------------------------------------------------


def read_meta(server: Server) -> tuple[Meta, Head]:
    """Return the metadata of a store and the end of its trace. Raise BadInput if there is no store."""
    shown, connection = server.address.shown, server.connection
    with server.translated():
        if value_of(connection, "SELECT to_regclass(%s)", [f'"{server.address.schema}".meta']) is None:
            raise BadInput(f"there is no store at {shown}; `kbgym store copy FOLDER URL` makes one.")
        if (version := value_of(connection, "SELECT version FROM meta")) is None:
            raise Damaged("the store has lost its meta row.")
        if version != VERSION:
            raise BadInput(f"{shown} has tables of version {version}; this version of kbgym reads {VERSION}.")
        found = connection.execute("SELECT initial, arm, counts FROM meta").fetchone()
        assert found is not None
        last = connection.execute("SELECT seq, line FROM trace ORDER BY seq DESC LIMIT 1").fetchone()
        try:
            head = Head() if last is None else msgspec.structs.replace(decode(last[1], Head), seq=last[0])
        except msgspec.DecodeError as error:
            raise Damaged(f"the last line of the trace cannot be read: {error}") from error
        return Meta(found[0], found[1], decode(found[2], Counts)), head


def trace_lines(connection: Connection, end: int) -> Iterator[str]:
    """Yield the lines of a trace up to number `end`, reading them in batches."""
    last = 0
    while last < end:
        statement = "SELECT line FROM trace WHERE seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
        rows = connection.execute(statement, [last, end, _BATCH]).fetchall()
        if not rows:
            return
        yield from (line for (line,) in rows)
        last += len(rows)


def read_trace(server: Server, end: int) -> TraceReading | None:
    """Read and verify the trace up to line `end`."""
    if not end:
        return None
    with server.translated():
        reading = reading_of((line.encode() for line in trace_lines(server.connection, end)), server.address.shown)
    if len(reading.events) != end or reading.dropped:
        raise Damaged(f"{server.address.shown}: the trace has {len(reading.events)} lines, not {end}.")
    return reading


def record_reader(kind: str, where: str) -> Callable[[str], Record]:
    """Return a function that decodes initial lines of a kind of file; `where` is used in messages."""
    whole, short = Decoder[Record](Record), Decoder[InitialDocument](InitialDocument)

    def read(line: str) -> Record:
        try:
            return whole.decode(line) if kind == RECORDS else short.decode(line).record
        except msgspec.DecodeError as error:
            raise Damaged(f"{where}, initial documents: {error}") from error

    return read


def text_hash(text: str) -> int:
    """Return a 64-bit hash of a normalised text."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# -- writing ----------------------------------------------------------------------------------------------------------


def write_initial(
    connection: Connection, kind: str, lines: Sequence[str], arm: str | None, tick: ProgressCallback | None = None
) -> None:
    """Create the tables of a store and fill them with its initial lines."""
    # Counting millions of documents takes longer than an idle transaction may last.
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    connection.execute(_CREATE)
    records = list(map(record_reader(kind, "the new store"), lines))
    if wrong := next((record.id for record in records if "\0" in record.id), None):
        raise BadInput(f"document {wrong!r} has a NUL character in its id, which PostgreSQL does not store.")
    counts = encode(counts_of(Store(records))).decode()  # raises if the documents are invalid
    rows = (
        (n, r.id, text_hash(normalised(r.text)), line)
        for n, (r, line) in enumerate(zip(records, lines, strict=True), 1)
    )
    _fill(connection, "initial", rows, len(lines), tick)
    numbered = list(enumerate(records, 1))
    _fill(connection, "links", ((target, n) for n, record in numbered for target in record.links))
    _fill(connection, "carried", ((origin, n) for n, r in numbered for origin in r.origins if origin != r.id))
    connection.execute("CREATE UNIQUE INDEX ids ON initial (id)")
    connection.execute("CREATE INDEX texts ON initial (same)")
    connection.execute("INSERT INTO meta VALUES (%s, %s, %s, %s)", [VERSION, kind, arm, counts])


def write_whole_trace(
    connection: Connection, events: Sequence[Event], lines: Sequence[str], tick: ProgressCallback | None = None
) -> None:
    rows = (
        (number, getattr(event, "iteration", 0), "copy", line)
        for number, (event, line) in enumerate(zip(events, lines, strict=True), 1)
    )
    _fill(connection, "trace", rows, len(lines), tick)


def _fill(
    connection: Connection,
    table: str,
    rows: Iterable[tuple[Any, ...]],
    total: int = 0,
    tick: ProgressCallback | None = None,
) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for done, row in enumerate(rows):
            if tick is not None and done % _PROGRESS_ROWS == 0:
                tick(done, total, table)
            copy.write_row(row)


def addition(seq: int, client: str, events: Sequence[Event], lines: Sequence[str]) -> Statement:
    """Return the statement that appends lines after line `seq`."""
    rows = [
        {"seq": number, "iteration": getattr(event, "iteration", 0), "line": line}
        for number, (event, line) in enumerate(zip(events, lines, strict=True), seq + 1)
    ]
    return _ADD, [client, encode(rows).decode()]


# -- derived tables ---------------------------------------------------------------------------------------------------


def make_once(
    base: DatabaseBase, name: str, ready: Callable[[Connection], bool], make: Callable[[Connection], None]
) -> None:
    """Build derived data in one process; others wait until it is ready or that process has ended."""
    with base.connection() as connection:
        lock = "(hashtext(current_schema()), hashtext(%s))"
        while not ready(connection):
            if not value_of(connection, f"SELECT pg_try_advisory_lock{lock}", [name]):
                time.sleep(_PAUSE)
                continue
            try:
                if not ready(connection):
                    make(connection)
            finally:
                with suppress(Exception):  # a lost connection holds no lock
                    connection.execute(f"SELECT pg_advisory_unlock{lock}", [name])


def is_labelled(connection: Connection, table: str, label: str) -> bool:
    """Return True if the derived table exists and its comment is `label`."""
    statement = "SELECT obj_description(to_regclass(quote_ident(current_schema()) || '.' || %s), 'pg_class')"
    return bool(value_of(connection, statement, [table]) == label)


def highest(connection: Connection, table: str) -> int:
    """Return the number up to which a derived table is filled."""
    return int(value_of(connection, f"SELECT max(number) FROM {table}") or 0)
