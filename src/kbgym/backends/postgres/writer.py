"""The writer of a trace in PostgreSQL, which serializes the transactions of many processes.

A write takes an advisory lock, reads the events that others committed, and ends with one SQL transaction that appends
events to the trace atomically.

The lock is released before the transaction is flushed: the next writer starts while this one waits, and one flush
serves many. The write-ahead log is in the order of the locks, so a flush includes all earlier transactions. Others may
briefly read events that a crash of the server loses; they detect this when they reconnect, and reload.

Every read begins with the last line applied so far; if a crash has lost that line, nothing is appended to it. If the
connection is lost during a commit, the writer reconnects, waits for the lock (by then the old connection has ended) and
searches the trace for its own mark.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kbgym.backends.postgres.server import Server, Statement, send
from kbgym.backends.postgres.tables import Head, addition
from kbgym.canonical import encode
from kbgym.errors import BadInput, Failed, KbgymError
from kbgym.trace.backend import ConnectionLost, StoreBackend
from kbgym.trace.events import Committed, Event, Genesis
from kbgym.trace.log import chained, verified

if TYPE_CHECKING:
    from kbgym.backends.postgres.server import Connection

_TRIES = 4
# A row lock wakes all waiters at every commit; an advisory lock is a queue and wakes only the next one.
_LOCK = "SELECT pg_advisory_xact_lock(%s)"
_NEW_LINES = "SELECT line FROM trace WHERE seq >= %s ORDER BY seq"
# A separate commit with the durability of the connection; on return, all earlier commits are durable too.
_FLUSH = "SELECT pg_logical_emit_message(true, 'kbgym', '')"


class PostgresWriter:
    """An `EventWriter` that takes turns with every other client of the store.

    with writer.locked() as news:           # excludes other writers; yields their events since the last turn
        follow(news)
        ...                                 # act
        writer.commit(events)
    # durable here, or an error was raised
    """

    def __init__(self, server: Server, head: Head) -> None:
        """Continue after `head`."""
        self._server = server
        self._seq, self._chain = head.seq, head.chain
        self._held: Connection | None = None  # the connection that holds the lock
        self._wanted: list[Event] | None = None
        self._client = secrets.token_hex(8)
        name = hashlib.sha256(server.address.schema.encode()).digest()
        key = int.from_bytes(name[:8], "big", signed=True)
        self._locking: list[Statement] = [("BEGIN", ()), (_LOCK, [key])]  # they wait for the lock

    # -- events of others ---------------------------------------------------------------------------------------------

    def new_events(self) -> tuple[Event, ...]:
        """Return the events that others committed since the last call, without waiting for the lock."""
        return () if self._held is not None else self._retried(self._read)

    def _retried(self, work: Callable[[], tuple[Event, ...]]) -> tuple[Event, ...]:
        """Call `work`, which is read-only, and retry it if the connection is lost."""
        for _ in range(_TRIES):
            try:
                return work()
            except self._server.errors as error:
                if not self._server.lost:
                    self._undo()
                    raise self._server.failure(error) from None
        raise Failed(f"{self._server.address.shown} breaks every connection.")

    def _read(self) -> tuple[Event, ...]:
        (lines,) = send(self._server.reconnected(), [(_NEW_LINES, [self._seq])])
        return self._verified([line for (line,) in lines])

    def _verified(self, lines: Sequence[str]) -> tuple[Event, ...]:
        """Verify new lines, the first of which is the last one applied before."""
        events: list[Event] = []
        where, chain = self._server.address.shown, self._chain
        if self._seq and not (lines and lines[0].endswith(f'"{chain}"}}')):
            lost = "went down with transactions that were not kept yet; what was built on them is undone"
            raise ConnectionLost(f"{where} {lost}.")
        for number, line in enumerate(lines[1:] if self._seq else lines, self._seq + 1):
            event, chain = verified(where, number, line.encode(), chain)
            events.append(event)
        self._seq, self._chain = self._seq + len(events), chain
        return tuple(events)

    # -- writing ------------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[tuple[Event, ...]]:
        """Exclude other writers; the single commit made inside is written atomically at the end."""
        if self._held is not None:
            raise RuntimeError("a turn inside a turn")
        try:
            yield self._retried(self._take)
        except BaseException:
            self._undo()
            raise
        if self._wanted is None:
            self._undo()
        else:
            self._finish()

    def commit(self, events: Sequence[Event]) -> None:
        """Write a transaction at the end of the turn or, without a turn, now if no other client has committed."""
        if not events or not isinstance(events[-1], Committed | Genesis):
            raise ValueError("a transaction ends with its commit")
        if self._held is not None:
            if self._wanted is not None:
                raise RuntimeError("a turn has one commit")
            self._wanted = list(events)
            return
        with self.locked() as news:
            if news:
                where = self._server.address.shown
                raise BadInput(f"{where} was written by another process since it was read; run the command again.")
            self._wanted = list(events)

    def _take(self) -> tuple[Event, ...]:
        connection = self._server.reconnected()
        *_, lines = send(connection, [*self._locking, (_NEW_LINES, [self._seq])])
        news = self._verified([line for (line,) in lines])
        self._held = connection
        return news

    def _finish(self) -> None:
        events, chain = self._wanted or [], self._chain
        assert self._held is not None
        held, self._wanted = self._held, None
        lines = []
        for event in events:
            line, chain = chained(encode(event), chain)
            lines.append(line[:-1].decode())
        added = addition(self._seq, self._client, events, lines)
        try:
            send(held, [added, ("SET LOCAL synchronous_commit = off", ()), ("COMMIT", ()), (_FLUSH, ())])
        except self._server.errors as error:
            if not self._server.lost:
                self._undo()
                raise self._server.failure(error) from None
            self._held = None
            self._resolve(self._seq + len(events), error)
        except BaseException:
            self._undo()
            raise
        self._held = None
        self._seq, self._chain = self._seq + len(events), chain

    def _undo(self) -> None:
        """Discard the writes of this turn and release the lock."""
        self._held, self._wanted = None, None
        self._server.forget()

    def _resolve(self, seq: int, error: Exception) -> None:
        """Return if the transaction interrupted by a lost connection was committed, else raise."""
        try:
            with self._server.translated():
                connection = self._server.reconnected()
                look: Statement = ("SELECT client FROM trace WHERE seq = %s", [seq])
                found = send(connection, [*self._locking, look, ("ROLLBACK", ()), (_FLUSH, ())])[-3]
        except KbgymError as trouble:
            raise Failed(f"{trouble} Whether the last transaction (trace line {seq}) was kept is not known.") from None
        if found != [(self._client,)]:
            said = str(self._server.failure(error))
            raise ConnectionLost(f"{said} The transaction was not committed; it can be tried again.") from None

    def resync(self, place: StoreBackend) -> None:
        """Continue from the state of a newly read backend of this store."""
        head = getattr(place, "head", None)
        if not isinstance(head, Head):
            raise TypeError("a writer continues from a backend of the same store")
        self._seq, self._chain = head.seq, head.chain

    def close(self) -> None:
        self._server.close()

    def __enter__(self) -> PostgresWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
