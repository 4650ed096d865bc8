"""The process that owns a store: every action of every client passes here, one at a time, durable before its answer.

An edit is one transaction of the trace. Edits that come in while the disk is busy are written and flushed together
(group commit), each still a transaction of its own. An answer, also a reader's, waits until everything it was made from
is on the disk. Searching for what an action needs (embedding) happens before its turn, beside the loop.
A store in a database has several owners: each follows what the others commit, and takes turns with them (`turns.py`).
It knows nothing of HTTP, MCP, questions or golds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import msgspec

from kbgym.actions import Action, Add, Edit, Error, Result, Search
from kbgym.environment import Environment, Ranking, Step
from kbgym.errors import BadInput, Failed
from kbgym.protocol.session import embedder_named, search_of, spread_over
from kbgym.search.choice import live_engine
from kbgym.search.embed import CachedEmbedder, Tick
from kbgym.search.hybrid import SearchKind
from kbgym.search.live import Embedding, LiveEngine, Overlay
from kbgym.serve.sessions import Session
from kbgym.serve.turns import Turn
from kbgym.store import Store
from kbgym.store.guard import Judge
from kbgym.tools import ROLES, Role, check
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Imported, RolledBack
from kbgym.trace.folder import TRACE
from kbgym.trace.judge_cache import TRIES, Considered
from kbgym.trace.place import Appender, is_url, open_place, shown, store_at
from kbgym.trace.replay import catch_up

EDITING = frozenset(ROLES["curator"]) - set(ROLES["reader"]) - {"done"}


class Follower(Protocol):
    """Something worked out from the trace alone: told of every event, and able to begin again."""

    def __call__(self, event: Event, store: Store) -> None: ...

    def clear(self) -> None: ...


class Reply(msgspec.Struct, frozen=True):
    """What became of an action, and the iteration of the store it is true of."""

    step: Step
    version: int
    conflict: bool = False


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """The store and its index as they were after an iteration."""

    store: Store
    engine: Overlay
    iteration: int
    ranking: Ranking = "paper"

    def environment(self) -> ServedEnvironment:
        """For readers: nothing can be changed in it."""
        return ServedEnvironment(self.store, self.engine, ranking=self.ranking)


class ServedEnvironment(Environment):
    """An environment whose embedding does not hold up the loop."""

    def __init__(
        self, store: Store, engine: LiveEngine | Overlay, judge: Judge | None = None, ranking: Ranking = "paper"
    ) -> None:
        super().__init__(store, engine, judge, ranking)
        self.served = engine
        self.embedding = engine.embedding

    async def step(self, action: Action, role: Role) -> Step:
        action = check(action, role)
        await self.embedding.prepare(texts_in(action))
        return await super().step(action, role)


def texts_in(action: Action) -> tuple[str, ...]:
    match action:
        case Search(text) | Add(text) | Edit(_, text):
            return (text,)
    return ()


def is_editing(action: Action) -> bool:
    return action.__struct_config__.tag in EDITING


class Owner:
    """A store that is open for work: its state, its search, its trace."""

    def __init__(
        self,
        place: Path | str,
        followers: Sequence[Follower] = (),
        embedder: CachedEmbedder | None = None,
        settings: dict[str, Any] | None = None,
        judge: Judge | None = None,
        tick: Tick | None = None,
        write: bool = True,
        ranking: Ranking = "paper",
        search: SearchKind | None = None,
        per_source: int = 0,
    ) -> None:
        """Without `write` it only looks: it keeps nobody from writing, and follows what they write."""
        self.where = str(place)
        self.name = shown(place)
        self.place = Path(self.name)  # of a database, no folder
        self.followers = list(followers)
        folder = open_place(place)
        if embedder is None:
            embedder = embedder_named(folder.genesis.embedder if folder.genesis else "")
        # The lock comes first: what is replayed below is what will be gone on with.
        name = "hash" if embedder.name.startswith("hash-") else embedder.name
        self._writer: Appender | None = None
        if write and folder.genesis is None:
            self._writer = folder.start(name, settings or {})
            if self._writer.shared:
                self._writer.close()
                folder = open_place(place)
        if (write and folder.genesis is not None) or is_url(place):
            self._writer = folder.resume()
        self.writes = write
        self._size = folder.reading.size if folder.reading else 0
        try:
            store = folder.store(watch=self.tell)
            self.iteration, self.position = folder.iteration, folder.position
            texts = ((record.id, record.text) for record in store)
            spread = spread_over(folder.originals().values(), per_source) if per_source else None
            self.embedding = Embedding(embedder)
            self.engine = live_engine(texts, self.embedding, tick, search or search_of(folder), spread)
        except BaseException:
            if self._writer is not None:
                self._writer.close()
            raise
        self.initial = folder.initial
        self._considered = None if judge is None else Considered(judge)
        self.environment = Environment(store, self.engine, self._considered, ranking)
        folder.close()
        self._lock = asyncio.Lock()
        self._disk = ThreadPoolExecutor(1, "trace")
        shared = self._writer if self._writer is not None and self._writer.shared else None
        self.turns = Turn(self._lock, shared, self._disk, self.follow, self._written, self._give_up)
        self._pending: list[tuple[list[Event], asyncio.Future[None]]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._last: asyncio.Future[None] | None = None
        self._snapshot: Snapshot | None = None
        self.commits = self.flushes = 0

    @property
    def store(self) -> Store:
        return self.environment.store

    @property
    def turn(self) -> Turn:
        """Held by whoever changes the store; for passes that land as a whole."""
        return self.turns

    def tell(self, event: Event, store: Store) -> None:
        """Let the followers hear of an event, live as in a replay."""
        for follower in self.followers:
            follower(event, store)

    # -- one action ---------------------------------------------------------------------------------------------------

    async def act(self, session: Session, action: Action, role: Role) -> Reply:
        """Carry out one action of one client; returns once it is durable."""
        action = check(action, role)
        await self.prepare([action])
        if not self.writes:
            self._catch_up(role)
        async with self.turns if is_editing(action) else self.turns.looking:
            stale = session.stale(action, self.store)
            if stale is not None:
                reply = self._conflict(session, action, stale)
                durable = self._last
            else:
                step = await self.environment.step(action, role)
                session.saw(step.result, self.store)
                if is_editing(step.action) and not isinstance(step.result, Error):
                    durable = self._record(session.client, step)
                else:
                    durable = self._last
                reply = Reply(step, self.iteration)
        if durable is not None:
            await asyncio.shield(durable)
        return reply

    async def prepare(self, actions: Sequence[Action]) -> None:
        """Before the turn: have the vectors at hand, and the judge's mind made up, which may take a model's time.

        Others may add a neighbour meanwhile, so the judge is asked again, but not for ever: the rest is asked in turn.
        """
        await self.embedding.prepare([text for action in actions for text in texts_in(action)])
        if self._considered is None:
            return
        for _ in range(TRIES):
            open_ones = [action for action in actions if not self._considered.is_decided(action, self.environment)]
            if not open_ones:
                return
            for action in open_ones:
                await self._considered.consider(action, self.environment)

    def _catch_up(self, role: Role) -> None:
        """Without a trace of its own to write, take on what others have committed since."""
        if role != "reader":
            raise BadInput("this store was opened for looking only.")
        trace = self.place / TRACE
        if self._writer is None and trace.exists() and trace.stat().st_size != self._size:
            folder = open_place(self.where)
            self._size = folder.reading.size if folder.reading else 0
            self.iteration = folder.iteration
            self.become(folder.store())

    async def follow(self, events: Sequence[Event]) -> None:
        """Take on what other owners of the store committed: the store, its search, and whoever listens."""
        made = [event for event in events if isinstance(event, Acted)]
        await self.embedding.prepare([text for event in made for text in texts_in(event.action)])
        if any(isinstance(event, Imported | RolledBack) for event in events):
            self.become(catch_up(self.store.copy(), events, self.iteration, self._earlier, self.tell))
        else:
            catch_up(self.store, events, self.iteration, self._earlier, self._heard)
        if events and isinstance(last := events[-1], Committed):
            self.iteration, self.position = last.iteration, last.position

    def _heard(self, event: Event, store: Store) -> None:
        if isinstance(event, Acted):
            self.environment.follow(event.result)
        self.tell(event, store)

    def _earlier(self, to: int) -> Store:
        return store_at(self.where, to)

    def _conflict(self, session: Session, action: Action, id: str) -> Reply:
        """The document changed since the client saw it: show what it is now, and change nothing."""
        record = self.store[id]
        session.show(id, self.store)
        links = f"It links to {', '.join(record.links)}." if record.links else "It links to nothing."
        message = f"[{id}] was changed by somebody else since you saw it; nothing was done. It now reads:"
        result: Result = Error(message)
        return Reply(Step(action, result, f"Conflict: {message}\n[{id}] {record.text}\n{links}"), self.iteration, True)

    def _record(self, client: str, step: Step) -> asyncio.Future[None]:
        number = self.iteration + 1
        return self.commit(
            [
                Began(number, "serve", client),
                Acted(number, "serve", 1, step.action, step.result, step.verdict),
                Ended(number, "serve", "done"),
            ]
        )

    # -- the trace ----------------------------------------------------------------------------------------------------

    def commit(self, events: Sequence[Event], store: Store | None = None, told: bool = False) -> asyncio.Future[None]:
        """End a transaction of the next iteration and hand it to the disk; the future is done when it is durable.

        The caller holds the turn, or has not waited since it changed the store. `store` is the state the events lead
        to, where that is not the live one; `told` that the followers have heard of the events as they happened.
        """
        store = self.store if store is None else store
        self.iteration += 1
        whole = [*events, Committed(self.iteration, self.position, store.fingerprint, len(store), store.links)]
        for event in whole[-1:] if told else whole:
            self.tell(event, store)
        durable = asyncio.get_running_loop().create_future()
        self.commits += 1
        if self._writer is not None and self._writer.shared:
            self.turns.commit(whole, durable)
            return durable
        self._last = durable
        self._pending.append((whole, durable))
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())
        return durable

    async def _flush(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                events = [event for some, _ in batch for event in some]
                self.flushes += 1
                assert self._writer is not None
                try:
                    await asyncio.get_running_loop().run_in_executor(self._disk, self._writer.commit, events)
                except (Failed, OSError) as error:
                    self._give_up([*batch, *self._pending], error)
                    continue
                for _, durable in batch:
                    durable.set_result(None)
        finally:
            self._flushing = None
            if not self._pending:
                self._last = None

    def _give_up(self, batch: Sequence[tuple[list[Event], asyncio.Future[None]]], error: Exception) -> None:
        """Nothing of this reached the disk, nor may what was built on it: return to what did."""
        self._pending, self._last = [], None
        folder = open_place(self.where)
        if self._writer is not None:
            self._writer.rejoin(folder)
        self.iteration, self.position = folder.iteration, folder.position
        for follower in self.followers:
            follower.clear()
        self.become(folder.store(watch=self.tell))
        for _, durable in batch:
            durable.set_exception(Failed(str(error)))
            durable.exception()

    def _written(self) -> None:
        self.flushes += 1

    async def durable(self) -> None:
        """Wait until everything done so far is on the disk."""
        while self._last is not None:
            await asyncio.shield(self._last)

    # -- states -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The store as it is now, for as long as somebody needs it; those who ask at one iteration share one."""
        if self._snapshot is None or self._snapshot.iteration != self.iteration:
            self._snapshot = Snapshot(
                self.store.copy().freeze(), self.engine.overlay(), self.iteration, self.environment.ranking
            )
        return self._snapshot

    def become(self, store: Store) -> None:
        """Take on another state of the store and bring the search into step."""
        before, self.environment.store = self.environment.store, store
        for record in before:
            if record.id not in store:
                self.engine.remove(record.id)
        for record in store:
            if record.id not in before or before[record.id].text != record.text:
                self.engine.put(record.id, record.text)
        self._snapshot = None

    async def close(self) -> None:
        await self.durable()
        self._disk.shutdown(wait=True)
        self.embedding.close()
        if self._writer is not None:
            self._writer.close()
