"""Upkeep of a store: the quality of its indexes after a round of updates changes the facts.

Apply a round with `round_event`; score the store right after it and again after the curator's work.
"""

from __future__ import annotations

import msgspec

from kbgym.analysis.audit import Auditor
from kbgym.store import Store
from kbgym.trace.events import Imported
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.updates import Update, updated, updates
from kbgym.worlds.world import World


class Upkeep(msgspec.Struct, frozen=True):
    """The state of the indexes after a round.

    Attributes:
        links: Links of authored documents.
        stale: Those that lead to a document which an update superseded.
        precision: Share of links that belong under their keys, by the facts after the round.
        recall: Share of the keys' members that the links lead to.
        actions: Actions spent on upkeep since the round.
    """

    round: int
    indexes: int
    links: int
    stale: int
    precision: float
    recall: float
    actions: int = 0


def round_event(update: Update, iteration: int) -> Imported:
    """Return the trace event that adds the documents of a round to a store."""
    return Imported(iteration, added=update.documents)


def upkeep(store: Store, world: World, rounds: int, actions: int = 0) -> Upkeep:
    """Score the indexes of a store to which the first `rounds` updates were applied."""
    after = updated(world, rounds)
    superseded = {id for update in updates(world)[:rounds] for id in update.superseded}
    authored = [record for record in store if record.flag == "authored" and record.links]
    targets = [target for record in authored for target in record.links]
    total = Auditor(store, kind_of(after).truth(after)).audit().total
    return Upkeep(
        round=rounds,
        indexes=len(authored),
        links=len(targets),
        stale=sum(target in superseded for target in targets),
        precision=total.precision if total else 0.0,
        recall=total.recall if total else 0.0,
        actions=actions,
    )
