"""Snapshots of a store and its search, read by passes while the live store changes."""

from __future__ import annotations

import msgspec

from kbgym.gym.environment import Environment, Ranking
from kbgym.gym.observations import Observations
from kbgym.search.live import LiveEngine, Overlay
from kbgym.store import Store


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """A read-only store and its search after an iteration."""

    store: Store
    engine: Overlay
    iteration: int
    ranking: Ranking = "paper"
    observations: Observations = "paper"

    def environment(self) -> Environment:
        return Environment(self.store, self.engine, ranking=self.ranking, observations=self.observations)


def overlay_of(environment: Environment) -> Overlay:
    """Return a snapshot of the search on which edits can be staged."""
    if not isinstance(environment.engine, LiveEngine):
        raise TypeError("a store whose edits are staged needs a search with overlays")
    return environment.engine.overlay()


def snapshot_of(now: Environment, iteration: int) -> Snapshot:
    return Snapshot(now.store.copy().freeze(), overlay_of(now), iteration, now.ranking, now.observations)
