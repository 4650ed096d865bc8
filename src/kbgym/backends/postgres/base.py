"""The initial documents of a store in PostgreSQL, read on demand, for a store and for a search.

They never change, so rows are cached, and a query interrupted by a lost connection is repeated. Connections come from a
pool, so several threads may read concurrently.
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

from kbgym.backends.postgres import server as server_module
from kbgym.backends.postgres.cache import LRUCache
from kbgym.backends.postgres.server import OPTIONS, DatabaseAddress, Server
from kbgym.backends.postgres.store_layer import StoreLayer
from kbgym.backends.postgres.tables import Meta, record_reader, text_hash
from kbgym.errors import Missing
from kbgym.progress import ProgressCallback
from kbgym.search.base import SearchKind
from kbgym.store import Record
from kbgym.store.record import normalised

if TYPE_CHECKING:
    from kbgym.backends.postgres.server import Connection
    from kbgym.search.bm25 import WordIndex
    from kbgym.search.embed import CachedEmbedder
    from kbgym.search.index import VectorIndex

CACHED = 20_000  # documents kept in memory
_CONNECTIONS = 4
_WAIT = 2.0  # seconds to wait for a connection before another attempt; the pool backs off after every failure
_BATCH = 2_000  # documents read at a time while iterating over all

Numbered = tuple[tuple[int, Record], ...]  # a document with its number, or empty
NumberedIds = tuple[tuple[int, str], ...]


class DatabaseBase:
    """The initial documents of one store. It implements `store.record.Base`."""

    def __init__(self, address: DatabaseAddress, meta: Meta) -> None:
        self.address, self.meta, self.counts = address, meta, meta.counts
        self._server = Server(address)  # for its settings and messages
        self._decode = record_reader(meta.initial, address.shown)
        self._records: LRUCache[str, Numbered] = LRUCache(CACHED)
        self._inbound: LRUCache[str, tuple[str, ...]] = LRUCache(CACHED)
        self._by_text: LRUCache[str, NumberedIds] = LRUCache(CACHED)
        self._pool = _pool(self._server)
        weakref.finalize(self, self._pool.close)

    def __reduce__(self) -> tuple[Callable[..., DatabaseBase], tuple[DatabaseAddress, Meta]]:
        """Support pickling by reconnecting in another process."""
        return base_at, (self.address, self.meta)

    def __len__(self) -> int:
        return self.counts.documents

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Borrow a connection from the pool and translate errors of the driver."""
        with self._server.translated(), self._pool.connection() as connection:
            yield connection

    def ask(self, query: LiteralString, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, repeating it while the server is unavailable."""
        deadline = time.monotonic() + server_module.PATIENCE
        with self._server.translated():
            while True:
                try:
                    with self._pool.connection(_WAIT) as connection:
                        found: list[tuple[Any, ...]] = connection.execute(query, values).fetchall()
                        return found
                except self._server.broken:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)

    # -- for a store --------------------------------------------------------------------------------------------------

    def _documents(self, ids: Sequence[str]) -> dict[str, Numbered]:
        found, missing = self._records.get_many(ids)
        if missing:
            found.update(dict.fromkeys(missing, ()))
            rows = self.ask("SELECT id, number, line FROM initial WHERE id = ANY(%s)", [[*filter(_storable, missing)]])
            found.update((id, ((number, self._decode(line)),)) for id, number, line in rows)
            for id in missing:
                self._records.put(id, found[id])
        return found

    def _with_texts(self, texts: Sequence[str]) -> dict[str, NumberedIds]:
        found, missing = self._by_text.get_many(texts)
        if missing:
            found.update(dict.fromkeys(missing, ()))
            query: LiteralString = "SELECT number, id, line FROM initial WHERE same = ANY(%s) ORDER BY number"
            for number, id, line in self.ask(query, [[text_hash(text) for text in missing]]):
                if (text := normalised(self._decode(line).text)) in found:
                    found[text] = (*found[text], (number, id))
            for text in missing:
                self._by_text.put(text, found[text])
        return found

    def fetch(self, ids: Sequence[str], texts: Sequence[str] = ()) -> None:
        """Read documents by id and by text into the cache."""
        self._documents(ids)
        self._with_texts(texts)

    def layer(self) -> StoreLayer:
        return StoreLayer(self)

    def get(self, id: str) -> Record | None:
        return next((record for _, record in self._documents([id])[id]), None)

    def number(self, id: str) -> int:
        return next(number for number, _ in self._documents([id])[id])

    def inbound(self, id: str) -> tuple[str, ...]:
        if not self.counts.links or not _storable(id):
            return ()
        found = self._inbound.get(id)
        if found is None:
            query: LiteralString = "SELECT id FROM links JOIN initial USING (number) WHERE target = %s ORDER BY number"
            found = tuple(source for (source,) in self.ask(query, [id]))
            self._inbound.put(id, found)
        return found

    def saying(self, text: str) -> NumberedIds:
        return self._with_texts([text])[text]

    def carriers(self, origin: str) -> tuple[str, ...]:
        found = [number for number, record in self._documents([origin])[origin] if origin in record.origins]
        if self._any_carried and _storable(origin):
            found += [number for (number,) in self.ask("SELECT number FROM carried WHERE origin = %s", [origin])]
        names = self.ids(found) if found else {}
        return tuple(names[number] for number in sorted(found))

    @cached_property
    def _any_carried(self) -> bool:
        """Return True if any document carries an original other than its own."""
        return bool(self.ask("SELECT 1 FROM carried LIMIT 1"))

    def __iter__(self) -> Iterator[Record]:
        return map(self._decode, self.lines())

    def lines(self, ids: Collection[str] | None = None) -> Iterator[str]:
        """Yield every initial line in order, or those of some documents."""
        if ids is not None:
            wanted = [*filter(_storable, ids)]
            yield from (line for (line,) in self.ask("SELECT line FROM initial WHERE id = ANY(%s)", [wanted]))
            return
        last = 0
        query: LiteralString = "SELECT line FROM initial WHERE number > %s ORDER BY number LIMIT %s"
        while rows := self.ask(query, [last, _BATCH]):
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
    ) -> tuple[VectorIndex, WordIndex | None]:
        """Return the indexes of these texts with changes on top. Rankings equal those of all visible texts in memory,
        except for hits that an HNSW graph or the full-text index misses."""
        from kbgym.backends.postgres import vectors
        from kbgym.backends.postgres.prefetch import Prefetch
        from kbgym.backends.postgres.words import DatabaseWords
        from kbgym.search.factory import is_approximate
        from kbgym.search.index import ExactIndex

        own = ExactIndex(embedder.dimensions)
        index = words = None
        if search != "words":
            graph = is_approximate(len(self), vectors.EXACT_UP_TO)
            index = vectors.DatabaseIndex(vectors.PgVectorIndex(self, embedder, graph, tick), own)
            index.hidden.update(gone)
            texts = [text for _, text in changed]
            own.put_many([id for id, _ in changed], embedder.embed(texts, tick if texts else None), own=True)
        if search != "vectors":
            words = DatabaseWords(self, tick)
            words.begin(gone, changed)
        prefetch = Prefetch(index, words)
        for one in (index, words):
            if one is not None:
                one.prefetch = prefetch
        return own if index is None else index, words

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def texts(self) -> Iterator[tuple[int, str, str]]:
        """Yield the number, the id and the text of every document, in order."""
        for number, record in enumerate(self, 1):
            yield number, record.id, record.text

    def text(self, id: str) -> str | None:
        record = self.get(id)
        return None if record is None else record.text

    def ids(self, numbers: Sequence[int]) -> dict[int, str]:
        return dict(self.ask("SELECT number, id FROM initial WHERE number = ANY(%s)", [list(numbers)]))


def _storable(id: str) -> bool:
    """Return True if PostgreSQL can store the id; agents may ask for any string."""
    try:
        return b"\0" not in id.encode()
    except UnicodeEncodeError:
        return False


def _pool(server: Server) -> Any:
    try:
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        needed = f"a postgresql:// store needs psycopg_pool ({error})"
        raise Missing(f"{needed}; run `pip install 'kbgym[postgres]'`.") from None
    logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # its log messages are raised as errors here
    return ConnectionPool(
        server.address.server,
        kwargs=OPTIONS,
        configure=server.configure,
        check=ConnectionPool.check_connection,
        min_size=0,
        max_size=_CONNECTIONS,
        num_workers=1,
        timeout=30.0,
        reconnect_timeout=0.0,
        open=True,
    )


_open: weakref.WeakValueDictionary[tuple[str, str, str], DatabaseBase] = weakref.WeakValueDictionary()


def base_at(address: DatabaseAddress, meta: Meta) -> DatabaseBase:
    """Return the base of a store, shared by its readers in this process."""
    name = (address.server, address.schema, meta.counts.fingerprint)
    found = _open.get(name)
    if found is None:
        found = _open[name] = DatabaseBase(address, meta)
    return found


def _in_a_fork() -> None:
    """Use new connections; the old ones belong to the parent process."""
    for base in _open.values():
        base._pool = _pool(base._server)


os.register_at_fork(after_in_child=_in_a_fork)
