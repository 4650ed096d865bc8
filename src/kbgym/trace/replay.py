"""Replay: a store is the fold of its trace over its initial documents.

Every recorded result is checked against what the same action does now, and every commit against the store's hash.
Nothing is searched, embedded or judged again. Resume, rollback, diff, blame and learning curves are all this fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kbgym.actions import Found
from kbgym.environment import Advice, Nearest, apply
from kbgym.errors import BadInput, Damaged
from kbgym.store import Store
from kbgym.trace.events import Acted, Committed, Event, Genesis, RolledBack

# Called after each event with the store as it is then.
Watcher = Callable[[Event, Store], None]


def replay(
    initial: Callable[[], Store], events: Sequence[Event], at: int | None = None, watch: Watcher | None = None
) -> Store:
    """The store after iteration `at` (the last one by default, 0 for the beginning).

    `initial` makes the store the trace began with; it is called once, and once more for every rollback on the way.
    """
    last = max((event.iteration for event in events if isinstance(event, Committed)), default=0)
    if at is not None and not 0 <= at <= last:
        raise BadInput(f"there is no iteration {at}: this store has 0 to {last}.")
    store = initial()
    iteration = 0
    for number, event in enumerate(events, 1):
        if at is not None and iteration >= at and not isinstance(event, Genesis):
            break
        match event:
            case Genesis(_, documents, fingerprint):
                if (len(store), store.fingerprint) != (documents, fingerprint):
                    raise Damaged("the initial documents are not those this trace was written over.")
            case Acted():
                _act(store, event, number)
            case RolledBack(_, to):
                store = rolled_back(store, replay(initial, events[: number - 1], to))
            case Committed():
                iteration = event.iteration
                if (store.fingerprint, len(store), store.links) != (event.store, event.documents, event.links):
                    raise Damaged(
                        f"trace line {number}: the store after iteration {iteration} is not the one recorded."
                    )
        if watch:
            watch(event, store)
    return store


def _act(store: Store, event: Acted, number: int) -> None:
    advice: Advice = Nearest(event.result.ids) if isinstance(event.result, Found) else event.verdict
    result = apply(store, event.action, advice)
    if result != event.result:
        raise Damaged(f"trace line {number}: the action gave {event.result} when recorded and gives {result} now.")


def rolled_back(now: Store, then: Store) -> Store:
    """The earlier store, except that ids given out since are never given out again."""
    then.never_reissue(now)
    return then


def effective(events: Sequence[Event]) -> list[Event]:
    """The events the present store is made of: what was rolled back is left out, the rollback itself stays."""
    kept: list[Event] = []
    for event in events:
        if isinstance(event, RolledBack):
            kept = effective(events[: end_of(events, event.to)])
        kept.append(event)
    return kept


def end_of(events: Sequence[Event], iteration: int) -> int:
    """How many events there are up to and including an iteration's commit; 0 is the genesis line."""
    for number, event in enumerate(events, 1):
        if isinstance(event, Committed) and event.iteration == iteration:
            return number
    return 1
