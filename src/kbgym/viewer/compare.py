"""Comparison of two stores, of one place or of two: their numbers, documents, links and questions.

Intervals are those of the report: over the questions both were asked, clustered by shared keys.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec

from kbgym.analysis.health import coverage
from kbgym.analysis.verdict import Finding, judge
from kbgym.store import Store, ledger
from kbgym.trace.history import Difference, diff
from kbgym.training.exam import Row
from kbgym.viewer import group_label, picked
from kbgym.viewer.places import ViewedPlace, ViewedStore
from kbgym.viewer.stores import brief

MOST = 10_000  # of each kind of difference to list; the counts are complete
ALL = "all sets together"
LEDGER = ("documents", "links", "authored", "edited", "merged", "orphans", "empty_indexes", "lost_origins")
MEANS = ("f1", "actions", "characters")
COUNTED = ("added", "removed", "edited", "links_added", "links_removed")


class Side:
    """One side of a comparison: a place, a seed, an arm."""

    def __init__(self, place: ViewedPlace, seed: int, arm: str | None) -> None:
        self.place, self.seed = place, seed
        self.arm = arm or next(iter(place.arms(seed)))

    @property
    def viewed(self) -> ViewedStore:
        return self.place.viewed(self.seed, self.arm)

    def rows(self) -> dict[str, dict[str, Row]]:
        """Return the rows by question set and question."""
        exams = self.place.exams(self.seed).items()
        return {name: {row.id: row for row in rows} for (arm, name), rows in exams if arm == self.arm}

    def values(self) -> dict[str, Any]:
        return {**picked(self, "seed", "arm"), "run": self.place.name, "label": self.place.label(self.seed, self.arm)}


def stores(left: Side, right: Side) -> dict[str, Any]:
    """Return the numbers of both stores, and the changes that turn the left one into the right one."""
    one, other = left.viewed, right.viewed
    found: Difference = left.place.keep(
        ("diff", left.seed, left.arm, right.place.name, right.seed, right.arm, other.store.fingerprint),
        lambda: diff(one.store, other.store),
    )
    relinked = _relinked(found, one.store, other.store)
    held = [ledger(side.store) for side in (one, other)]
    numbers: list[list[Any]] = [[name.replace("_", " "), *(getattr(each, name) for each in held)] for name in LEDGER]
    numbers.append(["coverage", *(coverage(side.store).direct for side in (one, other))])
    return {
        "left": left.values(),
        "right": right.values(),
        "numbers": numbers,
        "counts": {"relinked": len(relinked), **{name: len(getattr(found, name)) for name in COUNTED}},
        "added": [brief(other, record.id) for record in found.added[:MOST]],
        "removed": [brief(one, record.id) for record in found.removed[:MOST]],
        "edited": [msgspec.to_builtins(change) for change in found.edited[:MOST]],
        "relinked": relinked[:MOST],
        "most": MOST,
    }


def _relinked(found: Difference, one: Store, other: Store) -> list[dict[str, Any]]:
    """Return the documents that both stores have with different links, the most changed first."""
    changes: dict[str, list[int]] = {}
    for at, links in ((0, found.links_added), (1, found.links_removed)):
        for link in links:
            if link.source in one and link.source in other:
                changes.setdefault(link.source, [0, 0])[at] += 1
    rows = [
        {"id": id, "text": other[id].text, "added": more, "removed": less, "links": len(other[id].links)}
        for id, (more, less) in changes.items()
    ]
    return sorted(rows, key=lambda row: (-(row["added"] + row["removed"]), row["id"]))


def exams(left: Side, right: Side) -> dict[str, Any]:
    """Return the exams by set and question, where both stores were asked; the right arm is relative to the left."""
    one, other = left.rows(), right.rows()
    groups, rows, keys = [], [], left.place.keys(left.seed)
    everything: tuple[list[Row], list[Row]] = ([], [])
    for name in one:
        shared = [id for id in one[name] if id in other.get(name, {})]
        before, after = [one[name][id] for id in shared], [other[name][id] for id in shared]
        if not any(a.f1 is not None and b.f1 is not None for a, b in zip(before, after, strict=True)):
            continue
        groups.append({"set": name, "label": group_label(name), **_compared(judge(after, before, keys))})
        everything[0].extend(before)
        everything[1].extend(after)
        for a, b in zip(before, after, strict=True):
            both = {field: [getattr(a, field), getattr(b, field)] for field in ("f1", "actions", "outcome", "answer")}
            rows.append({"set": name, "id": a.id, "class": a.class_, "text": a.question, **both})
    if len(groups) > 1:
        groups.append({"set": "", "label": ALL, **_compared(_pooled(*everything, keys))})
    return {"left": left.values(), "right": right.values(), "groups": groups, "rows": rows}


def _pooled(before: Sequence[Row], after: Sequence[Row], keys: Mapping[str, Sequence[Hashable]]) -> Finding:
    """Return the pooled result. Sets may share questions, so each row is paired within its own set."""

    def numbered(rows: Sequence[Row]) -> list[Row]:
        return [msgspec.structs.replace(row, id=str(number)) for number, row in enumerate(rows)]

    return judge(numbered(after), numbered(before), keys)


def _compared(found: Finding) -> dict[str, Any]:
    return {
        **picked(found, "n", "failed"),
        "rho": msgspec.to_builtins(found.rho),
        "difference": msgspec.to_builtins(found.gain),
        **{name: [getattr(found, f"{name}_{side}") for side in ("flat", "trained")] for name in MEANS},
    }
