"""What a store in PostgreSQL began with, read when asked for: a base for a store, and the texts of it for a search.

Nothing in it ever changes, so what was read once is kept, up to a number of documents, and a question that a broken
connection cut short is simply asked again. Connections come from a pool: threads may read at the same time.
"""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, LiteralString

from kbgym.backends.postgres import server as connecting
from kbgym.backends.postgres.server import Server
from kbgym.backends.postgres.tables import Meta, key_of, records_in
from kbgym.backends.postgres.url import DatabaseAddress
from kbgym.errors import Missing
from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind
from kbgym.search.cache import LRUCache
from kbgym.store import Record
from kbgym.store.base import Counts
from kbgym.store.store import normalised

if TYPE_CHECKING:
    from kbgym.backends.postgres.server import Connection
    from kbgym.search.embed import CachedEmbedder
    from kbgym.search.index import KeptIndex
    from kbgym.search.words import KeptWords

REMEMBERED = 20_000  # documents a process keeps of those it has read
_CONNECTIONS = 4
_IDLE = 1.0  # seconds
_WAIT = 2.0  # seconds for a connection, then another is tried: the pool would wait longer after every failure
_AT_ONCE = 2_000  # documents read at a time by whoever wants all

Found = tuple[tuple[int, Record], ...]  # a document and its number, or none
Saying = tuple[tuple[int, str], ...]  # numbers and ids


class DatabaseBase:
    """The initial documents of one store. It fits `store.base.Base` and `search.base.TextBase`."""

    def __init__(self, address: DatabaseAddress, meta: Meta) -> None:
        self.address, self.meta = address, meta
        self._server = Server(address)  # for its settings and its sentences
        self._read = records_in(meta.initial, address.shown)
        self._records: LRUCache[str, Found] = LRUCache(REMEMBERED)
        self._inbound: LRUCache[str, tuple[str, ...]] = LRUCache(REMEMBERED)
        self._said: LRUCache[str, Saying] = LRUCache(REMEMBERED)
        self._pool = _pool(self._server)
        weakref.finalize(self, self._pool.close)

    def __reduce__(self) -> tuple[Callable[..., DatabaseBase], tuple[DatabaseAddress, Meta]]:
        """In another process it is read there."""
        return base_at, (self.address, self.meta)

    def connect_anew(self) -> None:
        """Leave the connections there are to whoever has them, too."""
        self._pool = _pool(self._server)

    @property
    def counts(self) -> Counts:
        return self.meta.counts

    def __len__(self) -> int:
        return self.meta.counts.documents

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """One of the pool's connections, for as long as the block lasts; its errors are ours."""
        with self._server.said(), self._pool.connection() as connection:
            yield connection

    def ask(self, question: LiteralString, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a question; asked again where a connection breaks, for as long as a server may be away."""
        deadline = time.monotonic() + connecting.PATIENCE
        with self._server.said():
            while True:
                try:
                    with self._pool.connection(_WAIT) as connection:
                        found: list[tuple[Any, ...]] = connection.execute(question, values).fetchall()
                        return found
                except self._server.broken:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)

    # -- for a store --------------------------------------------------------------------------------------------------

    def _documents(self, ids: Sequence[str]) -> dict[str, Found]:
        found, missing = self._records.get_many(ids)
        if missing:
            found.update(dict.fromkeys(missing, ()))
            rows = self.ask("SELECT id, number, line FROM initial WHERE id = ANY(%s)", [[*filter(_storable, missing)]])
            found.update((id, ((number, self._read(line)),)) for id, number, line in rows)
            for id in missing:
                self._records.put(id, found[id])
        return found

    def _sayings(self, texts: Sequence[str]) -> dict[str, Saying]:
        found, missing = self._said.get_many(texts)
        if missing:
            found.update(dict.fromkeys(missing, ()))
            question: LiteralString = "SELECT number, id, line FROM initial WHERE same = ANY(%s) ORDER BY number"
            for number, id, line in self.ask(question, [[key_of(text) for text in missing]]):
                if (text := normalised(self._read(line).text)) in found:
                    found[text] = (*found[text], (number, id))
            for text in missing:
                self._said.put(text, found[text])
        return found

    def fetch(self, ids: Sequence[str], texts: Sequence[str] = ()) -> None:
        """Have these documents at hand, and who says these texts."""
        self._documents(ids)
        self._sayings(texts)

    def get(self, id: str) -> Record | None:
        return next((record for _, record in self._documents([id])[id]), None)

    def number(self, id: str) -> int:
        for number, _ in self._documents([id])[id]:
            return number
        raise KeyError(id)

    def inbound(self, id: str) -> tuple[str, ...]:
        if not self.counts.links or not _storable(id):
            return ()
        found = self._inbound.get(id)
        if found is None:
            question: LiteralString = (
                "SELECT id FROM links JOIN initial USING (number) WHERE target = %s ORDER BY number"
            )
            found = tuple(source for (source,) in self.ask(question, [id]))
            self._inbound.put(id, found)
        return found

    def saying(self, text: str) -> Saying:
        return self._sayings([text])[text]

    def carriers(self, origin: str) -> tuple[str, ...]:
        found = [number for number, record in self._documents([origin])[origin] if origin in record.origins]
        if self._elsewhere and _storable(origin):
            found += [number for (number,) in self.ask("SELECT number FROM carried WHERE origin = %s", [origin])]
        names = self.ids(found) if found else {}
        return tuple(names[number] for number in sorted(found))

    @cached_property
    def _elsewhere(self) -> bool:
        """Whether any document carries another original than its own."""
        return bool(self.ask("SELECT 1 FROM carried LIMIT 1"))

    def __iter__(self) -> Iterator[Record]:
        return map(self._read, self.lines())

    def lines(self, ids: Collection[str] | None = None) -> Iterator[str]:
        """Every initial line in order, or those of some documents."""
        if ids is not None:
            wanted = [*filter(_storable, ids)]
            yield from (line for (line,) in self.ask("SELECT line FROM initial WHERE id = ANY(%s)", [wanted]))
            return
        last = 0
        question: LiteralString = "SELECT line FROM initial WHERE number > %s ORDER BY number LIMIT %s"
        while rows := self.ask(question, [last, _AT_ONCE]):
            yield from (line for (line,) in rows)
            last += len(rows)

    # -- for a search -------------------------------------------------------------------------------------------------

    def indexes(
        self,
        gone: Sequence[str],
        changed: Sequence[tuple[str, str]],
        embedder: CachedEmbedder,
        search: SearchKind,
        tick: ProgressCallback | None = None,
    ) -> tuple[KeptIndex, KeptWords | None]:
        """Return the indexes of these texts with changes on top."""
        from kbgym.backends.postgres.layered import layered_indexes

        return layered_indexes(self, gone, changed, embedder, search, tick)

    def texts(self) -> Iterator[tuple[int, str, str]]:
        """The number, the id and the text of every document, in order."""
        for number, record in enumerate(self, 1):
            yield number, record.id, record.text

    def text(self, id: str) -> str | None:
        record = self.get(id)
        return None if record is None else record.text

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        return {id: number for id, found in self._documents(ids).items() for number, _ in found}

    def ids(self, numbers: Sequence[int]) -> dict[int, str]:
        rows = self.ask("SELECT number, id FROM initial WHERE number = ANY(%s)", [list(numbers)])
        return dict(rows)


def _storable(id: str) -> bool:
    """Whether PostgreSQL could hold it: agents ask for anything."""
    try:
        return b"\0" not in id.encode()
    except UnicodeEncodeError:
        return False


class _Checked:
    """Sees to it that a connection which was not used for a while is still there: a server may have been restarted."""

    def __init__(self) -> None:
        self._used: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()

    def __call__(self, connection: Connection) -> None:
        now = time.monotonic()
        if now - self._used.get(connection, now) > _IDLE:
            connection.execute("")
        self._used[connection] = now


def _pool(server: Server) -> Any:
    try:
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        raise Missing(
            f"a postgresql:// store needs psycopg_pool ({error}); run `pip install 'kbgym[postgres]'`."
        ) from None
    logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # what it prints is raised here as a sentence
    return ConnectionPool(
        server.address.server,
        kwargs=server.options,
        configure=server.settle,
        check=_Checked(),
        min_size=0,
        max_size=_CONNECTIONS,
        num_workers=1,
        timeout=30.0,
        reconnect_timeout=0.0,
        open=True,
    )


_open: weakref.WeakValueDictionary[tuple[str, str, str], DatabaseBase] = weakref.WeakValueDictionary()


def base_at(address: DatabaseAddress, meta: Meta) -> DatabaseBase:
    """The base of a store; whoever reads the same one in this process shares it."""
    name = (address.server, address.schema, meta.counts.fingerprint)
    found = _open.get(name)
    if found is None:
        found = _open[name] = DatabaseBase(address, meta)
    return found


def _in_a_fork() -> None:
    """A forked process has connections of its own: what two would ask on one, neither could understand."""
    for base in _open.values():
        base.connect_anew()


os.register_at_fork(after_in_child=_in_a_fork)
