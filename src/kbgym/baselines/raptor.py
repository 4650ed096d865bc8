"""RAPTOR style: similar documents are clustered and summarised, then the summaries, recursively up to a few roots.

Each summary is a document that links to the documents it summarises and is searched like any other. RAPTOR uses soft
clustering with a Gaussian mixture on reduced vectors, and a model writes the summaries. Here a document has one parent,
clusters come from two-means on the search vectors of the store, the vector of a summary is the mean of its documents,
and a rule writes its text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbgym.baselines.arm import Built, flat_store
from kbgym.baselines.entities import central, mentions, summary
from kbgym.errors import BadInput
from kbgym.search.embed import Embedder
from kbgym.worlds.world import Document

SIZE = 10
Vectors = NDArray[np.float32]
_ROUNDS = 12


def build(documents: Sequence[Document], embedder: Embedder, size: int = SIZE) -> Built:
    """Build the tree bottom-up until a level has no more than `size` nodes."""
    if size < 2:
        raise BadInput(f"a summary has at least two documents under it, not {size}.")
    read = mentions([document.text for document in documents])
    store = flat_store(documents)
    vectors = embedder.embed([document.text for document in documents])
    level = [(document.id, [place]) for place, document in enumerate(documents)]
    levels: list[int] = []
    while len(level) > size:
        means = np.stack([_unit(vectors[under].mean(axis=0)) for _, under in level])
        above: list[tuple[str, list[int]]] = []
        for group in clusters(means, size):
            nodes = [level[place] for place in group]
            under = [place for _, places in nodes for place in places]
            id = store.add(summary(central(read[place].entities for place in under), len(under)))
            store.link(id, [id for id, _ in nodes])
            above.append((id, under))
        level = above
        levels.append(len(level))
    return Built(store, notes={"levels": levels})


def _unit(vector: Vectors) -> Vectors:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)


def clusters(vectors: Vectors, size: int) -> list[list[int]]:
    """Split rows into groups of at most `size` by repeated two-means, without randomness; rows have unit length."""
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
    """Return a mask of the left half: split along the principal axis, then refine by two-means."""
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
    if left.all() or not left.any():  # all rows are equal, so any split is as good
        left = np.arange(len(rows)) < len(rows) // 2
    return left


def _square(rows: Vectors) -> float:
    mean = rows.mean(axis=0)
    return float(mean @ mean)
