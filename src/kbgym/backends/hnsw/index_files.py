"""The approximate index of very many texts, opened from the files of an earlier time or built and kept for the next.

Files are found by what texts they hold, not by which store wrote them: after a few thousand edits the same files still
serve, with the edits in memory on top; after more, larger files are grown from them. Without a disk that takes them the
index is built in memory. It knows ids and texts, and nothing of documents.
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
from kbgym.backends.hnsw.mmap_vectors import Keys, Mapped, Places, Rows
from kbgym.errors import Missing
from kbgym.progress import ProgressCallback
from kbgym.search.cache import cache_folder
from kbgym.search.embed import CachedEmbedder

_AT_ONCE = 8192  # rows written at a time


def open_index(
    ids: Sequence[str],
    texts: Sequence[str],
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    cache: Path | None = None,
) -> ApproximateIndex:
    """An index of all texts; what is not in files yet is embedded."""
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
    """The files `open_index` would use as they are, if there are any."""
    names = mapped.text_keys(name, texts)
    held = _found(cache or cache_folder(), name, None, names)
    return held if held is not None and _serves(held, mapped.match(held.keys, names)) else None


def _found(folder: Path, name: str, dimensions: int | None, names: Keys) -> Mapped | None:
    """The set that fits best; one whose graph cannot be opened is of no use to anybody, and goes."""
    while (held := mapped.find(folder, name, dimensions, names)) is not None:
        if graph.readable(held.folder, held.about.dimensions):
            return held
        mapped.discard(held)
    return None


def _serves(held: Mapped, places: Places) -> bool:
    """Whether files are good enough: little is missing from them, and most of them is used."""
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
    """New files: the old ones and what they miss, or everything anew where most of the old is not wanted any more."""
    if not graph.installed():
        raise Missing(f"the approximate index is not installed; run `{graph.INSTALL}`.")
    if held is not None and places is not None and np.count_nonzero(places >= 0) * 4 < held.about.count * 3:
        held = None
    if held is None or places is None:
        wanted, known, start = np.arange(len(texts)), names[:0], None
        rows: Iterator[Rows] = iter(())
    else:
        wanted, known, start = np.flatnonzero(places < 0), held.keys, held.folder
        rows = (held.rows[at : at + _AT_ONCE] for at in range(0, len(held.rows), _AT_ONCE))
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
    for at in range(0, len(wanted), _AT_ONCE):
        if tick is not None:
            tick(at, len(wanted), "embedding")
        yield embedder.embed([texts[place] for place in wanted[at : at + _AT_ONCE].tolist()])


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
    for at, rows in zip(range(0, len(missing), _AT_ONCE), _embedded(missing, texts, embedder, tick), strict=True):
        index.put_many([ids[place] for place in missing[at : at + _AT_ONCE].tolist()], rows)
    return index
