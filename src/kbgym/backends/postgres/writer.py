"""The appender of a store in PostgreSQL: many processes, one order.

A turn is a lock, gives what others committed, and ends with one SQL transaction that adds events to the trace: all of
them or none.

The turn is over before the disk has what was written: the next one begins while this one waits for it, and many wait
for one flush. The log of the database has the order of the turns, so what is flushed has everything before it. Others
may thus see for a moment what a crash of the server would lose; they notice when they connect again, and read anew.

Before the turn comes the line: its first has what others committed followed while the one before it still acts.

Whatever is read begins with the last line followed so far: where a crash has taken that, nothing is added to it. Where
the connection breaks in the very moment of a commit, the appender connects again, waits for the turn (whatever the old
connection was doing is over then) and looks for its own mark in the trace: it never guesses.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kbgym.backends.postgres.server import Batch, Server
from kbgym.backends.postgres.tables import Head, add_to_trace
from kbgym.canonical import encode
from kbgym.errors import BadInput, Failed, KbgymError
from kbgym.trace.backend import ConnectionLost, StoreBackend
from kbgym.trace.events import Committed, Event, Genesis
from kbgym.trace.log import chained, verified

if TYPE_CHECKING:
    from kbgym.backends.postgres.server import Connection

_TRIES = 4
# Waiting for a row wakes everybody who waits at every commit; these locks are queues, and wake the next one.
_TURN = "SELECT pg_advisory_xact_lock(%s)"
_LINE = "SELECT pg_advisory_lock(%s)"
_UNLOCK = "SELECT pg_advisory_unlock(%s)"
_CLAIM = "SELECT pg_try_advisory_lock(%s)"
_NEWS = "SELECT line FROM trace WHERE seq >= %s ORDER BY seq"
# A commit of its own, as durable as the connection was told to be: on its return all commits before it are too.
_FLUSH = "SELECT pg_logical_emit_message(true, 'kbgym', '')"


class PostgresWriter:
    """Appends whole transactions, in turn with every other client of the store. A `place.EventWriter`."""

    shared = True

    def __init__(self, server: Server, head: Head) -> None:
        """Continue after `head`; what others committed since is given by `news`."""
        self._server = server
        self._seq, self._chain, self._iteration = head.seq, head.chain, head.iteration  # how far it has looked
        self._held: Connection | None = None  # where the turn is this process's, and only there it can be ended
        self._wanted: list[Event] | None = None
        self._in_line = False
        self._client = secrets.token_hex(8)
        self._claims: dict[str, None] = {}
        self._turn, self._line = self._key(""), self._key("\0line")

    # -- others -------------------------------------------------------------------------------------------------------

    def news(self) -> tuple[Event, ...]:
        """What others committed since the last news; does not wait for anybody's turn."""
        return () if self._held is not None else self._read()

    def enqueue(self) -> tuple[Event, ...]:
        """Wait until the next turn but one is this writer's; gives the news. A turn follows, or `dequeue`."""
        return self._read(in_line=True)

    def dequeue(self) -> None:
        """Give up the place in line, where there is one."""
        if self._in_line:
            self._in_line = False
            if not self._server.lost:
                with suppress(*self._server.errors):
                    self._server.connection.execute(_UNLOCK, [self._line])

    def _read(self, in_line: bool = False) -> tuple[Event, ...]:
        for _ in range(_TRIES):
            try:
                connection = self._connected()
                batch = Batch()
                if in_line:
                    self._in_line = True  # on this connection; with another one it is gone
                    batch.often(_LINE, [self._line])
                batch.often(_NEWS, [self._seq])
                *_, lines = batch.send(connection)
                return self._looked([line for (line,) in lines])
            except self._server.errors as error:
                self._again(error)
        raise Failed(f"{self._server.address.shown} breaks every connection.")

    def _looked(self, lines: Sequence[str]) -> tuple[Event, ...]:
        """Verify lines that were read; the first is the last one followed before."""
        events: list[Event] = []
        where, chain = self._server.address.shown, self._chain
        if self._seq and not (lines and lines[0].endswith(f'"{chain}"}}')):
            raise ConnectionLost(
                f"{where} went down with transactions that were not kept yet; what was built on them is undone."
            )
        for number, line in enumerate(lines[1:] if self._seq else lines, self._seq + 1):
            event, chain = verified(where, number, line.encode(), chain)
            events.append(event)
        if events:
            self._advance(events, chain)
        return tuple(events)

    def _advance(self, events: Sequence[Event], chain: str) -> None:
        last = events[-1]
        self._seq, self._chain = self._seq + len(events), chain
        self._iteration = last.iteration if isinstance(last, Committed) else 0

    # -- a turn -------------------------------------------------------------------------------------------------------

    @contextmanager
    def turn(self) -> Iterator[tuple[Event, ...]]:
        """Hold up the other writers; the one commit made inside is written at the end, or nothing is."""
        if self._held is not None:
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
        if self._held is not None:
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
        for _ in range(_TRIES):
            try:
                connection = self._connected()
                batch = self._taking()
                batch.often(_NEWS, [self._seq])
                *_, lines = batch.send(connection)
                self._in_line = False
                news = self._looked([line for (line,) in lines])
            except self._server.errors as error:
                self._again(error)
            except BaseException:
                self._undo()
                raise
            else:
                self._held = connection
                return news
        raise Failed(f"{self._server.address.shown} breaks every connection.")

    def _taking(self) -> Batch:
        """The statements that wait for the turn."""
        batch = Batch()
        batch.execute("BEGIN")
        batch.often(_TURN, [self._turn])
        if self._in_line:
            batch.often(_UNLOCK, [self._line])
        return batch

    def _finish(self) -> None:
        events, chain = self._wanted or [], self._chain
        assert self._held is not None
        held, self._wanted = self._held, None
        lines = []
        for event in events:
            line, chain = chained(encode(event), chain)
            lines.append(line[:-1].decode())
        batch = Batch()
        add_to_trace(batch, self._seq, self._client, events, lines)
        batch.execute("SET LOCAL synchronous_commit = off")
        batch.execute("COMMIT")
        batch.often(_FLUSH)
        try:
            batch.send(held)
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
        self._advance(events, chain)

    def _undo(self) -> None:
        """Nothing of this turn is kept, and the others may go on."""
        self._held, self._wanted = None, None
        self._server.forget()
        self.dequeue()

    # -- failures -----------------------------------------------------------------------------------------------------

    def _again(self, error: Exception) -> None:
        """Before anything was written: to be tried again if the connection was lost, else raise."""
        if not self._server.lost:
            self._undo()
            raise self._server.failure(error) from None

    def _connected(self) -> Connection:
        """The connection, made again where it was lost: with it went the place in line and the claims."""
        if self._server.lost:
            connection = self._server.reconnect()
            self._in_line = False
            for name in list(self._claims):
                row = connection.execute(_CLAIM, [self._key(name)]).fetchone()
                if row is None or not row[0]:
                    del self._claims[name]
        return self._server.connection

    def _resolve(self, seq: int, error: Exception) -> None:
        """The connection broke while a transaction was committed: return if it was, raise if it was not."""
        try:
            with self._server.said():
                connection = self._connected()
                batch = self._taking()
                batch.execute("SELECT client FROM trace WHERE seq = %s", [seq])
                batch.execute("ROLLBACK")
                batch.often(_FLUSH)
                found = batch.send(connection)[-3]
        except KbgymError as trouble:
            raise Failed(f"{trouble} Whether the last transaction (trace line {seq}) was kept is not known.") from None
        if found != [(self._client,)]:
            said = str(self._server.failure(error))
            raise ConnectionLost(f"{said} The transaction was not committed; it can be tried again.") from None

    def resync(self, place: StoreBackend) -> None:
        """Continue from what a place of this store has read."""
        head = getattr(place, "head", None)
        if not isinstance(head, Head):
            raise TypeError("only a place of the same store can be gone on from")
        self._seq, self._chain, self._iteration = head.seq, head.chain, head.iteration

    # -- claims -------------------------------------------------------------------------------------------------------

    def claim(self, name: str) -> bool:
        """Take a piece of work nobody else has; the server frees it when this process ends, however it ends."""
        if name in self._claims:
            return True
        for _ in range(_TRIES):
            try:
                row = self._connected().execute(_CLAIM, [self._key(name)]).fetchone()
            except self._server.errors as error:
                self._again(error)
            else:
                if row is not None and row[0]:
                    self._claims[name] = None
                return name in self._claims
        return False

    def holds(self, name: str) -> bool:
        return name in self._claims

    def release(self, name: str) -> None:
        if name in self._claims:
            del self._claims[name]
            with self._server.said():
                self._connected().execute(_UNLOCK, [self._key(name)])

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
