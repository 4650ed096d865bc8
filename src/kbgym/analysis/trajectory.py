"""Growth of a store, read from its trace: its contents after every iteration, and cost and edits of every epoch.

One replay computes everything; nothing is searched, embedded or judged again. Work undone by a rollback counts where it
was spent; the next point shows the restored store.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from statistics import median

import msgspec

from kbgym.analysis.health import Health, coverage, health
from kbgym.api import Workspace
from kbgym.gym import actions
from kbgym.gym.actions import Error, Linked, LinkMany, Merged
from kbgym.gym.observations import render
from kbgym.store import Store
from kbgym.trace.backend import StoreBackend
from kbgym.trace.events import Acted, Began, Committed, Ended, Event, Genesis
from kbgym.training.exam import Row

# Successful calls by kind of edit.
EDITS = ("add", "edit", "merge", "delete", "link", "link_many", "unlink")


class Point(msgspec.Struct, frozen=True):
    """The store after an iteration; `coverage` is the direct reading."""

    iteration: int
    epoch: int
    documents: int
    links: int
    authored: int
    coverage: float


class Degrees(msgspec.Struct, frozen=True):
    """Out-degree distribution of the authored documents."""

    mean: float
    median: float
    empty: int


class Epoch(msgspec.Struct, frozen=True):
    """The work of the backward passes of an epoch. `actions` are all they spent, errors, searches and reads included.

    `judged`: candidates the duplicate guard was asked to judge. A merge among `edits` is one
    the guard found: to add the very words of a document that is there does nothing, and counts as nothing. `degrees`
    are those of the store at the epoch's end.
    """

    epoch: int
    passes: int
    actions: int
    edits: dict[str, int]
    errors: int
    judged: int
    degrees: Degrees

    @property
    def edits_a_pass(self) -> float:
        return sum(self.edits.values()) / self.passes if self.passes else 0.0


class Trajectory(msgspec.Struct, frozen=True):
    """Points in order, the initial store first; epochs in order; the degrees of the last store."""

    points: tuple[Point, ...]
    epochs: tuple[Epoch, ...]
    degrees: Degrees


def trajectory(folder: StoreBackend) -> Trajectory:
    """Replay a store and record its growth, up to the iteration at which the folder was opened."""
    points: list[Point] = []
    counts: dict[int, Counter[str]] = {}
    epoch, seen = 0, ""
    ends: dict[int, Degrees] = {}
    if not folder.events:
        points.append(_point(folder.initial, 0, 0))

    def watch(event: Event, store: Store) -> None:
        nonlocal epoch, seen
        match event:
            case Genesis():
                points.append(_point(store, 0, 0))
            case Began(_, phase):
                if event.epoch != epoch:
                    ends[epoch] = degrees(store)
                epoch = event.epoch
                if phase == "backward":
                    counts.setdefault(epoch, Counter())["passes"] += 1
            case Acted(_, "backward"):
                _count(counts.setdefault(epoch, Counter()), event)
            case Committed(iteration, _, fingerprint):
                before = points[-1]
                if fingerprint == seen:  # nothing changed: no need to count again
                    points.append(msgspec.structs.replace(before, iteration=iteration, epoch=epoch))
                else:
                    points.append(_point(store, iteration, epoch))
                seen = fingerprint

    store = folder.store(watch=watch)
    ends[epoch] = last = degrees(store)
    epochs = tuple(_epoch(number, count, ends[number]) for number, count in sorted(counts.items()))
    return Trajectory(tuple(points), epochs, last)


def _point(store: Store, iteration: int, epoch: int) -> Point:
    return Point(iteration, epoch, len(store), store.links, len(store.authored()), coverage(store).direct)


def _count(count: Counter[str], event: Acted) -> None:
    count["actions"] += 1
    if event.verdict is not None and event.verdict.checks:
        count["judged"] += 1
    if isinstance(event.action, LinkMany) and isinstance(event.result, Linked):
        count["link_many"] += 1
    elif edit := actions.EDITS.get(type(event.result)):
        # An add of an existing text made and merged no document, and the guard was not asked.
        is_repeated = isinstance(event.result, Merged) and event.result.gone is None and event.verdict is None
        count[edit] += not is_repeated
    count["errors"] += isinstance(event.result, Error)


def degrees(store: Store) -> Degrees:
    """Return the distribution of the link counts of the authored documents."""
    found = [len(record.links) for record in store.authored()]
    return Degrees(sum(found) / len(found), float(median(found)), found.count(0)) if found else Degrees(0.0, 0.0, 0)


def _epoch(number: int, count: Counter[str], at_the_end: Degrees) -> Epoch:
    edits = {name: count[name] for name in EDITS}
    plain = {name: count[name] for name in ("passes", "actions", "errors", "judged")}
    return Epoch(epoch=number, edits=edits, degrees=at_the_end, **plain)


class Spent(msgspec.Struct, frozen=True):
    """Total cost of training, both passes together, after an iteration."""

    actions: int
    characters: int
    tokens: int = 0


def tokens_of(event: Ended | Row) -> int:
    """Return the tokens a model used in a pass; 0 if no model ran."""
    usage = event.usage or {}
    return sum(count for name in ("prompt", "completion") if isinstance(count := usage.get(name, 0), int))


def cost_of(row: Row, unit: str) -> float:
    """Return the cost of a pass in actions, characters or tokens."""
    return float(tokens_of(row) if unit == "tokens" else getattr(row, unit))


class Trained(Workspace):
    """One training of one seed; everything about its store comes from its trace."""

    def __init__(self, folder: Path, root: Path, name: str, label: str) -> None:
        super().__init__(folder)
        self.name = name
        self.label = label
        self.trace = str((folder / "trace.jsonl").relative_to(root))

    @cached_property
    def trajectory(self) -> Trajectory:
        return trajectory(self.place)

    @cached_property
    def health(self) -> Health:
        return health(self.store, self.world, self.origins)

    @cached_property
    def spent(self) -> dict[int, Spent]:
        """Return the cost by iteration; characters are those the agents were given to read."""
        found: dict[int, Spent] = {0: Spent(0, 0)}
        actions = characters = tokens = 0

        def watch(event: Event, store: Store) -> None:
            nonlocal actions, characters, tokens
            if isinstance(event, Acted):
                actions += 1
                characters += len(render(event.result, lambda id: store[id].text))
            elif isinstance(event, Ended):
                tokens += tokens_of(event)
            elif isinstance(event, Committed):
                found[event.iteration] = Spent(actions, characters, tokens)

        self.place.store(watch=watch)
        return found

    @property
    def total(self) -> Spent:
        """Return the cost of the whole training."""
        return self.spent[max(self.spent)]

    def coverage_at(self, iteration: int) -> float:
        return next(point.coverage for point in reversed(self.trajectory.points) if point.iteration <= iteration)
