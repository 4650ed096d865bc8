"""What was asked for last, remembered up to a size. It knows nothing of what it remembers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """What was asked for last, up to so much of it together. Safe for threads."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            if (found := self._kept.get(key)) is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def get_many(self, keys: Iterable[K]) -> tuple[dict[K, V], list[K]]:
        """What is known of some keys, and those of which nothing is."""
        found, missing = dict[K, V](), list[K]()
        for key in dict.fromkeys(keys):
            if (value := self.get(key)) is None:
                missing.append(key)
            else:
                found[key] = value
        return found, missing

    def put(self, key: K, value: V, size: int = 1) -> None:
        with self._lock:
            if (before := self._kept.pop(key, None)) is not None:
                self._size -= before[1]
            self._kept[key] = value, size
            self._size += size
            while self._size > self._most:
                self._size -= self._kept.popitem(last=False)[1][1]
