"""The appender of a store in PostgreSQL: many processes, one order.

A turn locks the head row, gives what others committed, and ends with one SQL transaction that holds the events,
the changed documents and links, and the new head: all of it or nothing. The events are replayed on a store of the
appender's own before they are written, so no client can commit what a replay would not repeat.

Where the connection breaks in the very moment of a commit, the appender connects again, waits for the head (whatever
the old connection was doing is over then) and looks for its own mark in the trace: it never guesses.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import msgspec

from kbgym.canonical import encode
from kbgym.errors import BadInput, Failed, KbgymError
from kbgym.trace.events import Committed, Event, Genesis
from kbgym.trace.journal import Journal
from kbgym.trace.log import chained, verified
from kbgym.trace.place import Lost, Place
from kbgym.trace.postgres.reading import earlier_store, tables_store
from kbgym.trace.postgres.server import Batch, Server
from kbgym.trace.postgres.tables import LOCK_HEAD, Head, head_of, write_all, write_changes, write_head, write_trace
from kbgym.trace.replay import catch_up

_TRIES = 4
# Waiting for a row wakes everybody who waits at every commit; this lock is a queue, and wakes the next one.
_QUEUE = "SELECT pg_advisory_xact_lock(%s)"
_NEWS = "SELECT line FROM trace WHERE seq > %s ORDER BY seq"


class PostgresWriter:
    """Appends whole transactions, in turn with every other client of the store. A `place.Appender`."""

    shared = True

    def __init__(self, server: Server, head: Head) -> None:
        """Continue after `head`; what others committed since is given by `news`."""
        self._server = server
        self._seq, self._chain, self._iteration = head.seq, head.chain, head.iteration  # how far it has looked
        self._store: Journal | None = None  # what the tables hold at `_seq`; none: to be read again
        self._head: Head | None = None  # while it is this process's turn
        self._wanted: list[Event] | None = None
        self._client = secrets.token_hex(8)
        self._claims: dict[str, None] = {}
        self._turn = self._key("")

    # -- others -------------------------------------------------------------------------------------------------------

    def news(self) -> tuple[Event, ...]:
        """What others committed since the last news; does not wait for anybody's turn."""
        if self._head is not None:
            return ()
        for _ in range(_TRIES):
            try:
                lines = self._server.connection.execute(_NEWS, [self._seq]).fetchall()
                return self._looked([line for (line,) in lines])
            except self._server.errors as error:
                self._again(error)
        raise Failed(f"{self._server.address.shown} breaks every connection.")

    def _looked(self, lines: Sequence[str]) -> tuple[Event, ...]:
        """Verify lines that were read and apply them to this appender's store."""
        events: list[Event] = []
        chain = self._chain
        for number, line in enumerate(lines, self._seq + 1):
            event, chain = verified(self._server.address.shown, number, line.encode(), chain)
            events.append(event)
        if events:
            store, self._store = self._store, None  # not to be trusted should this fail
            if store is not None:
                self._follow(store, events)
                self._store = store
            self._advance(events, chain)
        return tuple(events)

    def _follow(self, store: Journal, events: Sequence[Event]) -> None:
        now = catch_up(store, events, self._iteration, partial(earlier_store, self._server), first=self._seq + 1)
        if now is not store:
            store.become(now)

    def _advance(self, events: Sequence[Event], chain: str) -> None:
        last = events[-1]
        self._seq, self._chain = self._seq + len(events), chain
        self._iteration = last.iteration if isinstance(last, Committed) else 0

    # -- a turn -------------------------------------------------------------------------------------------------------

    @contextmanager
    def turn(self) -> Iterator[tuple[Event, ...]]:
        """Hold up the other writers; the one commit made inside is written at the end, or nothing is."""
        if self._head is not None:
            raise RuntimeError("a turn inside a turn")
        news = self._begin()
        try:
            yield news
        except BaseException:
            self._undo()
            raise
        if self._wanted is None:
            self._undo()
        else:
            self._finish()

    def commit(self, events: Sequence[Event]) -> None:
        """Have a transaction written at the end of the turn; without a turn, at once, if nothing came in between."""
        if not events or not isinstance(events[-1], Committed | Genesis):
            raise ValueError("a transaction ends with its commit")
        if self._head is not None:
            if self._wanted is not None:
                raise RuntimeError("a turn has one commit")
            self._wanted = list(events)
            return
        with self.turn() as news:
            if news:
                where = self._server.address.shown
                raise BadInput(f"{where} was written by another process since it was read; run the command again.")
            self._wanted = list(events)

    def _begin(self) -> tuple[Event, ...]:
        news: list[Event] = []
        for _ in range(_TRIES):
            try:
                batch = self._taking()
                batch.execute(_NEWS, [self._seq])
                *_, (row,), lines = batch.send(self._server.connection)
                head = head_of(row)
                news += self._looked([line for (line,) in lines])
                if self._store is None:
                    self._store = tables_store(self._server, head)
                self._store.clear()
            except self._server.errors as error:
                self._again(error)
            except BaseException:
                self._undo()
                raise
            else:
                self._head = head
                return tuple(news)
        raise Failed(f"{self._server.address.shown} breaks every connection.")

    def _taking(self) -> Batch:
        """The statements that wait for the turn."""
        batch = Batch()
        batch.execute("BEGIN")
        batch.execute(_QUEUE, [self._turn])
        batch.execute(LOCK_HEAD)
        return batch

    def _finish(self) -> None:
        """Replay the events here, then write them and everything they change in one go."""
        events, head, store = self._wanted or [], self._head, self._store
        assert head is not None and store is not None
        self._wanted, self._store = None, None  # the store is to be trusted again once all is well
        block, chain = [], head.chain
        for event in events:
            line, chain = chained(encode(event), chain)
            block.append(line[:-1].decode())
        try:
            self._follow(store, events)
            self._write(store, head, events, block, chain)
        except self._server.errors as error:
            if not self._server.lost:
                self._undo()
                raise self._server.failure(error) from None
            self._head = None
            self._resolve(head.seq + len(events), error)
        except BaseException:
            self._undo()
            raise
        else:
            self._head, self._store = None, store
        self._advance(events, chain)

    def _write(self, store: Journal, head: Head, events: Sequence[Event], block: list[str], chain: str) -> None:
        connection = self._server.connection
        after = Head.after(head, events, chain, store)
        batch = Batch()
        write_trace(batch, head.seq, self._client, events, block)
        if store.whole:
            counter = write_all(connection, store, after.iteration)
        else:
            counter = write_changes(batch, store, after.iteration, head.counter)
        write_head(batch, msgspec.structs.replace(after, counter=counter))
        batch.execute("COMMIT")
        batch.send(connection)

    def _undo(self) -> None:
        """Nothing of this turn is kept, and the others may go on."""
        self._head, self._wanted = None, None
        self._server.forget()

    # -- failures -----------------------------------------------------------------------------------------------------

    def _again(self, error: Exception) -> None:
        """Before anything was written: connect again if the connection was lost, else raise."""
        self._head = None
        if not self._server.lost:
            self._undo()
            raise self._server.failure(error) from None
        self._reconnect()

    def _reconnect(self) -> None:
        self._server.reconnect()
        # The server has freed the claims of the old connection.
        for name in list(self._claims):
            del self._claims[name]
            self.claim(name)

    def _resolve(self, seq: int, error: Exception) -> None:
        """The connection broke while a transaction was committed: return if it was, raise if it was not."""
        try:
            self._reconnect()
            batch = self._taking()
            batch.execute("SELECT client FROM trace WHERE seq = %s", [seq])
            batch.execute("ROLLBACK")
            with self._server.said():
                found = batch.send(self._server.connection)[-2]
        except KbgymError as trouble:
            raise Failed(f"{trouble} Whether the last transaction (trace line {seq}) was kept is not known.") from None
        if found != [(self._client,)]:
            said = str(self._server.failure(error))
            raise Lost(f"{said} The transaction was not committed; it can be tried again.") from None

    def rejoin(self, place: Place) -> None:
        """Continue from what a place of this store has read."""
        head = getattr(place, "head", None)
        if not isinstance(head, Head):
            raise TypeError("only a place of the same store can be gone on from")
        self._seq, self._chain, self._iteration = head.seq, head.chain, head.iteration
        self._store = None

    # -- claims -------------------------------------------------------------------------------------------------------

    def claim(self, name: str) -> bool:
        """Take a piece of work nobody else has; the server frees it when this process ends, however it ends."""
        if name in self._claims:
            return True
        for _ in range(_TRIES):
            try:
                row = self._server.connection.execute("SELECT pg_try_advisory_lock(%s)", [self._key(name)]).fetchone()
            except self._server.errors as error:
                self._again(error)
            else:
                if row is not None and row[0]:
                    self._claims[name] = None
                return name in self._claims
        return False

    def release(self, name: str) -> None:
        if name in self._claims:
            del self._claims[name]
            with self._server.said():
                self._server.connection.execute("SELECT pg_advisory_unlock(%s)", [self._key(name)])

    def _key(self, name: str) -> int:
        whole = hashlib.sha256(f"{self._server.address.schema}\0{name}".encode()).digest()
        return int.from_bytes(whole[:8], "big", signed=True)

    def close(self) -> None:
        if self._claims and not self._server.lost:
            with suppress(*self._server.errors):  # the server would notice, a moment later
                self._server.connection.execute("SELECT pg_advisory_unlock_all()")
        self._server.close()

    def __enter__(self) -> PostgresWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
