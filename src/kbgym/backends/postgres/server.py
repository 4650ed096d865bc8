"""URLs of stores in PostgreSQL, and a connection to a server that translates errors of the driver.

    postgresql://ada:secret@db.example.org:5432/knowledge?store=cities&sslmode=require#57

`store` names one of several stores of a database: the PostgreSQL schema `kbgym_cities`, or `kbgym` without it. The
iteration is `#57`, or `@57` at the very end. With `documents=held` a process holds all documents in memory, with
`documents=read` it reads them on demand. All other parameters are passed to libpq.

Opening fails at once if the server does not respond; a connection lost later is re-established within `PATIENCE`
seconds, the time a server may need to restart. Passwords are never shown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from kbgym.errors import BadInput, Failed, KbgymError, Missing
from kbgym.sanitize import number_in

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_UNREADABLE = "the store's URL cannot be read; special characters in a user's name or password are written as %2F."
HIDDEN = "[password]"
_OWN = ("store", "documents")
_HELD = {"": None, "held": True, "read": False}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_SECRETS = ("password", "sslpassword")


class DatabaseAddress(msgspec.Struct, frozen=True):
    """The parts of a URL. `server` is for libpq and must never be shown; `shown` has no password."""

    server: str
    schema: str
    shown: str
    at: int | None = None
    held: bool | None = None
    secrets: tuple[str, ...] = ()

    def redact(self, text: str) -> str:
        """Return a message without passwords."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def parse(url: str) -> DatabaseAddress:
    """Return the parts of a URL. Raise BadInput if it cannot be parsed."""
    body, _, at = url.partition("#")
    if not at and (match := re.fullmatch(r"(\w+://[^/]*/.*)@(\d+)", body)):
        body, at = match[1], match[2]
    try:
        parts = urlsplit(body)
        secret = parts.password
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        where = f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or query.get("host", "")
    except ValueError:  # its message may contain part of a password
        raise BadInput(_UNREADABLE) from None
    path, store = parts.path, query.get("store", "")
    if "@" in path:
        raise BadInput(_UNREADABLE)
    number = number_in(at)
    if at and number is None:
        raise BadInput(f"{at[:40]!r} is not an iteration; a store's URL ends in a number such as #57.")
    if store and not _NAME.fullmatch(store):
        raise BadInput(f"{store!r} is not a valid store name; use a letter, then lower-case letters, digits and _.")
    documents = query.get("documents", "")
    if documents not in _HELD:
        raise BadInput(f"documents={documents[:40]} in a store's URL is not known; use held or read.")
    kept = [pair for pair in parts.query.split("&") if pair and pair.partition("=")[0] not in _OWN]
    user = f"{parts.username}@" if parts.username else ""
    shown = f"postgresql://{user}{where}{path}" + (f"?store={store}" if store else "")
    found = [secret, *(query.get(name) for name in _SECRETS)]
    secrets = {form for one in found if one for form in (one, unquote(one), quote(unquote(one), safe=""))}
    server = f"postgresql://{parts.netloc}{path}" + (f"?{'&'.join(kept)}" if kept else "")
    schema = f"kbgym_{store}" if store else "kbgym"
    longest_first = tuple(sorted(secrets, key=lambda one: (-len(one), one)))
    return DatabaseAddress(server, schema, shown, int(at) if at else None, _HELD[documents], longest_first)


# -- connections ------------------------------------------------------------------------------------------------------

PATIENCE = 30.0
OPTIONS: dict[str, Any] = {"autocommit": True, "connect_timeout": 10, "application_name": "kbgym"}
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
# A client that is idle this long while holding the write lock loses it; one that waits longer gets an error.
_SETTINGS = {
    "idle_in_transaction_session_timeout": "60s",
    "lock_timeout": "90s",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


Statement = tuple[LiteralString, Sequence[Any]]


def send(connection: Connection, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
    """Execute statements in order in one round trip and return the rows of each."""
    with connection.pipeline():
        cursors = [connection.execute(statement, values) for statement, values in statements]
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def value_of(connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
    """Return the first value that a statement finds, or None."""
    row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]


class Server:
    """A connection, opened on first use. Raise Missing if psycopg is not installed."""

    def __init__(self, address: DatabaseAddress) -> None:
        try:
            import psycopg
        except ImportError as error:
            needed = f"a postgresql:// store needs psycopg ({error})"
            raise Missing(f"{needed}; run `pip install 'kbgym[postgres]'`.") from None
        self.address = address
        self._psycopg: Any = psycopg
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

    def reconnected(self) -> Connection:
        """Return the connection; replace it if it was lost, waiting for a server that restarts."""
        if self.lost:
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
        """Roll back the open transaction, if any."""
        connection = self._connection
        if connection is None or self.lost:
            return
        try:
            # A connection interrupted during a statement is closed.
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
            made: Connection = psycopg.connect(self.address.server, **OPTIONS)
        except psycopg.ProgrammingError as error:
            raise BadInput(f"{self.address.shown} is not a PostgreSQL URL: {self._reason(error)}.") from None
        except psycopg.Error as error:
            reason = self._reason(error)
            kind = BadInput if "authentication" in reason or "does not exist" in reason else Failed
            raise kind(f"cannot connect to {self.address.shown}: {reason}.") from None
        with self.translated():
            self.configure(made)
        return made

    def configure(self, connection: Connection) -> None:
        """Set up a new connection."""
        path = f'"{self.address.schema}", public'
        settings = {"search_path": path, **_SETTINGS}.items()
        send(connection, [(_DURABLE, ()), *(("SELECT set_config(%s, %s, false)", pair) for pair in settings)])

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate errors of the driver to errors of kbgym."""
        try:
            yield
        except self._psycopg.Error as error:
            raise self.failure(error) from None

    def failure(self, error: Exception) -> KbgymError:
        """Return the error of kbgym for an error of the driver."""
        state = getattr(error, "sqlstate", None)
        if state == "55P03":
            return Failed(f"{self.address.shown} timed out: another client holds the write lock.")
        if state in ("42501", "25006"):
            return BadInput(f"{self.address.shown} may not be changed so: {self._reason(error)}.")
        return Failed(f"{self.address.shown}: {self._reason(error)}.")

    def _reason(self, error: Exception) -> str:
        """Return the first line of the driver's message that gives a reason."""
        text = self.address.redact(str(error))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        line = next((line for line in lines if "FATAL" in line or "ERROR" in line), (lines or ["no reason given"])[0])
        return line.rpartition("FATAL:")[2].strip().rstrip(".")
