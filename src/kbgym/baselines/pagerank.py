"""Personalized PageRank from every document over the graph of documents and the entities they name.

Used to order a document's neighbours, nearest in the graph first. It knows numbers, not documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kbgym.errors import Missing

DAMPING = 0.5  # HippoRAG's: a walk starts again every second step, so it stays near where it began
STEPS = 12  # what is left of a walk after this many steps is less than 0.0003
_AT_ONCE = 256


def ranked(graph: Sequence[Sequence[int]], entities: int, neighbours: Sequence[Sequence[int]]) -> list[list[int]]:
    """Each document's neighbours by falling score, ties in the order given; `graph[d]` are the entities d names."""
    try:
        from scipy import sparse
    except ImportError as error:
        raise Missing("ordering links by PageRank needs scipy; run: pip install 'kbgym[report]'.") from error
    documents = len(graph)
    rows = np.repeat(np.arange(documents), [len(some) for some in graph])
    columns = np.fromiter((entity for some in graph for entity in some), dtype=np.int64, count=len(rows))
    names = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(documents, entities))
    from_documents, from_entities = _spread(names.T.tocsr()), _spread(names)
    found: list[list[int]] = []
    for start in range(0, documents, _AT_ONCE):
        seeds = range(start, min(documents, start + _AT_ONCE))
        restart = np.zeros((documents, len(seeds)))
        restart[seeds, range(len(seeds))] = 1 - DAMPING
        at_documents, at_entities = restart / (1 - DAMPING), np.zeros((entities, len(seeds)))
        for _ in range(STEPS):
            at_documents, at_entities = (
                DAMPING * (from_entities @ at_entities) + restart,
                DAMPING * (from_documents @ at_documents),
            )
        for seed in seeds:
            # Rounded, so that the last bits of a sum, which differ between machines, decide no order.
            scores = np.round(at_documents[:, seed - start], 9)
            others = neighbours[seed]
            found.append([others[at] for at in np.argsort(-scores[list(others)], kind="stable")] if others else [])
    return found


def _spread(edges: Any) -> Any:
    """A matrix whose columns are each shared out equally over their rows."""
    totals = np.asarray(edges.sum(axis=0)).ravel()
    return edges.multiply(1 / np.maximum(totals, 1)).tocsr()
