"""The `hnsw` plugin: open or build an approximate index, keep it in files, and measure its recall.

Files are found by the texts they hold, not by the store that wrote them: after a few thousand edits they still serve,
with the edits in memory on top; after more, larger files are grown from them. If they cannot be written, the index is
built in memory.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from kbgym.backends.hnsw import graph
from kbgym.backends.hnsw import mmap_vectors as mapped
from kbgym.backends.hnsw.approximate import FRESH, ApproximateIndex
from kbgym.backends.hnsw.graph import INSTALL, installed
from kbgym.backends.hnsw.mmap_vectors import Keys, Mapped, Places, Rows
from kbgym.errors import Missing
from kbgym.progress import ProgressCallback
from kbgym.search.cache import cache_folder
from kbgym.search.embed import CachedEmbedder
from kbgym.search.factory import IndexKind, approximate_plugin

DEPTHS = (5, 60)
_BATCH = 8192  # rows written at a time
_STEP = 0.5  # length of the step from a text's unit vector to a query in `recall`


def open_index(
    ids: Sequence[str],
    texts: Sequence[str],
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    cache: Path | None = None,
) -> ApproximateIndex:
    """Return an index of all texts; those that are in no file are embedded."""
    if not ids:
        return ApproximateIndex(embedder.dimensions)
    folder = cache or cache_folder()
    names = mapped.text_keys(embedder.name, texts)
    held = _found(folder, embedder.name, embedder.dimensions, names)
    places = None if held is None else mapped.match(held.keys, names)
    if held is None or places is None or not _serves(held, places):
        try:
            held = _written(folder, names, texts, embedder, held, places, tick)
            places = mapped.match(held.keys, names)
        except OSError as error:
            warnings.warn(f"vectors cannot be kept in {folder} ({error}); going on in memory.", stacklevel=3)
    return _laid_over(held, places, ids, texts, embedder, tick)


def peek(texts: Sequence[str], name: str, cache: Path | None = None) -> Mapped | None:
    """Return the files that `open_index` would use unchanged, or None."""
    names = mapped.text_keys(name, texts)
    held = _found(cache or cache_folder(), name, None, names)
    return held if held is not None and _serves(held, mapped.match(held.keys, names)) else None


def _found(folder: Path, name: str, dimensions: int | None, names: Keys) -> Mapped | None:
    """Return the best matching set; delete sets whose graph cannot be opened."""
    while (held := mapped.find(folder, name, dimensions, names)) is not None:
        if graph.readable(held.folder, held.about.dimensions):
            return held
        mapped.discard(held)
    return None


def _serves(held: Mapped, places: Places) -> bool:
    """Return True if few texts are missing from the files and most rows are used."""
    missing = int(np.count_nonzero(places < 0))
    return missing <= max(FRESH, len(places) // 50) and (len(places) - missing) * 2 >= held.about.count


def _written(
    folder: Path,
    names: Keys,
    texts: Sequence[str],
    embedder: CachedEmbedder,
    held: Mapped | None,
    places: Places | None,
    tick: ProgressCallback | None,
) -> Mapped:
    """Write files with the rows of `held` and the missing texts; without the old rows if many of them are unused."""
    if not installed():
        raise Missing(f"the approximate index is not installed; run `{INSTALL}`.")
    if held is not None and places is not None and np.count_nonzero(places >= 0) * 4 < held.about.count * 3:
        held = None
    if held is None or places is None:
        wanted, known, start = np.arange(len(texts)), names[:0], None
        rows: Iterator[Rows] = iter(())
    else:
        wanted, known, start = np.flatnonzero(places < 0), held.keys, held.folder
        rows = (held.rows[at : at + _BATCH] for at in range(0, len(held.rows), _BATCH))
    every = np.concatenate([known, names[wanted]])
    told = None if tick is None else lambda done: tick(done, len(every), "linking")
    return mapped.write(
        folder,
        embedder.name,
        embedder.dimensions,
        every,
        itertools.chain(rows, _embedded(wanted, texts, embedder, tick)),
        partial(graph.link, start=start, told=told),
    )


def _embedded(
    wanted: Places, texts: Sequence[str], embedder: CachedEmbedder, tick: ProgressCallback | None
) -> Iterator[Rows]:
    for at in range(0, len(wanted), _BATCH):
        if tick is not None:
            tick(at, len(wanted), "embedding")
        yield embedder.embed([texts[place] for place in wanted[at : at + _BATCH].tolist()])


def _laid_over(
    held: Mapped | None,
    places: Places | None,
    ids: Sequence[str],
    texts: Sequence[str],
    embedder: CachedEmbedder,
    tick: ProgressCallback | None,
) -> ApproximateIndex:
    if held is None or places is None:
        index, missing = ApproximateIndex(embedder.dimensions), np.arange(len(ids))
    else:
        found = np.flatnonzero(places >= 0)
        known = ids if len(found) == len(ids) else [ids[at] for at in found.tolist()]
        index = ApproximateIndex(embedder.dimensions, held, known, places[found])
        missing = np.flatnonzero(places < 0)
    for at, rows in zip(range(0, len(missing), _BATCH), _embedded(missing, texts, embedder, tick), strict=True):
        index.put_many([ids[place] for place in missing[at : at + _BATCH].tolist()], rows)
    return index


# -- measuring --------------------------------------------------------------------------------------------------------


def recall(index: ApproximateIndex, ids: Sequence[str], queries: int = 50) -> dict[int, float]:
    """Return recall@5 and recall@60 against an exact search, over a sample of queries; deterministic.

    The queries are vectors of indexed texts, each moved a little: none is its own answer and none needs embedding.
    """
    source = np.random.default_rng(0)
    found = dict.fromkeys(DEPTHS, 0)
    wanted = dict.fromkeys(DEPTHS, 0)
    for place in source.choice(len(ids), min(queries, len(ids)), replace=False).tolist():
        row = index.vector(ids[place])
        step = source.standard_normal(len(row), dtype=np.float32)
        query = row + step * np.float32(_STEP / np.linalg.norm(step))
        query /= np.float32(np.linalg.norm(query))
        for depth in DEPTHS:
            truth = {id for id, _ in index.exact(query, 0, depth)}
            found[depth] += len(truth.intersection(id for id, _ in index.search(query, 0, depth)))
            wanted[depth] += len(truth)
    return {depth: found[depth] / wanted[depth] if wanted[depth] else 1.0 for depth in DEPTHS}


def described(ids: Sequence[str], texts: Sequence[str], embedder: str) -> dict[str, IndexKind | int | float]:
    """Describe the index of these texts without embedding any; with recall and size if its files exist."""
    if approximate_plugin(len(ids)) is None:
        return {"kind": "exact"}
    held = peek(texts, embedder)
    if held is None:
        return {"kind": "approximate"}
    places = mapped.match(held.keys, mapped.text_keys(embedder, texts))
    stored = np.flatnonzero(places >= 0)
    known = [ids[at] for at in stored.tolist()]
    index = ApproximateIndex(held.about.dimensions, held, known, places[stored])
    measured = {f"recall@{depth}": round(share, 4) for depth, share in recall(index, known).items()}
    return {"kind": "approximate", "bytes": held.size, "not_in_files": len(ids) - len(known), **measured}
