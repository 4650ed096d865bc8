"""Stores in PostgreSQL, shared by many processes: `postgresql://...` wherever a STORE is expected.

As in a folder, a store is the fold of its trace over its initial documents. These are held in memory if there are few,
otherwise read on demand; the writer returns events that others commit later. `tables` describes the tables.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbgym.backends.postgres.base import DatabaseBase, base_at
from kbgym.backends.postgres.server import Server, parse, value_of
from kbgym.backends.postgres.tables import read_meta, read_trace, trace_lines, write_initial, write_whole_trace
from kbgym.backends.postgres.writer import PostgresWriter
from kbgym.canonical import Decoder, decode
from kbgym.errors import BadInput, Damaged
from kbgym.gym.tools import is_editing
from kbgym.progress import ProgressCallback
from kbgym.store import Store
from kbgym.store.ledger import counts_of
from kbgym.trace.events import SCHEMA, Acted, Event, Genesis
from kbgym.trace.folder import RECORDS, StoreLines, imported, returning
from kbgym.trace.log import TraceReading
from kbgym.trace.replay import Watcher, replay
from kbgym.worlds.world import Document

if TYPE_CHECKING:
    from kbgym.trace.live import LiveStore

HELD = 100_000  # documents up to which all are held in memory, unless the URL overrides it


class PostgresBackend:
    """Initial documents and a trace in a database. A `StoreBackend`."""

    folder: Path | None = None

    def __init__(self, url: str) -> None:
        self.address = parse(url)
        self.name, self.at = self.address.shown, self.address.at
        self.server = Server(self.address)
        self._refresh()

    @property
    def arm(self) -> str:
        return str(decode(self.meta.arm, dict[str, Any])["arm"]) if self.meta.arm else ""

    @cached_property
    def base(self) -> DatabaseBase:
        return base_at(self.address, self.meta)

    @cached_property
    def initial(self) -> Store:
        few = self.meta.counts.documents <= HELD
        held = few if self.address.held is None else self.address.held
        return Store(self.base) if held else Store.over(self.base)

    @cached_property
    def reading(self) -> TraceReading | None:
        return read_trace(self.server, self.head.seq)

    @property
    def events(self) -> tuple[Event, ...]:
        return self.reading.events if self.reading else ()

    @cached_property
    def genesis(self) -> Genesis | None:
        with self.server.translated():
            lines = list(trace_lines(self.server.connection, min(1, self.head.seq)))
        return decode(lines[0], Genesis) if lines else None

    def store(self, at: int | None = None, watch: Watcher | None = None) -> Store:
        """Return the store after an iteration."""
        at = self.at if at is None else at
        if at is not None and at > self.head.iteration:
            self._refresh()  # another process may have committed it since
        events = self.events
        if watch is None and self.initial.base is not None:
            # Skip lookups: they changed nothing, and replay would read every document they showed.
            events = tuple(event for event in events if not isinstance(event, Acted) or is_editing(event.action))
        return replay(self.initial.copy, events, at, watch)

    def verify(self) -> None:
        """Raise Damaged if the counts of the initial documents do not match their lines."""
        if counts_of(Store(self.base)) != self.meta.counts:
            raise Damaged(f"{self.name}: the initial documents were changed from outside.")

    def start(self, embedder: str, settings: dict[str, Any]) -> PostgresWriter:
        """Begin a trace, or continue one that another process has just begun."""
        writer = self.resume()
        with writer.locked() as news:
            if not news:
                begin = self.initial
                writer.commit([Genesis(SCHEMA, len(begin), begin.fingerprint, embedder, settings)])
        return writer

    def resume(self) -> PostgresWriter:
        """Return a writer, with a connection of its own, that continues after what was read."""
        return PostgresWriter(Server(self.address), self.head)

    def rollback(self, to: int, reason: str = "") -> Store:
        """Return to an earlier iteration by adding to the history."""
        with self.resume() as writer, writer.locked() as news:
            store, events = returning(self.name, self.initial, (*self.events, *news), to, reason)
            writer.commit(events)
        self._refresh()
        return store

    def _refresh(self) -> None:
        self.meta, self.head = read_meta(self.server)
        self.iteration, self.position = self.head.iteration, self.head.position
        for name in ("reading", "genesis"):
            self.__dict__.pop(name, None)

    def originals(self, ids: Collection[str] | None = None) -> dict[str, Document]:
        known = () if self.meta.initial == RECORDS else map(Decoder[Document](Document).decode, self.base.lines(ids))
        return imported(known, self.events, ids)

    def lines(self) -> StoreLines:
        """Return the store as the lines of its files."""
        with self.server.translated():
            traced = list(trace_lines(self.server.connection, self.head.seq))
            return StoreLines(self.meta.initial, list(self.base.lines()), traced, self.events, self.meta.arm)

    def close(self) -> None:
        self.server.close()


class PostgresPlugin:
    """PostgreSQL as a `trace.backend.BackendPlugin`."""

    def open(self, url: str) -> PostgresBackend:
        return PostgresBackend(url)

    def create(self, url: str, lines: StoreLines, tick: ProgressCallback | None = None) -> PostgresBackend:
        """Write a new store atomically. Raise BadInput if one exists."""
        address = parse(url)
        if address.at is not None:
            raise BadInput(f"{address.shown} is to be written: leave out the iteration.")
        server = Server(address)
        connection = server.connection
        try:
            with server.translated(), connection.transaction():
                if value_of(connection, "SELECT to_regclass(%s)", [f'"{address.schema}".meta']) is not None:
                    raise BadInput(f"there is a store at {address.shown} already; it is never written over.")
                if value_of(connection, "SELECT to_regnamespace(%s)", [f'"{address.schema}"']) is None:
                    connection.execute(f'CREATE SCHEMA "{address.schema}"')
                write_initial(connection, lines.kind, lines.initial, lines.arm, tick)
                write_whole_trace(connection, lines.events, lines.trace, tick)
        finally:
            server.close()
        return PostgresBackend(url)

    def live_store(self) -> type[LiveStore]:
        from kbgym.backends.postgres.live import SharedLiveStore  # it loads the search

        return SharedLiveStore

    def display_name(self, url: str) -> str:
        address = parse(url)
        return address.shown if address.at is None else f"{address.shown}@{address.at}"


PLUGIN = PostgresPlugin()
