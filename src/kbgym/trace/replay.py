"""Replay: a store is the fold of its trace over its initial documents.

Every recorded result is checked against the result of the same action now, and every commit against the store's hash.
Nothing is searched, embedded or judged again. Resume, rollback, diff, blame and learning curves all use this fold.
A `Listener` is called with every event, live and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kbgym.errors import BadInput, Damaged
from kbgym.gym.actions import NOTHING, Observation
from kbgym.gym.environment import advice_of, apply
from kbgym.gym.observations import Observations, observe
from kbgym.store import Refused, Store
from kbgym.trace.events import TUNED, Acted, Committed, Event, Genesis, Imported, Noted, RolledBack, tunable

_BATCH = 500  # events whose documents are prefetched with one query, if not in memory
# Called after each event with the store at that point.
Watcher = Callable[[Event, Store], None]


def replay(
    initial: Callable[[], Store], events: Sequence[Event], at: int | None = None, watch: Watcher | None = None
) -> Store:
    """Return the store after iteration `at` (the last one by default, 0 for the beginning).

    `initial` returns the initial store.
    """
    if at is not None:
        commits = {0: 1} | {event.iteration: n for n, event in enumerate(events, 1) if isinstance(event, Committed)}
        if not 0 <= at <= max(commits):
            raise BadInput(f"there is no iteration {at}: this store has 0 to {max(commits)}.")
        if at not in commits:
            before, after = max(n for n in commits if n < at), min(n for n in commits if n > at)
            raise BadInput(f"iteration {at} was committed together with {after}: ask for {before} or {after}.")
        events = events[: commits[at]]

    def unknown(iteration: int) -> Store:
        raise Damaged(f"the trace returns to iteration {iteration}, which is not before it.")

    return catch_up(initial(), events, 0, unknown, watch)


def catch_up(
    store: Store,
    events: Sequence[Event],
    iteration: int,
    earlier: Callable[[int], Store],
    watch: Watcher | None = None,
) -> Store:
    """Apply whole transactions to the store after `iteration`, in place, and return it.

    Every event is applied once, regardless of rollbacks: the states that later rollbacks return to are kept.
    After a rollback the result is another object: `earlier` returns the store after an iteration before the events.
    """
    wanted = _wanted(events)
    kept = {iteration: store.copy()} if iteration in wanted else {}
    for number, event in enumerate(events, 1):
        if store.layer is not None and number % _BATCH == 1:
            store.layer.prefetch(events[number - 1 : number - 1 + _BATCH])
        if isinstance(event, RolledBack):
            then = kept[event.to] if event.to in kept else earlier(event.to)
            store = then.copy().never_reissue(store)
        else:
            redo(store, event, number)
        if isinstance(event, Committed):
            if wanted.get(event.iteration, 0) > number:
                kept[event.iteration] = store.copy()
            kept = {to: state for to, state in kept.items() if wanted[to] > number}
        if watch:
            watch(event, store)
    return store


def redo(store: Store, event: Event, number: int) -> None:
    """Apply one event to a store. Raise Damaged if the result differs from the record. The caller handles rollbacks."""
    match event:  # the most frequent first
        case Acted():
            result = apply(store, event.action, advice_of(event.result, event.verdict))
            if result != event.result:
                said = f"the action gave {event.result} when recorded and gives {result} now"
                raise Damaged(f"trace line {number}: {said}.")
        case Committed(iteration):
            if (store.fingerprint, len(store), store.links) != (event.store, event.documents, event.links):
                raise Damaged(f"trace line {number}: the store after iteration {iteration} is not the one recorded.")
        case Imported():
            try:
                follow_import(store, event)
            except Refused as refusal:
                raise Damaged(f"trace line {number}: {refusal}") from refusal
        case Noted(kind=kind, data=data) if kind == TUNED:
            store.tune(data)
        case Genesis(_, documents, fingerprint, settings=settings):
            if (len(store), store.fingerprint) != (documents, fingerprint):
                raise Damaged("the initial documents are not those this trace was written over.")
            store.tune(tunable(settings))


def follow_import(store: Store, event: Imported) -> None:
    """Apply an import to a store. Raise Refused if it does not fit."""
    new = (event.edited, event.restored, event.added)
    store.apply_import(event.removed, *([(one.id, one.text) for one in documents] for documents in new))


def _wanted(events: Sequence[Event]) -> dict[int, int]:
    """Return the iterations that rollbacks return to, each with the number of the last such event."""
    return {event.to: number for number, event in enumerate(events, 1) if isinstance(event, RolledBack)}


def effective(events: Sequence[Event]) -> list[Event]:
    """Return the events without those that were rolled back; the rollbacks themselves are kept."""
    wanted = _wanted(events)
    kept: list[Event] = []
    then: dict[int, list[Event]] = {0: list(events[:1])}
    for event in events:
        if isinstance(event, RolledBack):
            kept = list(then[event.to])
        kept.append(event)
        if isinstance(event, Committed) and event.iteration in wanted:
            then[event.iteration] = list(kept)
    return kept


class Listener(Protocol):
    """State derived from the trace. It is called with every event, live or replayed; `clear` resets it.

    `observation` is that of the event if it is an action. A live store does not call a listener that has an attribute
    `lessons_only = True` for edits that clients make by themselves.
    """

    def __call__(self, event: Event, store: Store, observation: Observation) -> None: ...

    def clear(self) -> None: ...


def replaying(listeners: Sequence[Listener], kind: Observations = "paper") -> Watcher:
    """Return a watcher that calls listeners, rendering each observation once."""

    def watch(event: Event, store: Store) -> None:
        observation = NOTHING
        if listeners and isinstance(event, Acted):
            observation = observe(event.result, store.look, kind, store.superseded_by)
        for listener in listeners:
            listener(event, store, observation)

    return watch
