"""Lists of keys that are kept instead of worked out: what a test read of what was seen says when it must be made again.

A run may have seen fifty thousand people and gone through ten thousand lessons; what a lesson changes is a few dozen
facts. So whatever an agenda's tests look at is noted as it is looked at, and a fact that changes makes only those tests
doubtful that looked at it. It knows nothing of facts, pages or indexes: what was read is whatever can stand in a set.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from kbgym.index_keys import IndexKey

Rank = Any  # whatever sorts; no two keys of a list have the same


class Dependencies:
    """Who looked at what. Nothing is noted while no test is being made."""

    def __init__(self) -> None:
        self._by_what: dict[Hashable, set[tuple[KeyList, IndexKey]]] = {}
        self._testing: tuple[KeyList, IndexKey] | None = None

    def read(self, what: Hashable) -> None:
        """Somebody looks at this, or finds that it is not there."""
        if self._testing is not None:
            self._by_what.setdefault(what, set()).add(self._testing)

    def changed(self, what: Hashable) -> None:
        for of, key in self._by_what.pop(what, ()):
            of.doubt(key)

    def made(self, of: KeyList, key: IndexKey, test: Callable[[IndexKey], Rank | None]) -> Rank | None:
        """The outcome of a test, with what it looked at noted."""
        self._testing = of, key
        try:
            return test(key)
        finally:
            self._testing = None


class KeyList:
    """The keys that pass a test, sorted by the rank it gives them; None is failed. A key in doubt is tested when the
    list is next gone through."""

    def __init__(self, readings: Dependencies, test: Callable[[IndexKey], Rank | None]) -> None:
        self._readings, self._test = readings, test
        self._ranks: dict[IndexKey, Rank] = {}
        self._sorted: list[tuple[Rank, IndexKey]] = []
        self._doubted: dict[IndexKey, None] = {}

    def doubt(self, key: IndexKey) -> None:
        """Test a key, for the first time or again."""
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
