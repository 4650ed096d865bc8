"""One client of a live store, driven action by action from a test; and live stores without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Action, Observation, Result
from kbgym.search.factory import live_engine_for
from kbgym.serving.clients import ClientSession, act
from kbgym.store import Store
from kbgym.store.guard import Judge
from kbgym.trace.events import Event
from kbgym.trace.live import LiveStore
from kbgym.trace.replay import Listener


class NoSearch:
    """A search that finds nothing, for tests of what is written."""

    trained = None
    beside: dict[str, tuple[str, ...]] = {}  # noqa: RUF012

    async def prepare(self, texts: Iterable[str]) -> None: ...

    def search(self, query: str, offset: int, limit: int) -> list[tuple[str, float]]:
        return []

    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[tuple[str, float]]:
        return []

    def put(self, id: str, text: str) -> None: ...

    def remove(self, id: str) -> None: ...

    def close(self) -> None: ...


def live_store(
    where: str | Path, listeners: Sequence[Listener] = (), judge: Judge | None = None, write: bool = True
) -> LiveStore:
    """A store as it is served, searched by words' hashes."""

    def engine(store: Store) -> Any:
        return live_engine_for(store, embedder_named("hash"))

    return LiveStore(where, engine, listeners, judge=judge, embedder="hash", write=write)


class LiveClient:
    """A live store and one client of it, without search."""

    def __init__(self, where: str | Path, name: str) -> None:
        self.session = ClientSession(name)
        self._loop = asyncio.new_event_loop()
        self.live = LiveStore(where, lambda store: NoSearch())

    @property
    def store(self) -> Store:
        return self.live.store

    @property
    def iteration(self) -> int:
        return self.live.iteration

    @property
    def writer(self) -> Any:
        return self.live._writer

    def act(self, action: Action) -> Result:
        return self._loop.run_until_complete(act(self.live, self.session, action, "curator")).step.result

    def close(self) -> None:
        self._loop.run_until_complete(self.live.close())
        self._loop.close()


class EventListener:
    """Keeps the events it is told of."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        self.events.append(event)

    def clear(self) -> None:
        self.events = []
