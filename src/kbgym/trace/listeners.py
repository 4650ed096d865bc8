"""What follows a trace: told of every event, as it happens and as it is replayed, with what the agent read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kbgym.observations import Observations, observe
from kbgym.store import Store
from kbgym.trace.events import Acted, Event
from kbgym.trace.replay import Watcher


class Listener(Protocol):
    """Something worked out from the trace alone: told of every event, live or replayed, and able to begin again.

    `observation` is what the agent read, where the event is an action.
    """

    def __call__(self, event: Event, store: Store, observation: str) -> None: ...

    def clear(self) -> None: ...


def replaying(listeners: Sequence[Listener], kind: Observations = "paper") -> Watcher:
    """Listeners as a watcher of a replay: what an agent read is rendered once for all of them."""

    def watch(event: Event, store: Store) -> None:
        observation = ""
        if listeners and isinstance(event, Acted):
            observation = observe(event.result, store.look, kind)
        for listener in listeners:
            listener(event, store, observation)

    return watch
