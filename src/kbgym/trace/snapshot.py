"""A store and its search as they were at one moment, for passes that look while others go on changing the live one."""

from __future__ import annotations

import msgspec

from kbgym.gym.environment import Environment, Ranking
from kbgym.gym.observations import Observations
from kbgym.search.live import LiveEngine, Overlay
from kbgym.store import Store


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """The store and its search as they were after an iteration; nothing can be changed in it."""

    store: Store
    engine: Overlay
    iteration: int
    ranking: Ranking = "paper"
    observations: Observations = "paper"

    def environment(self) -> Environment:
        return Environment(self.store, self.engine, ranking=self.ranking, observations=self.observations)


def overlay_of(environment: Environment) -> Overlay:
    """Its search as it is now, to be changed apart from it."""
    if not isinstance(environment.engine, LiveEngine):
        raise TypeError("a store whose passes are on trial needs a search with overlays")
    return environment.engine.overlay()


def snapshot_of(now: Environment, iteration: int) -> Snapshot:
    return Snapshot(now.store.copy().freeze(), overlay_of(now), iteration, now.ranking, now.observations)
