"""A connection to a PostgreSQL server, and its errors as sentences. It knows no tables.

Opening fails at once where nobody answers; a connection that breaks later is made again within `PATIENCE` seconds,
because a server that is restarted comes back. Passwords are never shown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString
from weakref import WeakKeyDictionary

from kbgym.backends.postgres.url import DatabaseAddress
from kbgym.canonical import encode
from kbgym.errors import BadInput, Failed, KbgymError, Missing

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

PATIENCE = 30.0
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
# A client that holds the turn and sends nothing for so long loses it; one that waits longer gets an error.
_SETTINGS = {
    "idle_in_transaction_session_timeout": "60s",
    "lock_timeout": "90s",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


def driver() -> Any:
    """psycopg, or the sentence that says how to get it."""
    try:
        import psycopg
    except ImportError as error:
        raise Missing(f"a postgresql:// store needs psycopg ({error}); run `pip install 'kbgym[postgres]'`.") from None
    return psycopg


# The statements a connection has been told of, each with the name it is called by there.
_told: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


class Batch:
    """Statements sent as one message: on a busy machine every message costs two context switches."""

    def __init__(self) -> None:
        self._statements: list[str] = []
        self._values: list[Any] = []
        self._often: dict[int, str] = {}

    def execute(self, statement: LiteralString, values: Sequence[Any] = ()) -> None:
        self._statements.append(statement)
        self._values += values

    def often(self, statement: LiteralString, values: Sequence[Any] = ()) -> None:
        """A statement that will come again: a connection reads and plans it once."""
        self._often[len(self._statements)] = statement
        self.execute(f"({', '.join(['%s'] * len(values))})" if values else "", values)

    def execute_with(self, statement: LiteralString, rows: Sequence[dict[str, Any]]) -> None:
        """A statement that takes rows as one JSON value; nothing where there are none."""
        if rows:
            self.often(statement, [encode(rows).decode()])

    def _named(self, connection: Connection) -> list[str]:
        """The statements with those that come often by their name on this connection."""
        told, statements = _told.setdefault(connection, {}), list(self._statements)
        for place, statement in self._often.items():
            if statement not in told:
                first, *rest = statement.split("%s")
                body = first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))
                connection.execute(f"PREPARE kbgym_{len(told)} AS {body}")
                told[statement] = f"kbgym_{len(told)}"
            statements[place] = f"EXECUTE {told[statement]}{statements[place]}"
        return statements

    def send(self, connection: Connection) -> list[list[tuple[Any, ...]]]:
        """Have all of them carried out, in order; gives the rows of each."""
        cursor = driver().ClientCursor(connection)
        cursor.execute("; ".join(self._named(connection)), self._values)
        rows, more = [], True
        while more:  # `description` says the same as `nfields`, and takes as long as all the rest
            rows.append(cursor.fetchall() if cursor.pgresult.nfields else [])
            more = cursor.nextset()
        return rows


class Server:
    """One connection, made when it is first needed."""

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        self._psycopg = driver()
        self.errors: tuple[type[Exception], ...] = (self._psycopg.Error,)
        self.broken: type[Exception] = self._psycopg.OperationalError
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    @property
    def lost(self) -> bool:
        return self._connection is None or bool(self._connection.closed or self._connection.broken)

    def reconnect(self) -> Connection:
        """The connection broke: make another, waiting for a server that is coming back."""
        self.close()
        deadline, pause = time.monotonic() + PATIENCE, 0.05
        while True:
            try:
                return self.connection
            except KbgymError:
                if time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    def forget(self) -> None:
        """End whatever transaction is open, undone."""
        connection = self._connection
        if connection is None or self.lost:
            return
        try:
            # A connection that was interrupted in the middle of a statement is closed.
            if connection.pgconn.transaction_status != self._psycopg.pq.TransactionStatus.ACTIVE:
                connection.execute("ROLLBACK")
                return
        except self._psycopg.Error:
            pass
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> Connection:
        psycopg = self._psycopg
        try:
            made: Connection = psycopg.connect(self.address.server, **self.options)
        except psycopg.ProgrammingError as error:
            raise BadInput(f"{self.address.shown} is no PostgreSQL URL: {self._said(error)}.") from None
        except psycopg.Error as error:
            said = self._said(error)
            kind = BadInput if "authentication" in said or "does not exist" in said else Failed
            raise kind(f"cannot connect to {self.address.shown}: {said}.") from None
        with self.said():
            self.settle(made)
        return made

    @property
    def options(self) -> dict[str, Any]:
        """How every connection is made, a pool's too."""
        return {"autocommit": True, "connect_timeout": 10, "application_name": "kbgym"}

    def settle(self, connection: Connection) -> None:
        """What every connection is told first."""
        path = f'"{self.address.schema}", public'
        batch = Batch()
        batch.execute(_DURABLE)
        for name, value in {"search_path": path, **_SETTINGS}.items():
            batch.execute("SELECT set_config(%s, %s, false)", [name, value])
        batch.send(connection)

    @contextmanager
    def said(self) -> Iterator[None]:
        """The driver's errors as ours."""
        try:
            yield
        except self._psycopg.Error as error:
            raise self.failure(error) from None

    def failure(self, error: Exception) -> KbgymError:
        """An error of the driver as a sentence."""
        state = getattr(error, "sqlstate", None)
        if state == "55P03":
            return Failed(f"{self.address.shown} is held up: another client has kept its turn for too long.")
        if state in ("42501", "25006"):
            return BadInput(f"{self.address.shown} may not be changed so: {self._said(error)}.")
        return Failed(f"{self.address.shown}: {self._said(error)}.")

    def _said(self, error: Exception) -> str:
        """The first line of the driver's message that holds a reason."""
        text = self.address.redact(str(error))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if "FATAL" in line or "ERROR" in line]
        line = (telling or lines or ["no reason given"])[0]
        return line.rpartition("FATAL:")[2].strip().rstrip(".")
