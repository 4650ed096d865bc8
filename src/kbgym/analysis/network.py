"""The network map: every document placed by t-SNE of its vector, the links drawn over it, at three points of training.

One layout, computed once on the final store and kept in the run folder, serves all panels: a document holds its place
and only the structure over it changes. t-SNE keeps neighbourhoods, not distances. Needs scikit-learn and matplotlib.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kbgym.analysis.audit import Index
from kbgym.analysis.figures import BLUE, GREEN, ORANGE, PURPLE, as_png, plotting
from kbgym.analysis.results import Trained
from kbgym.canonical import digest_of, encode, read_value
from kbgym.errors import Missing
from kbgym.search.embed import Embedder
from kbgym.store import Store
from kbgym.worlds.truth import GROUPS

FILE = "network.json"
ROOM = 0.5  # of a panel's width, for the names in the last one
Layout = Mapping[str, tuple[float, float]]


class _Kept(msgspec.Struct, frozen=True):
    """A layout on file, and which store it was worked out for."""

    store: str
    places: dict[str, tuple[float, float]]


def layout(trained: Trained, embedder: Embedder) -> Layout:
    """Where each document of the last store lies; from the run folder if it was worked out for this very store."""
    store = trained.store
    key = digest_of([store.fingerprint, embedder.name])
    file = Path(trained.where) / FILE
    if file.exists():
        kept = read_value(file, _Kept)
        if kept.store == key:
            return kept.places
    try:
        from sklearn.decomposition import PCA
        from sklearn.manifold import TSNE
    except ImportError:
        raise Missing("the network map needs scikit-learn: install kbgym with its `report` extra.") from None
    records = list(store)
    vectors = embedder.embed([record.text for record in records])
    if len(records) > 60:
        vectors = PCA(min(40, *vectors.shape), random_state=0).fit_transform(vectors)
    near = min(30.0, max(2.0, (len(records) - 1) / 3))
    placed = TSNE(2, perplexity=near, init="pca", max_iter=500, random_state=0).fit_transform(np.asarray(vectors))
    places = {
        record.id: (round(float(x), 3), round(float(y), 3)) for record, (x, y) in zip(records, placed, strict=True)
    }
    file.write_bytes(encode({"store": key, "places": places}))
    return places


def panels(trained: Trained, places: Layout) -> bytes:
    """The store at the beginning, after the first epoch and at the end, four sound indexes named in the last."""
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
    """Name one sound index of each kind of key, four at most, where its links are all right; labels keep apart."""
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
