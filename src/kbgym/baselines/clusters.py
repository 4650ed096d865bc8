"""Groups of near vectors, none larger than a given size: two-means, repeated, without randomness.

It knows vectors of unit length, not what they stand for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_ROUNDS = 12


def clusters(vectors: Vectors, size: int) -> list[list[int]]:
    """Rows in groups of at most `size`, each in order, by their first row."""
    finished: list[list[int]] = []
    waiting = [np.arange(len(vectors))] if len(vectors) else []
    while waiting:
        rows = waiting.pop()
        if len(rows) <= size:
            finished.append(sorted(int(row) for row in rows))
            continue
        left = _half(vectors[rows])
        waiting += [rows[left], rows[~left]]
    return sorted(finished)


def _half(rows: Vectors) -> NDArray[np.bool_]:
    """Which rows go left: split along the longest axis, then each to the nearer of the two means."""
    centred = rows - rows.mean(axis=0)
    axis = centred[np.argmax((centred * centred).sum(axis=1))]
    for _ in range(_ROUNDS):
        axis = centred.T @ (centred @ axis)
        axis /= max(float(np.linalg.norm(axis)), 1e-30)
    left: NDArray[np.bool_] = centred @ axis > 0
    for _ in range(_ROUNDS):
        if left.all() or not left.any():
            break
        nearer = rows @ (rows[left].mean(axis=0) - rows[~left].mean(axis=0))
        middle = (_square(rows[left]) - _square(rows[~left])) / 2
        again = nearer > middle
        if (again == left).all():
            break
        left = again
    if left.all() or not left.any():  # all the same: any cut is as good
        left = np.arange(len(rows)) < len(rows) // 2
    return left


def _square(rows: Vectors) -> float:
    mean = rows.mean(axis=0)
    return float(mean @ mean)
