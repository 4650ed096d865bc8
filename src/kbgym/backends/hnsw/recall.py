"""How much of the true answer an approximate index gives, measured on the texts it holds.

The queries are vectors of a sample of its own texts, each moved a little, so that none of them is the answer to itself
and none costs an embedding; the truth is an exact pass over all vectors. The same index gives the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbgym.backends.hnsw.approximate import ApproximateIndex
from kbgym.backends.hnsw.mmap_vectors import match, text_keys
from kbgym.search.choice import Kind, kind_for

DEPTHS = (5, 60)
_MOVED = 0.5  # how long the step away from a text is, its own vector being 1 long


def recall(index: ApproximateIndex, ids: Sequence[str], queries: int = 50) -> dict[int, float]:
    """The share of the true first 5 and first 60 results that a search finds, over a sample of queries."""
    source = np.random.default_rng(0)
    found = dict.fromkeys(DEPTHS, 0)
    wanted = dict.fromkeys(DEPTHS, 0)
    for place in source.choice(len(ids), min(queries, len(ids)), replace=False).tolist():
        row = index.vector(ids[place])
        step = source.standard_normal(len(row), dtype=np.float32)
        query = row + step * np.float32(_MOVED / np.linalg.norm(step))
        query /= np.float32(np.linalg.norm(query))
        for depth in DEPTHS:
            truth = {id for id, _ in index.exact(query, 0, depth)}
            found[depth] += len(truth.intersection(id for id, _ in index.search(query, 0, depth)))
            wanted[depth] += len(truth)
    return {depth: found[depth] / wanted[depth] if wanted[depth] else 1.0 for depth in DEPTHS}


def described(ids: Sequence[str], texts: Sequence[str], embedder: str) -> dict[str, Kind | int | float]:
    """The index these texts are searched with, without embedding any; its recall and size where its files are there."""
    kind = kind_for(len(ids))
    if kind == "exact":
        return {"kind": kind}
    from kbgym.backends.hnsw.index_files import peek

    held = peek(texts, embedder)
    if held is None:
        return {"kind": kind}
    places = match(held.keys, text_keys(embedder, texts))
    there = np.flatnonzero(places >= 0)
    known = [ids[at] for at in there.tolist()]
    index = ApproximateIndex(held.about.dimensions, held, known, places[there])
    measured = {f"recall@{depth}": round(share, 4) for depth, share in recall(index, known).items()}
    return {"kind": kind, "bytes": held.size, "not_in_files": len(ids) - len(known), **measured}
