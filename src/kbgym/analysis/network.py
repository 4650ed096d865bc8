"""The network map: a 2D layout of documents by embedding similarity, with the links drawn over it.

One layout of the final store serves all panels. It preserves neighbourhoods, not distances, needs only numpy, is
deterministic, and is kept in the cache folder. The panels need matplotlib.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbgym.analysis.audit import Index
from kbgym.analysis.figures import BLUE, GREEN, ORANGE, PURPLE, as_png, plotting
from kbgym.analysis.trajectory import Trained
from kbgym.canonical import digest_of, write_whole
from kbgym.search.cache import cache_folder
from kbgym.search.embed import Embedder
from kbgym.store import Store
from kbgym.worlds.truth import GROUPS

ROOM = 0.5  # share of a panel's width reserved for labels
Floats = NDArray[np.float32]
Layout = Mapping[str, tuple[float, float]]

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


def panels(trained: Trained, embedder: Embedder) -> bytes:
    """Draw the store before training, after the first epoch and at the end, with four correct indexes labelled."""
    records = list(trained.store)
    spots = layout([record.text for record in records], embedder)
    places = {record.id: (float(x), float(y)) for record, (x, y) in zip(records, spots, strict=True)}
    plt = plotting()
    settings = trained.settings
    last = settings.questions * settings.epochs
    steps = list(dict.fromkeys((0, settings.questions, last)))
    widths = {"width_ratios": [*([1.0] * (len(steps) - 1)), 1 + ROOM]}
    size = (4.6 * (len(steps) + ROOM), 5.0)
    figure, axes = plt.subplots(1, len(steps), figsize=size, squeeze=False, gridspec_kw=widths)
    for axis, step in zip(axes[0], steps, strict=True):
        store = trained.store if step == last else trained.place.store(step)
        _draw(axis, store, places)
        axis.set_title(f"iteration {step}: {store.links:,} links", fontsize=11)
    examples(axes[0][-1], trained, places)
    handles = [
        plt.Line2D([], [], marker="o", ls="", color=BLUE, ms=4, alpha=0.6, label="source document"),
        plt.Line2D([], [], marker="o", ls="", color=ORANGE, ms=7, label="index document, sized by links"),
        plt.Line2D([], [], color=GREEN, lw=1.2, label="link"),
        plt.Line2D([], [], marker="o", ls="", color=PURPLE, ms=5, label="reached by a named index"),
    ]
    figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, -0.04), ncol=4)
    figure.tight_layout()
    return as_png(figure, dpi=100)


def _draw(axis: Any, store: Store, places: Layout) -> None:
    from matplotlib.collections import LineCollection

    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    for side in axis.spines.values():
        side.set_visible(False)
    sources = [places[r.id] for r in store if r.flag != "authored" and r.id in places]
    indexes = [(places[r.id], len(r.links)) for r in store if r.flag == "authored" and r.id in places]
    segments = [(places[r.id], places[t]) for r in store for t in r.links if r.id in places and t in places]
    axis.scatter(*zip(*sources, strict=True), s=2, color=BLUE, alpha=0.35, lw=0)
    if segments:
        axis.add_collection(
            LineCollection(segments, colors=GREEN, lw=0.35, alpha=min(0.35, 600 / len(segments) + 0.05))
        )
    if indexes:
        spots, sizes = zip(*indexes, strict=True)
        axis.scatter(*zip(*spots, strict=True), s=[6 + 1.6 * size for size in sizes], color=ORANGE, lw=0.3, ec="white")


def examples(axis: Any, trained: Trained, places: Layout) -> list[Index]:
    """Label the largest correct index of each kind of key, at most four, without overlaps."""
    audit = trained.health.audit
    sound = [i for i in audit.indexes if i.scored and not i.wrong and not i.missing and i.id in places]
    chosen: list[Index] = []
    for group in GROUPS:
        of_kind = sorted((i for i in sound if i.group == group), key=lambda i: (-i.degree, i.id))
        chosen += of_kind[:1]
    chosen = chosen[:4]
    low, high = axis.get_ylim()
    heights = np.linspace(high - 0.04 * (high - low), low + 0.04 * (high - low), max(2, len(chosen)))
    left, right = axis.get_xlim()
    axis.set_xlim(left, right + ROOM * (right - left))
    for index, height in zip(sorted(chosen, key=lambda i: -places[i.id][1]), heights, strict=False):
        x, y = places[index.id]
        reached = [places[target] for target in trained.store[index.id].links if target in places]
        axis.scatter(*zip(*reached, strict=True), s=14, color=PURPLE, lw=0.3, ec="white", zorder=4)
        axis.annotate(
            textwrap.fill(index.text, 26),
            (x, y),
            xytext=(right + 0.02 * (right - left), height),
            fontsize=9,
            va="center",
            zorder=5,
            arrowprops={"arrowstyle": "-", "color": "#444444", "lw": 0.7},
        )
    return chosen
