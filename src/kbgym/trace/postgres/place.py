"""A store in PostgreSQL, shared by many processes: `postgresql://...` wherever a STORE is asked for.

It is looked at once, like a folder: what others commit later comes as news to an appender. The tables hold the store at
the head, the trace holds everything; each can be checked against the other. SQL is in `postgres_tables.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import decode
from kbgym.errors import BadInput, Damaged
from kbgym.store import Store
from kbgym.trace.events import SCHEMA, Event, Genesis
from kbgym.trace.folder import RECORDS, imported, returning
from kbgym.trace.journal import Journal
from kbgym.trace.log import START, Reading
from kbgym.trace.postgres.reading import initial_lines, initial_store, read_meta, read_trace, trace_lines
from kbgym.trace.postgres.server import Server
from kbgym.trace.postgres.tables import CREATE, HEAD, VERSION, Head, head_of, load, write_all, write_lines
from kbgym.trace.postgres.url import parse
from kbgym.trace.postgres.writer import PostgresWriter
from kbgym.trace.replay import Watcher, replay
from kbgym.worlds.world import Document


class PostgresStore:
    """Initial documents and a trace in a database. It fits `place.Place`."""

    folder: Path | None = None

    def __init__(self, url: str) -> None:
        self.address = parse(url)
        self.server = Server(self.address)
        self.meta, self.head = read_meta(self.server)

    @property
    def name(self) -> str:
        return self.address.shown

    @property
    def at(self) -> int | None:
        return self.address.at

    @property
    def arm(self) -> str:
        return str(decode(self.meta.arm, dict[str, Any])["arm"]) if self.meta.arm else ""

    @cached_property
    def initial(self) -> Store:
        return initial_store(self.server, self.meta.initial)

    @cached_property
    def reading(self) -> Reading | None:
        return read_trace(self.server, self.head.seq)

    @property
    def events(self) -> tuple[Event, ...]:
        return self.reading.events if self.reading else ()

    @cached_property
    def genesis(self) -> Genesis | None:
        with self.server.said():
            lines = trace_lines(self.server.connection, min(1, self.head.seq))
        return decode(lines[0], Genesis) if lines else None

    @property
    def iteration(self) -> int:
        return self.head.iteration

    @property
    def position(self) -> int:
        return self.head.position

    def store(self, at: int | None = None, watch: Watcher | None = None) -> Store:
        """The store after an iteration: from the tables where the last is asked for, else by replay."""
        at = self.at if at is None else at
        if at is not None and at > self.head.iteration:
            self._look_again()  # somebody may have come that far since
        if at is None and watch is None and not self.head.imports and (found := self._from_tables()) is not None:
            return found.copy()
        return replay(self.initial.copy, self.events, at, watch)

    def _from_tables(self) -> Journal | None:
        """The store at the head; none where somebody has written since this place was opened."""
        with self.server.snapshot() as connection:
            head = head_of(connection.execute(HEAD).fetchone())
            return load(connection, head) if head.seq == self.head.seq else None

    def verify(self) -> None:
        """See that the tables hold what the trace says, in every byte and in the same order."""
        with self.server.snapshot() as connection:
            head = head_of(connection.execute(HEAD).fetchone())
            reading = read_trace(self.server, head.seq)
            there = load(connection, head)
        here = replay(self.initial.copy, reading.events if reading else ())
        if list(there) != list(here):
            raise Damaged(f"{self.name}: the tables are not what the trace says.")
        iteration, chain = (reading.iteration, reading.chain) if reading else (0, START)
        if (head.iteration, head.chain) != (iteration, chain):
            raise Damaged(f"{self.name}: the head is not where the trace ends.")

    # -- writing ------------------------------------------------------------------------------------------------------

    def start(self, embedder: str, settings: dict[str, Any]) -> PostgresWriter:
        """Begin a trace; where somebody else has just begun it, go on with theirs."""
        writer = self.resume()
        with writer.turn() as news:
            if not news:
                begin = self.initial
                writer.commit([Genesis(SCHEMA, len(begin), begin.fingerprint, embedder, settings)])
        return writer

    def resume(self) -> PostgresWriter:
        """Go on after what was looked at; the appender has a connection of its own."""
        return PostgresWriter(Server(self.address), self.head)

    def rollback(self, to: int, reason: str = "") -> Store:
        """Return to an earlier iteration by adding to the history."""
        with self.resume() as writer, writer.turn() as news:
            store, events = returning(self.name, self.initial, (*self.events, *news), to, reason)
            writer.commit(events)
        self._look_again()
        return store

    def _look_again(self) -> None:
        self.meta, self.head = read_meta(self.server)
        for name in ("reading", "genesis"):
            self.__dict__.pop(name, None)

    # -- originals ----------------------------------------------------------------------------------------------------

    def originals(self) -> dict[str, Document]:
        if self.meta.initial == RECORDS:
            return imported((), self.events)
        with self.server.said():
            lines = list(initial_lines(self.server.connection))
        return imported((decode(line, Document) for line in lines), self.events)

    def close(self) -> None:
        self.server.close()


def stored_lines(place: PostgresStore) -> tuple[list[str], list[str]]:
    """The initial lines and the trace's, as they stand."""
    with place.server.said():
        connection = place.server.connection
        return list(initial_lines(connection)), trace_lines(connection, place.head.seq)


def create(
    url: str,
    kind: str,
    initial: Iterable[str],
    trace: Iterable[str] = (),
    events: tuple[Event, ...] = (),
    arm: str | None = None,
    tick: Callable[[int, int, str], None] | None = None,
) -> PostgresStore:
    """A new store from the lines of its two files; refused where there is one. All or nothing."""
    address = parse(url)
    if address.at is not None:
        raise BadInput(f"{address.shown} is to be written: leave out the iteration.")
    server = Server(address)
    connection = server.connection
    try:
        with server.said(), connection.transaction():
            names = [f'"{address.schema}".meta', f'"{address.schema}"']
            row = connection.execute("SELECT to_regclass(%s) IS NULL, to_regnamespace(%s) IS NULL", names).fetchone()
            if row is None or not row[0]:
                raise BadInput(f"there is a store at {address.shown} already; it is never written over.")
            if row[1]:
                connection.execute(f'CREATE SCHEMA "{address.schema}"')
            for statement in CREATE:
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES (%s, %s, %s)", [VERSION, kind, arm])
            whole = list(initial)
            write_lines(connection, "initial", _counted(enumerate(whole, 1), len(whole), "initial documents", tick))
            began = initial_store(server, kind)
            lines = list(trace)
            numbered = zip(range(1, len(lines) + 1), events, lines, strict=True)
            rows = ((number, getattr(event, "iteration", 0), "copy", line) for number, event, line in numbered)
            write_lines(connection, "trace", _counted(rows, len(lines), "trace", tick))
            store = Journal.of(replay(began.copy, events))
            chain = decode(lines[-1], dict[str, Any])["chain"] if lines else START
            head = Head.after(None, events, chain, store)
            head = msgspec.structs.replace(head, counter=write_all(connection, store, head.iteration))
            connection.execute(
                "INSERT INTO head VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", msgspec.structs.astuple(head)
            )
    finally:
        server.close()
    return PostgresStore(url)


def _counted(
    rows: Iterable[tuple[Any, ...]], total: int, what: str, tick: Callable[[int, int, str], None] | None
) -> Iterator[tuple[Any, ...]]:
    for done, row in enumerate(rows):
        if tick is not None and done % 1000 == 0:
            tick(done, total, what)
        yield row
