"""The live store, through which all processes act on a store, record events and commit them.

Training and serving use it. Changes are made in a turn, which excludes others in this process. Recorded events belong
to the open transaction. A commit ends it and queues it for the disk, where waiting transactions are flushed together.
If a write fails, the store returns to its last durable state, and all waiters get the error.

A backend whose stores have several writers supplies a subclass, in which a turn excludes them too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, Self

import msgspec
from cachetools import LRUCache

from kbgym.errors import BadInput, Failed, KbgymError
from kbgym.gym.actions import NOTHING, Action, Observation
from kbgym.gym.environment import Environment, Ranking, texts_in
from kbgym.gym.observations import Observations
from kbgym.index_keys import same_key
from kbgym.search.engine import Engine
from kbgym.store import Store
from kbgym.store.guard import Judge, SameIndex
from kbgym.trace import is_url, plugin_for, shown
from kbgym.trace.backend import ConnectionLost, EventWriter, StoreBackend, open_backend
from kbgym.trace.events import ANY, Committed, Event, RolledBack, committed, touched_by, tunable
from kbgym.trace.folder import TRACE, position_at
from kbgym.trace.replay import Listener, replay, replaying

_ROUNDS = 3
_MAX_VERDICTS = 1_000
Transaction = tuple[list[Event], "asyncio.Future[None]"]


class JudgeCache:
    """A caching judge in front of a slow one, so that no writer waits for a model.

    A verdict depends on two sentences only, so the judge is asked before a turn. Neighbours that appeared in between
    are judged in further rounds, and finally in the turn. The trace keeps the verdicts that were used.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge, self.name = judge, judge.name
        self._verdicts: LRUCache[tuple[str, str], bool] = LRUCache(_MAX_VERDICTS)
        self._asked = 0

    async def duplicate(self, candidate: str, existing: str) -> bool:
        pair = (candidate, existing)
        if (same := self._verdicts.get(pair)) is None:
            self._asked += 1
            same = self._verdicts[pair] = await self._judge.duplicate(candidate, existing)
        return same

    async def prepare(self, actions: Sequence[Action], environment: Environment) -> None:
        """Ask about the sentences of actions in an environment with this judge, until a round has no new pairs."""
        for _ in range(_ROUNDS):
            asked = self._asked
            for action in actions:
                await environment.judged(action)
            if self._asked == asked:
                return


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """A read-only store and its search after an iteration."""

    store: Store
    engine: Engine
    iteration: int
    ranking: Ranking = "paper"
    observations: Observations = "paper"

    def environment(self) -> Environment:
        return Environment(self.store, self.engine, ranking=self.ranking, observations=self.observations)


def snapshot_of(now: Environment, iteration: int) -> Snapshot:
    return Snapshot(now.store.copy().freeze(), now.engine.overlay(), iteration, now.ranking, now.observations)


class LiveStore:
    """The newest state of a store, with its search and its trace."""

    shared = False  # True if other processes may write concurrently

    def __new__(cls, where: str | Path, *_: Any, **__: Any) -> Self:
        """Create an instance of the backend's own class, if it has one."""
        kind: type[Any] = plugin_for(str(where)).live_store() if is_url(where) else cls
        made: Self = object.__new__(kind)
        return made

    def __init__(
        self,
        where: str | Path,
        engine: Callable[[Store], Engine],
        listeners: Sequence[Listener] = (),
        *,
        judge: Judge | None = None,
        same_index: SameIndex = same_key,
        ranking: Ranking = "paper",
        observations: Observations = "paper",
        embedder: str = "",
        settings: dict[str, Any] | None = None,
        position: Callable[[], int] | None = None,
        write: bool = True,
    ) -> None:
        """Open a store and replay its trace.

        Args:
            engine: creates a search engine over the newest state.
            same_index: tells whether two sentences are indexes of one key.
            embedder, settings: recorded in the first event of a new trace.
            position: returns the number of lessons taught; by default that of the last commit.
            write: if False, take no lock and follow the writes of others.
        """
        self.where, self.name = str(where), shown(where)
        self.folder = None if is_url(where) else Path(where)
        self.listeners = list(listeners)
        self._replayed = replaying(self.listeners, observations)
        self.writes = write
        self.commits = self.flushes = 0
        self._position_now = position
        self._open: list[Event] = []
        self._closed: list[Transaction] = []
        self._flushing: asyncio.Task[None] | None = None
        self.last: asyncio.Future[None] | None = None  # done when all commits are durable
        self._unwritten: dict[str, asyncio.Future[None]] = {}  # documents whose last change is not durable
        self._lost = False  # the durable state could not be reloaded yet
        self._snapshot: Snapshot | None = None
        self._lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "trace")
        self._writer: EventWriter | None = None
        place = self._open_writer(embedder, settings or {})
        self._judge_cache = None if judge is None else JudgeCache(judge)
        try:
            self._settle(place)
            store = place.store(watch=self._replayed)
            if not store.tuned:  # a new trace has not been replayed
                store.tune(tunable(settings or {}))
            self.environment = Environment(store, engine(store), self._judge_cache, ranking, observations, same_index)
        except BaseException:
            if self._writer is not None:
                self._writer.close()
            raise
        self.initial = place.initial
        place.close()

    def _open_writer(self, embedder: str, settings: dict[str, Any]) -> StoreBackend:
        """Open the store for writing or reading, taking the file's lock before the trace is replayed."""
        place = open_backend(self.where)
        if self.writes:
            self._writer = place.start(embedder, settings) if place.genesis is None else place.resume()
        return place

    @property
    def store(self) -> Store:
        return self.environment.store

    def _settle(self, place: StoreBackend) -> None:
        self.iteration, self._position = place.iteration, place.position
        self._size = place.reading.size if place.reading and self.folder else 0

    def _tell(self, event: Event, store: Store, observation: Observation) -> None:
        served = isinstance(event, Committed) or getattr(event, "phase", "") == "serve"
        for listener in self.listeners:
            if not (served and getattr(listener, "lessons_only", False)):
                listener(event, store, observation)

    # -- turns --------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        """Exclude other tasks of this process while reading, after applying the commits of others."""
        async with self._lock:
            await self._refresh()
            yield

    @asynccontextmanager
    async def write(self) -> AsyncIterator[None]:
        """Exclude all other writers."""
        self._check_writable()
        async with self._lock:
            await self._refresh()
            try:
                yield
            finally:
                self._recover()

    def _check_writable(self) -> None:
        if not self.writes:
            raise BadInput(f"{self.name} was opened for reading only.")

    async def _refresh(self) -> None:
        """Apply the commits of others."""
        self._check_state()
        if self._writer is None and self.folder is not None:
            trace = self.folder / TRACE
            if trace.exists() and trace.stat().st_size != self._size:
                self._return()

    def _check_state(self) -> None:
        """Reload the durable state if that is still due."""
        if self._lost:
            try:
                self._return()
            except BadInput as error:  # the store on disk has changed, so no request is at fault
                raise Failed(str(error)) from error

    # -- acting -------------------------------------------------------------------------------------------------------

    async def prepare(self, actions: Sequence[Action]) -> None:
        """Embed the texts and ask the judge before a turn, since both may be slow."""
        await self.environment.engine.prepare([text for action in actions for text in texts_in(action)])
        if self._judge_cache is not None:
            await self._judge_cache.prepare(actions, self.environment)

    def record(self, event: Event, observation: Observation = NOTHING) -> None:
        """Add an event to the open transaction; the caller holds the turn and has changed the store accordingly."""
        self._open.append(event)
        self._tell(event, self.store, observation)

    def commit(self) -> asyncio.Future[None]:
        """End the open transaction; the future is done when it is durable."""
        if self._lost:
            raise Failed(f"{self.name}: what this was built on could not be written.")
        self.iteration += 1
        self._position = self._position if self._position_now is None else self._position_now()
        store = self.store
        commit = committed(self.iteration, self._position, store)
        events, self._open = [*self._open, commit], []
        self._tell(commit, store, NOTHING)
        durable = asyncio.get_running_loop().create_future()
        durable.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may have no waiter
        self._closed.append((events, durable))
        self.last = durable
        self._unwritten.update(dict.fromkeys(touched_by(events), durable))
        self.commits += 1
        self._write_soon()
        return durable

    def _write_soon(self) -> None:
        """Write closed transactions in the background."""
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    def unwritten(self, ids: Iterable[str]) -> set[asyncio.Future[None]]:
        """Return futures that complete once these documents are durable in their current state."""
        return {self._unwritten[id] for id in (*ids, ANY) if id in self._unwritten}

    async def durable(self) -> None:
        """Wait until all commits so far are durable."""
        while self.last is not None and not self.last.cancelled():
            await asyncio.shield(self.last)

    async def _flush(self) -> None:
        try:
            while self._closed:
                done, self._closed = self._closed, []
                self.flushes += 1
                assert self._writer is not None
                try:
                    events = [event for events, _ in done for event in events]
                    await asyncio.get_running_loop().run_in_executor(self._thread, self._writer.commit, events)
                except (Failed, OSError) as error:
                    self._give_up([*done, *self._closed], error)
                    continue
                self._written(done)
        finally:
            self._flushing = None

    def _written(self, done: Sequence[Transaction]) -> None:
        for _, durable in done:
            if not durable.done():
                durable.set_result(None)
        self._unwritten = {id: durable for id, durable in self._unwritten.items() if not durable.done()}
        if not self._closed:
            self.last = None

    def _give_up(self, done: Sequence[Transaction], error: Exception) -> None:
        """Return to the durable state; these transactions failed, and so do those that depend on them."""
        self._open, self._closed, self.last, self._unwritten = [], [], None, {}
        self._lost = True
        if not self._lock.locked():  # else the current turn ends first; it cannot commit
            self._recover()
        for _, durable in done:
            if not durable.done():
                durable.set_exception((ConnectionLost if isinstance(error, ConnectionLost) else Failed)(str(error)))

    def _recover(self) -> None:
        if self._lost:
            with suppress(KbgymError, OSError):  # the next turn tries again
                self._return()

    # -- states -------------------------------------------------------------------------------------------------------

    def _return(self) -> None:
        """Reload the durable state of the store."""
        place = open_backend(self.where)
        self._settle(place)
        self._open = []
        for listener in self.listeners:
            listener.clear()
        self.sync_to(place.store(watch=self._replayed))
        place.close()
        self._lost = False

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the store; callers at the same iteration share one."""
        if self._snapshot is None or self._snapshot.iteration != self.iteration:
            self._snapshot = snapshot_of(self.environment, self.iteration)
        return self._snapshot

    async def roll_back(self, to: int, reason: str = "") -> int:
        """Return to an earlier iteration by adding to the history, and return the new iteration."""
        async with self.write():
            if not self.shared:
                await self.durable()  # the earlier state is read from the disk
            with closing(open_backend(self.where)) as place:
                # In a turn of a database, other tasks may have commits that are not written yet.
                events = (*place.events, *(event for events, _ in self._closed for event in events))
                then = replay(place.initial.copy, events, to)
            self.sync_to(then.copy().never_reissue(self.store))
            self.record(RolledBack(self.iteration + 1, to, reason))
            self._position = position_at(events, to)
            durable = self.commit()
            number = self.iteration
        await asyncio.shield(durable)
        return number

    def sync_to(self, store: Store) -> None:
        """Replace the store and update the search."""
        self.environment.sync_to(store)
        self._snapshot = None

    async def close(self) -> None:
        try:
            await self.durable()
        finally:
            self._thread.shutdown(wait=True)
            self.environment.engine.close()
            if self._writer is not None:
                self._writer.close()
