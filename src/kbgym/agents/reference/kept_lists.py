"""Sorted lists of keys that are updated incrementally: a test is repeated only if something it read has changed.

A run may have seen 50,000 people over 10,000 lessons, and a lesson changes a few dozen facts. Dependencies are recorded
while a test runs, and a changed fact invalidates only the tests that read it. A fact is a hashable value.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from kbgym.index_keys import IndexKey

Rank = Any  # a sort key, unique within a list


class Dependencies:
    """The tests that read each fact. Outside of tests nothing is recorded."""

    def __init__(self) -> None:
        self._by_what: dict[Hashable, set[tuple[KeyList, IndexKey]]] = {}
        self._testing: tuple[KeyList, IndexKey] | None = None

    def read(self, what: Hashable) -> None:
        """Record that the running test reads this fact, whether or not it holds."""
        if self._testing is not None:
            self._by_what.setdefault(what, set()).add(self._testing)

    def changed(self, what: Hashable) -> None:
        for of, key in self._by_what.pop(what, ()):
            of.doubt(key)

    def made(self, of: KeyList, key: IndexKey, test: Callable[[IndexKey], Rank | None]) -> Rank | None:
        """Run a test, record what it reads, and return its outcome."""
        self._testing = of, key
        try:
            return test(key)
        finally:
            self._testing = None


class KeyList:
    """The keys that pass a test, sorted by the rank it returns; None means failed. Invalidated keys are tested again
    by the next iteration.
    """

    def __init__(self, readings: Dependencies, test: Callable[[IndexKey], Rank | None]) -> None:
        self._readings, self._test = readings, test
        self._ranks: dict[IndexKey, Rank] = {}
        self._sorted: list[tuple[Rank, IndexKey]] = []
        self._doubted: dict[IndexKey, None] = {}

    def doubt(self, key: IndexKey) -> None:
        """Invalidate a key, so that it is tested for the first time or again."""
        self._doubted[key] = None

    def __iter__(self) -> Iterator[IndexKey]:
        self._settle()
        return (key for _, key in self._sorted)

    def __len__(self) -> int:
        self._settle()
        return len(self._sorted)

    def _settle(self) -> None:
        doubted, self._doubted = self._doubted, {}
        for key in doubted:
            rank, before = self._readings.made(self, key, self._test), self._ranks.get(key)
            if rank == before:
                continue
            if before is not None:
                del self._ranks[key], self._sorted[bisect_left(self._sorted, (before, key))]
            if rank is not None:
                self._ranks[key] = rank
                insort(self._sorted, (rank, key))
