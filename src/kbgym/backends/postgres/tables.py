"""The tables of a store in PostgreSQL, and how those of an earlier version become these.

    meta       one row: the version of these tables, what kind of file the initial lines were, which arm made the store,
               and what is known of all its initial documents together
    initial    what the store began with, line by line as it stood in its file, each with its id and a key of its text
    links      which of them link to which; `carried`: originals that stand in a document of another id
    trace      every event, line by line as it would stand in `trace.jsonl`, hash chain included
    vectors_*, word*   made by a search, derived, may be thrown away

But for the trace nothing ever changes: a store is the fold of its trace over what it began with, here as in a folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kbgym.backends.postgres.derived_tables import drop_own
from kbgym.canonical import Decoder, decode, encode
from kbgym.errors import BadInput, Damaged
from kbgym.progress import ProgressCallback
from kbgym.store import Record, Store
from kbgym.store.ledger import counts_of
from kbgym.store.record import Counts, normalised
from kbgym.trace.events import Event
from kbgym.trace.folder import RECORDS, InitialDocument
from kbgym.trace.log import START

if TYPE_CHECKING:
    from kbgym.backends.postgres.server import Batch, Connection

VERSION = 2

CREATE = (
    "CREATE TABLE meta (version int NOT NULL, initial text NOT NULL, arm text, counts text NOT NULL)",
    """CREATE TABLE initial (number bigint PRIMARY KEY, id text COLLATE "C" NOT NULL, same bigint NOT NULL,
        line text NOT NULL)""",
    'CREATE TABLE links (target text COLLATE "C" NOT NULL, number bigint NOT NULL, PRIMARY KEY (target, number))',
    'CREATE TABLE carried (origin text COLLATE "C" NOT NULL, number bigint NOT NULL, PRIMARY KEY (origin, number))',
)
CREATE_TRACE = (
    "CREATE TABLE trace (seq bigint PRIMARY KEY, iteration bigint NOT NULL, client text NOT NULL, line text NOT NULL)"
)
_LAST = "SELECT seq, line FROM trace ORDER BY seq DESC LIMIT 1"
_TOLD = 1000  # rows between two words to whoever waits


class Meta(msgspec.Struct, frozen=True):
    """What kind of store it is: the name of the file its initial lines would stand in, the arm that made it, and what
    is known of its initial documents."""

    initial: str
    arm: str | None
    counts: Counts


class Head(msgspec.Struct, frozen=True):
    """Where a trace ends."""

    seq: int = 0
    chain: str = START
    iteration: int = 0
    position: int = 0


class _Last(msgspec.Struct, frozen=True):
    chain: str
    iteration: int = 0
    position: int = 0


def read_head(connection: Connection) -> Head:
    row = connection.execute(_LAST).fetchone()
    if row is None:
        return Head()
    try:
        last = decode(row[1], _Last)
    except msgspec.DecodeError as error:
        raise Damaged(f"the last line of the trace cannot be read: {error}") from error
    return Head(row[0], last.chain, last.iteration, last.position)


def records_in(kind: str, where: str) -> Callable[[str], Record]:
    """What makes a record of an initial line of a kind of file; `where` is for messages."""
    whole, short = Decoder[Record](Record), Decoder[InitialDocument](InitialDocument)

    def read(line: str) -> Record:
        try:
            return whole.decode(line) if kind == RECORDS else short.decode(line).record
        except msgspec.DecodeError as error:
            raise Damaged(f"{where}, initial documents: {error}") from error

    return read


def key_of(text: str) -> int:
    """The number documents with one text, once it is normalised, have in common; others hardly ever have it."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# -- writing ----------------------------------------------------------------------------------------------------------


def write_initial(
    connection: Connection, kind: str, lines: Sequence[str], arm: str | None, tick: ProgressCallback | None = None
) -> None:
    """Make the tables of a store that began with these lines and fill them."""
    # Counting millions takes longer than whoever holds a turn may be silent; nobody waits for this one.
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    for statement in CREATE:
        connection.execute(statement)
    records = list(map(records_in(kind, "the new store"), lines))
    if wrong := next((record.id for record in records if "\0" in record.id), None):
        raise BadInput(f"document {wrong!r} has a NUL character in its id, which PostgreSQL does not store.")
    counts = encode(counts_of(Store(records))).decode()  # refuses documents that no store could have
    rows = (
        (n, r.id, key_of(normalised(r.text)), line) for n, (r, line) in enumerate(zip(records, lines, strict=True), 1)
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
    connection.execute(CREATE_TRACE)
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
            if tick is not None and done % _TOLD == 0:
                tick(done, total, table)
            copy.write_row(row)


def add_to_trace(batch: Batch, seq: int, client: str, events: Sequence[Event], lines: Sequence[str]) -> None:
    """Add lines behind line `seq`."""
    rows = [
        {"seq": number, "iteration": getattr(event, "iteration", 0), "line": line}
        for number, (event, line) in enumerate(zip(events, lines, strict=True), seq + 1)
    ]
    batch.often(
        "INSERT INTO trace SELECT seq, iteration, %s::text, line "
        "FROM json_to_recordset(%s::json) AS new (seq bigint, iteration bigint, line text)",
        [client, encode(rows).decode()],
    )


# -- versions ---------------------------------------------------------------------------------------------------------


def upgrade(connection: Connection, version: int) -> None:
    """Bring the tables of an earlier version up to this one, all or nothing; the caller has everybody else wait."""
    while version < VERSION:
        _STEPS[version](connection)
        version += 1


def _without_tables_of_the_head(connection: Connection) -> None:
    """Version 1 had the store at its head in tables, too, and only lines of what it began with."""
    row = connection.execute("SELECT initial, arm FROM meta").fetchone()
    assert row is not None
    lines = [line for (line,) in connection.execute("SELECT line FROM initial ORDER BY number")]
    drop_own(connection, "vectors", "links", "documents", "head", "initial", "meta")
    write_initial(connection, row[0], lines, row[1])


_STEPS: dict[int, Callable[[Any], None]] = {1: _without_tables_of_the_head}
