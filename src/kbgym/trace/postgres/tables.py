"""The tables of a store in PostgreSQL: what they are, a store read from them, a store's changes written to them.

    meta       one row: the version of these tables, what kind of file the initial lines were, which arm made the store
    initial    what the store began with, line by line as it stood in its file
    trace      every event, line by line as it would stand in `trace.jsonl`, hash chain included
    head       one row: where the trace ends, and the counters of the store; read and written by whoever has the turn
    documents, links   the store at the head; a link to a document that is not there is refused by the database
    vectors    made by `search/pgvector.py`, derived, may be thrown away

Documents have a `place` in the store's order; a link has a `position` among those of its source and a `number` among
those to its target. All are drawn from one counter of the head, so the store is read back as it was, order included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from kbgym.canonical import encode
from kbgym.errors import BadInput, Damaged
from kbgym.store import Record
from kbgym.store.record import Flag
from kbgym.trace.events import Committed, Event, Imported
from kbgym.trace.journal import Journal

if TYPE_CHECKING:
    from kbgym.trace.postgres.server import Batch, Connection

VERSION = 1

CREATE = (
    "CREATE TABLE meta (version int NOT NULL, initial text NOT NULL, arm text)",
    "CREATE TABLE initial (number bigint PRIMARY KEY, line text NOT NULL)",
    "CREATE TABLE trace (seq bigint PRIMARY KEY, iteration bigint NOT NULL, client text NOT NULL, line text NOT NULL)",
    """CREATE TABLE head (seq bigint NOT NULL, chain text NOT NULL, iteration bigint NOT NULL, position bigint NOT NULL,
        hash text NOT NULL, issued bigint NOT NULL, merges bigint NOT NULL, origins bigint NOT NULL,
        imports bigint NOT NULL, counter bigint NOT NULL)""",
    """CREATE TABLE documents (id text COLLATE "C" PRIMARY KEY, text text NOT NULL, origin text, flag text NOT NULL,
        absorbed text[] NOT NULL, place bigint NOT NULL, changed bigint NOT NULL)""",
    """CREATE TABLE links (source text COLLATE "C" NOT NULL REFERENCES documents,
        target text COLLATE "C" NOT NULL REFERENCES documents, position bigint NOT NULL, number bigint NOT NULL,
        PRIMARY KEY (source, target), CHECK (source <> target))""",
    "CREATE INDEX links_to ON links (target)",
)
HEAD = "SELECT seq, chain, iteration, position, hash, issued, merges, origins, imports, counter FROM head"
# Whether a field is left out of a record's bytes is decided by identity with its default.
_FLAGS: dict[str, Flag] = {flag: flag for flag in get_args(Flag)}


class Head(msgspec.Struct, frozen=True):
    """Where a store stands."""

    seq: int
    chain: str
    iteration: int
    position: int
    hash: str
    issued: int
    merges: int
    origins: int
    imports: int
    counter: int

    @staticmethod
    def after(head: Head | None, events: Sequence[Event], chain: str, store: Journal) -> Head:
        """Where a store stands after some events, the last of them a commit; the counter is as it was."""
        seq, imports, counter = (head.seq, head.imports, head.counter) if head else (0, 0, 0)
        last = events[-1] if events else None
        iteration, position = (last.iteration, last.position) if isinstance(last, Committed) else (0, 0)
        imports += sum(isinstance(event, Imported) for event in events)
        counts = (store.fingerprint, store.issued, store.merges, store.origins, imports, counter)
        return Head(seq + len(events), chain, iteration, position, *counts)


def head_of(row: tuple[Any, ...] | None) -> Head:
    if row is None:
        raise Damaged("the store has lost its head row.")
    return Head(*row)


def load(connection: Connection, head: Head) -> Journal:
    """The store at the head; the caller sees to it that nobody writes, or that one snapshot is read."""
    links: dict[str, list[str]] = {}
    arrived: list[tuple[int, str, str]] = []
    for source, target, number in connection.execute("SELECT source, target, number FROM links ORDER BY position"):
        links.setdefault(source, []).append(target)
        arrived.append((number, source, target))
    rows = connection.execute("SELECT id, text, origin, flag, absorbed FROM documents ORDER BY place")
    store = Journal(
        Record(id, text, tuple(links.get(id, ())), origin, _FLAGS[flag], tuple(absorbed))
        for id, text, origin, flag, absorbed in rows
    )
    store.restore(head.issued, head.merges, head.origins, ((source, target) for _, source, target in sorted(arrived)))
    if store.fingerprint != head.hash:
        raise Damaged("the tables are not what the trace says: documents and links were changed from outside.")
    return store


# -- writing ----------------------------------------------------------------------------------------------------------


def write_head(batch: Batch, head: Head) -> None:
    batch.often(
        """UPDATE head SET seq = %s, chain = %s, iteration = %s, position = %s, hash = %s, issued = %s, merges = %s,
        origins = %s, imports = %s, counter = %s""",
        msgspec.structs.astuple(head),
    )


def write_trace(batch: Batch, seq: int, client: str, events: Sequence[Event], lines: Sequence[str]) -> None:
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


def write_changes(batch: Batch, store: Journal, iteration: int, counter: int) -> int:
    """Do to the tables what was done to the store since it was cleared; gives the counter after it."""
    batch.execute_with(_UNLINK, [{"source": source, "target": target} for source, target in store.unlinked])
    batch.execute_with(_INSERT, [_row(store[id], place, iteration) for place, id in enumerate(store.added, counter)])
    counter += len(store.added)
    changed = []
    for id, before in store.before.items():
        if before is not None and id in store and id not in store.added:
            record = store[id]
            if msgspec.structs.replace(record, links=before.links) != before:
                changed.append(_row(record, 0, iteration))
    batch.execute_with(_UPDATE, changed)
    counter = _write_links(batch, store, counter)
    gone = [id for id, before in store.before.items() if before is not None and id not in store]
    if gone:
        batch.often("DELETE FROM documents WHERE id = ANY(%s::text[])", [gone])
    return counter


_INSERT = """INSERT INTO documents (id, text, origin, flag, absorbed, place, changed)
    SELECT * FROM json_to_recordset(%s::json)
    AS new (id text, text text, origin text, flag text, absorbed text[], place bigint, changed bigint)
    ON CONFLICT (id) DO UPDATE SET text = excluded.text, origin = excluded.origin, flag = excluded.flag,
    absorbed = excluded.absorbed, place = excluded.place, changed = excluded.changed"""
_UPDATE = """UPDATE documents SET text = new.text, origin = new.origin, flag = new.flag, absorbed = new.absorbed,
    changed = CASE WHEN documents.text = new.text THEN documents.changed ELSE new.changed END
    FROM json_to_recordset(%s::json)
    AS new (id text, text text, origin text, flag text, absorbed text[], changed bigint) WHERE documents.id = new.id"""

_UNLINK = """DELETE FROM links USING json_to_recordset(%s::json) AS gone (source text, target text)
    WHERE links.source = gone.source AND links.target = gone.target"""
_LINK = """INSERT INTO links (source, target, position, number) SELECT source, target, number, number
    FROM json_to_recordset(%s::json) AS new (source text, target text, number bigint)"""
_MOVE = """UPDATE links SET position = new.number
    FROM json_to_recordset(%s::json) AS new (source text, target text, number bigint)
    WHERE links.source = new.source AND links.target = new.target"""


def _row(record: Record, place: int, iteration: int) -> dict[str, Any]:
    if "\0" in record.text or "\0" in record.id:
        raise BadInput(f"document {record.id!r} holds a NUL character, which PostgreSQL does not store.")
    fields = {name: getattr(record, name) for name in ("id", "text", "origin", "flag", "absorbed")}
    return {**fields, "place": place, "changed": iteration}


def _write_links(batch: Batch, store: Journal, counter: int) -> int:
    came: dict[str, list[str]] = {}
    for source, target in store.linked:
        came.setdefault(source, []).append(target)
    rows = [{"source": one, "target": other, "number": n} for n, (one, other) in enumerate(store.linked, counter)]
    batch.execute_with(_LINK, rows)
    counter += len(rows)
    # New links stand last as a rule. Where a merge put one between others, all of that source are numbered anew.
    moved: list[dict[str, Any]] = []
    for source, targets in came.items():
        links = store[source].links
        if list(links[len(links) - len(targets) :]) != targets:
            moved += [{"source": source, "target": t, "number": n} for n, t in enumerate(links, counter)]
            counter += len(links)
    batch.execute_with(_MOVE, moved)
    return counter


def write_all(connection: Connection, store: Journal, iteration: int) -> int:
    """Put a whole store in the place of whatever is there; gives the counter after it."""
    connection.execute("DELETE FROM links")
    connection.execute("DELETE FROM documents")
    with connection.cursor().copy(
        "COPY documents (id, text, origin, flag, absorbed, place, changed) FROM STDIN"
    ) as copy:
        for place, record in enumerate(store):
            row = {**_row(record, place, iteration), "absorbed": list(record.absorbed)}
            copy.write_row(tuple(row.values()))
    numbers = store.inbound_order()
    position = 0
    with connection.cursor().copy("COPY links (source, target, position, number) FROM STDIN") as copy:
        for record in store:
            for target in record.links:
                copy.write_row((record.id, target, position, numbers[record.id, target]))
                position += 1
    return max(len(store), position)


def write_lines(connection: Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Fill `initial` or `trace` quickly."""
    query = "COPY initial (number, line) FROM STDIN" if table == "initial" else "COPY trace FROM STDIN"
    with connection.cursor().copy(query) as copy:
        for row in rows:
            copy.write_row(row)
