"""Index accounting: what every document that training wrote gave or cost the questions of a run's exams.

`prove`, `audit`, `prune`, the report and the viewer show it; all of them from `index_use`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from kbgym.analysis.audit import Audit, Index
from kbgym.analysis.health import Advice
from kbgym.analysis.index_use import IndexUse, costly, index_use
from kbgym.analysis.kept_pairs import FLAT, how_to_compare
from kbgym.analysis.results import Seed, open_seeds
from kbgym.analysis.verdict import Pair, paired_rows
from kbgym.errors import BadInput
from kbgym.protocol.exam_header import read_header
from kbgym.store import Store


class Accounting(msgspec.Struct, frozen=True):
    """Every written document of the store as it is now, by the questions of these exam sets."""

    sets: tuple[str, ...]
    n: int
    indexes: list[IndexUse]

    @property
    def unused(self) -> list[IndexUse]:
        return [one for one in self.indexes if not one.questions]

    @property
    def harmful(self) -> list[IndexUse]:
        return costly(self.indexes)


def pairs_of(run: Path, store: Store) -> dict[str, list[Pair]]:
    """By set, each question on the flat store and on this one; exams of any other store are no part of it."""
    plan, (seed, *_) = open_seeds(run)
    if plan is not None:
        raise BadInput(f"{run} is an experiment; name one of its runs.")
    arm = next(iter(seed.trained))
    found = {name: paired_rows(seed.rows(arm, name), seed.rows(FLAT, name)) for name in _fitting(seed, arm, store)}
    if not found:
        how = f"examine it again: kbgym exam {run} --set {seed.sets[0]}" if seed.sets else how_to_compare(run)
        raise BadInput(f"{run} holds no exam of its store as it is now beside one of the flat store; {how}.")
    return found


def _fitting(seed: Seed, arm: str, store: Store) -> list[str]:
    """Sets whose exam says it is of this store; rows of an earlier version say nothing and are believed."""
    headers = {name: read_header(seed.file(arm, name)) for name in seed.sets}
    return [name for name, header in headers.items() if header is None or header.store == store.fingerprint]


def account(run: Path, store: Store) -> Accounting:
    pairs = pairs_of(run, store)
    every = [pair for some in pairs.values() for pair in some]
    return Accounting(tuple(pairs), len(every), index_use(store, every))


def advised(accounted: Accounting, place: str) -> list[Advice]:
    """What to do about documents the exams would have gone better, or no worse, without."""
    found = []
    for some, what, flag in (
        (accounted.harmful, "cost more than they gave", "harmful"),
        (accounted.unused, "were never opened", "unused"),
    ):
        if some:
            of = f"{len(some):,} of {len(accounted.indexes):,} written documents {what}"
            found.append(
                Advice(
                    f"in {accounted.n} exam questions {of}; look at them", f"prune {quote(place)} --{flag} --dry-run"
                )
            )
    return found


def accounts(audit: Audit, used: Mapping[str, Sequence[int]], accounted: Accounting | None) -> list[dict[str, Any]]:
    """Every written document: what it gave or cost the exams, when a pass last opened it, whether it is complete.

    `used` are the iterations that opened each. Without exams what they would say is None.
    """
    by_id = {one.id: one for one in accounted.indexes} if accounted else {}
    fields = ("opened", "questions", "needed", "saved", "f1", "harmful")
    return [
        {
            "id": index.id,
            "text": index.text,
            **{name: getattr(by_id.get(index.id), name, None) for name in fields},
            "last_used": max(used.get(index.id, ()), default=None),
            "complete": _completeness(index, audit.resolved),
        }
        for index in audit.indexes
    ]


def _completeness(index: Index, resolved: bool) -> str:
    """Whether a document leads to all it should, and by what that is known."""
    if index.scored:
        return f"{index.members - len(index.missing)} of {index.members} by the world's facts"
    return "not known: it names no single key" if resolved else "not known: the world has no facts to count by"
