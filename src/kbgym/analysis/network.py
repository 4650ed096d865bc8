"""A 2D layout of documents by embedding similarity, for maps.

It preserves neighbourhoods, not distances. It is deterministic and kept in the cache folder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbgym.canonical import digest_of, write_whole
from kbgym.search.cache import cache_folder
from kbgym.search.embed import Embedder

Floats = NDArray[np.float32]

NEIGHBOURS = 12
PUSHES = 6  # random repelling partners per document and round
ROUNDS = 160
GRAVITY = 0.08  # keeps disconnected components from drifting apart
VERSION = 2  # part of the cache key


def layout(texts: Sequence[str], embedder: Embedder) -> Floats:
    """Return one (x, y) row per text, each in [-1, 1], from the cache if the same texts were laid out before."""
    name = digest_of([VERSION, embedder.name, list(texts)])[:32]
    file = cache_folder() / "layouts" / f"{name}.npy"
    try:
        kept: Floats = np.load(file, allow_pickle=False)
        if kept.shape == (len(texts), 2) and kept.dtype == np.float32:
            return kept
    except (OSError, ValueError):
        pass
    found = arrange(embedder.embed(texts))
    try:
        with write_whole(file) as scratch:  # np.save appends .npy to any other suffix
            np.save(scratch, found)
    except OSError:
        pass  # an unwritable cache costs only time
    return found


def arrange(vectors: NDArray[np.float32], rounds: int = ROUNDS) -> Floats:
    """Return a 2D layout of vectors: neighbours attract, random pairs repel, as in LargeVis and UMAP."""
    count = len(vectors)
    if count < 3:
        return np.linspace(-1, 1, 2 * count, dtype=np.float32).reshape(count, 2)
    reduced = _principal(vectors, min(40, count - 1, vectors.shape[1]))
    start = np.zeros((count, 2), dtype=np.float32)
    start[:, : min(2, reduced.shape[1])] = reduced[:, :2]
    draw = np.random.default_rng(0)
    # Jitter separates documents with equal texts.
    spot = 10 * start / max(1e-9, float(np.abs(start).max())) + draw.normal(0, 0.01, start.shape)
    near, weight = _neighbours(reduced, min(NEIGHBOURS, count - 1))
    ends = np.repeat(np.arange(count), near.shape[1]), near.ravel()
    pull = weight.ravel()
    for round in range(rounds):
        rate = 1.0 - round / rounds
        step = -GRAVITY * spot
        gap = spot[ends[0]] - spot[ends[1]]
        force = gap * (-2.0 * pull / (1.0 + (gap * gap).sum(axis=1)))[:, None]
        _add(step, ends[0], force)
        _add(step, ends[1], -force)
        for _ in range(PUSHES):
            gap = spot - spot[draw.integers(0, count, count)]
            square = (gap * gap).sum(axis=1)
            step += np.clip(gap * (2.0 / ((0.05 + square) * (1.0 + square)))[:, None], -4.0, 4.0)
        spot = spot + rate * 0.25 * np.clip(step, -6.0, 6.0)
    spot = _principal(spot.astype(np.float32), 2).astype(np.float64)  # align the longer side with the x axis
    spot -= (spot.max(axis=0) + spot.min(axis=0)) / 2
    placed: Floats = (spot / max(1e-9, float(np.abs(spot).max()))).astype(np.float32)
    return placed


def _add(step: NDArray[np.float64], at: NDArray[np.intp], force: NDArray[np.float64]) -> None:
    for axis in (0, 1):
        step[:, axis] += np.bincount(at, weights=force[:, axis], minlength=len(step))


def _principal(vectors: NDArray[np.float32], dimensions: int) -> Floats:
    """Project onto the principal components, with fixed signs so that the map is deterministic."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :dimensions]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    reduced: Floats = (centred @ axes).astype(np.float32)
    return reduced


def _neighbours(points: Floats, count: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the nearest neighbours of every point and their weights, which decay with distance."""
    near = np.empty((len(points), count), dtype=np.intp)
    far = np.empty((len(points), count), dtype=np.float64)
    squares = (points * points).sum(axis=1)
    for start in range(0, len(points), 1000):
        some = points[start : start + 1000]
        gap = squares[start : start + 1000, None] + squares[None] - 2 * some @ points.T
        rows = np.arange(len(some))
        gap[rows, start + rows] = np.inf
        best = np.argpartition(gap, count - 1, axis=1)[:, :count]
        near[start : start + 1000] = best
        far[start : start + 1000] = np.sqrt(np.maximum(0.0, np.take_along_axis(gap, best, axis=1)))
    beyond = far - far.min(axis=1, keepdims=True)
    scale = np.maximum(1e-6, beyond.mean(axis=1, keepdims=True))
    return near, np.exp(-beyond / scale)
