"""A thread-safe LRU cache for what is read from the database."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from operator import itemgetter
from typing import Generic, TypeVar

import cachetools

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """A thread-safe LRU cache, bounded by the total size of its values."""

    def __init__(self, maxsize: int) -> None:
        self._values: cachetools.LRUCache[K, tuple[V, int]] = cachetools.LRUCache(maxsize, itemgetter(1))
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._values.get(key)
        return None if found is None else found[0]

    def get_many(self, keys: Iterable[K]) -> tuple[dict[K, V], list[K]]:
        """Return the values of the known keys, and the unknown keys."""
        values = {key: self.get(key) for key in keys}
        found = {key: value for key, value in values.items() if value is not None}
        return found, [key for key in values if key not in found]

    def put(self, key: K, value: V, size: int = 1) -> None:
        with self._lock, contextlib.suppress(ValueError):  # a value larger than the cache is not stored
            self._values[key] = value, size
