"""How much of the corpus the indexes reach, in four readings, as shares of the originals (or of the questions)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kbgym.store import Record, Store
from kbgym.worlds.world import Question


class Coverage(msgspec.Struct, frozen=True):
    """`direct`: an authored document with links points at the original. `two_hops`: also through what it points at.

    `confirmed`: only links a check calls correct (None without a check). `questions`: questions whose whole support
    one index reaches in one read (None without questions).
    """

    direct: float
    two_hops: float
    confirmed: float | None = None
    questions: float | None = None


def coverage(
    store: Store,
    correct: Callable[[Record, str], bool] | None = None,
    questions: Iterable[Question] = (),
) -> Coverage:
    """Measure a store; `correct(index, target)` says whether a link belongs."""
    indexes = [record for record in store.authored() if record.links]
    direct: set[str] = set()
    two_hops: set[str] = set()
    confirmed: set[str] = set()
    for index in indexes:
        for target in index.links:
            linked = store[target]
            direct.update(linked.origins)
            if correct is not None and linked.origins and correct(index, target):
                confirmed.update(linked.origins)
            for further in linked.links:
                two_hops.update(store[further].origins)
    total = max(1, store.origins)
    supports = [set(question.support) for question in questions if question.support]
    return Coverage(
        direct=len(direct) / total,
        two_hops=len(direct | two_hops) / total,
        confirmed=len(confirmed) / total if correct is not None else None,
        questions=_reached(store, indexes, supports) / len(supports) if supports else None,
    )


def _reached(store: Store, indexes: list[Record], supports: list[set[str]]) -> int:
    """How many supports lie whole under one index. Supports are origins: a merge keeps them reachable."""
    above: dict[str, set[int]] = {}
    for number, index in enumerate(indexes):
        for target in index.links:
            for origin in store[target].origins:
                above.setdefault(origin, set()).add(number)
    nothing: set[int] = set()
    return sum(bool(set.intersection(*(above.get(id, nothing) for id in support))) for support in supports)
