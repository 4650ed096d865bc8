"""RAPTOR style: near documents are grouped and summarised, the summaries are grouped and summarised, up to a few roots.

Each summary is a document that links down to what it sums up, and is searched like any other. RAPTOR clusters softly
with a Gaussian mixture on reduced vectors and has a model write; here a document has one parent, clusters come from
two-means on the vectors the store is searched with, a summary stands where the mean of its documents does, and a rule
writes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbgym.baselines.arm import Built, flat_store
from kbgym.baselines.clusters import Vectors, clusters
from kbgym.baselines.entities import mentions
from kbgym.baselines.summary import central, sentence
from kbgym.errors import BadInput
from kbgym.search.embed import Embedder
from kbgym.worlds.world import Document

SIZE = 10


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
            id = store.add(sentence(central(read[place].entities for place in under), len(under)))
            store.link(id, [id for id, _ in nodes])
            above.append((id, under))
        level = above
        levels.append(len(level))
    return Built(store, notes={"levels": levels})


def _unit(vector: Vectors) -> Vectors:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
