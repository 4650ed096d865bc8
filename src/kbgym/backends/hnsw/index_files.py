"""The `hnsw` plugin, which opens or builds approximate indexes, stores them in files, and measures their recall.

Files are found by the texts they contain, not by the store that wrote them. After up to a few thousand edits they are
still used, with the edits in memory; after more, new files are built from them. If files cannot be written, the index
is kept in memory.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbgym.backends.hnsw.approximate import INSTALL, ApproximateIndex, installed, new_graph
from kbgym.canonical import atomic_dir, digest
from kbgym.errors import KbgymError
from kbgym.progress import ProgressCallback
from kbgym.search.cache import cache_folder, keys
from kbgym.search.embed import CachedEmbedder
from kbgym.search.factory import approximate_plugin

__all__ = ["INSTALL", "described", "installed", "open_index", "peek", "recall"]

FOLDER = "indexes-2"
GRAPH, KEYS = "graph.usearch", "keys.bin"
FEW = 4096  # texts that files may lack
DEPTHS = (5, 60)
_BATCH = 8192  # rows embedded and linked at a time
_STEP = 0.5  # length of the step from a text's unit vector to a query in `recall`


class Files(NamedTuple):
    """A graph and the row of each text in it, by cache key; `folder` is None if it could not be written."""

    folder: Path | None
    graph: Any
    rows: dict[bytes, int]


def open_index(
    ids: Sequence[str],
    texts: Sequence[str],
    embedder: CachedEmbedder,
    tick: ProgressCallback | None = None,
    cache: Path | None = None,
) -> ApproximateIndex:
    """Return an index of all texts, embedding those that are in no file."""
    dimensions, names = embedder.dimensions, keys(embedder.name, texts)
    if not ids:
        return ApproximateIndex(dimensions)
    place = _place(cache, embedder.name)
    files = _best(place, names, dimensions)
    if files is None or not _serves(files, names):
        files = _written(place, names, texts, embedder, files, tick)
    index = _over(files, ids, names, dimensions)
    missing = [at for at, name in enumerate(names) if name not in files.rows]
    if missing:
        index.put_many([ids[at] for at in missing], embedder.embed([texts[at] for at in missing], tick))
    return index


def peek(texts: Sequence[str], name: str, cache: Path | None = None) -> Files | None:
    """Return the files that `open_index` would use unchanged, or None."""
    names = keys(name, texts)
    files = _best(_place(cache, name), names, None)
    return files if files is not None and _serves(files, names) else None


def _place(cache: Path | None, embedder: str) -> Path:
    return (cache or cache_folder()) / FOLDER / digest(embedder.encode())[:12]


def _over(files: Files, ids: Sequence[str], names: Sequence[bytes], dimensions: int) -> ApproximateIndex:
    rows = ((id, files.rows[name]) for id, name in zip(ids, names, strict=True) if name in files.rows)
    return ApproximateIndex(dimensions, files.graph, rows)


def _best(place: Path, names: Sequence[bytes], dimensions: int | None) -> Files | None:
    """Return the files with the most texts, if at least half; delete files that cannot be opened."""
    wanted, best = set(names), None
    most = len(wanted) / 2
    for folder in sorted(place.glob("*/")):
        opened = _opened(folder, dimensions)
        if opened is not None and (shared := len(wanted.intersection(opened.rows))) >= most:
            best, most = opened, shared
    return best


def _opened(folder: Path, dimensions: int | None) -> Files | None:
    """Return the files of a folder; delete it if they are damaged."""
    try:
        names: list[bytes] = np.fromfile(folder / KEYS, dtype="V16").tolist()
        graph = new_graph(dimensions or 1)
        graph.view(str(folder / GRAPH))
        if len(graph) == len(names) > 0 and dimensions in (None, graph.ndim):
            return Files(folder, graph, {name: row for row, name in enumerate(names)})
    except (RuntimeError, OSError, ValueError):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    return None


def _serves(files: Files, names: Sequence[bytes]) -> bool:
    """Return True if few texts are missing from the files and most rows are used."""
    wanted = set(names)
    missing = sum(name not in files.rows for name in wanted)
    return missing <= max(FEW, len(wanted) // 50) and (len(wanted) - missing) * 2 >= len(files.rows)


def _written(
    place: Path,
    names: Sequence[bytes],
    texts: Sequence[str],
    embedder: CachedEmbedder,
    old: Files | None,
    tick: ProgressCallback | None,
) -> Files:
    """Build and write the graph of all texts, extending an old one if three quarters of it are used."""
    graph, rows = new_graph(embedder.dimensions), dict[bytes, int]()
    used = 0 if old is None else sum(name in old.rows for name in set(names))
    if old is not None and old.folder is not None and used * 4 >= len(old.rows) * 3:
        graph.load(str(old.folder / GRAPH))
        rows = dict(old.rows)
    new = {name: text for name, text in zip(names, texts, strict=True) if name not in rows}
    total, left = len(rows) + len(new), list(new.items())
    for at in range(0, len(left), _BATCH):
        some = left[at : at + _BATCH]
        if tick is not None:
            tick(len(rows), total, "indexing")
        numbers = np.arange(len(rows), len(rows) + len(some), dtype=np.uint64)
        graph.add(numbers, embedder.embed([text for _, text in some]))
        rows.update((name, len(rows)) for name, _ in some)
    folder = place / digest(b"".join(sorted(rows)))[:24]
    try:
        # Another process may have written the same texts in the meantime.
        if (opened := _opened(folder, embedder.dimensions)) is not None:
            return opened
        with atomic_dir(folder) as scratch:
            graph.save(str(scratch / GRAPH))
            (scratch / KEYS).write_bytes(b"".join(rows))
        graph.view(str(folder / GRAPH))
    except (OSError, RuntimeError, KbgymError) as error:
        warnings.warn(f"vectors cannot be kept in {place} ({error}); continuing in memory.", stacklevel=4)
        return Files(None, graph, rows)
    return Files(folder, graph, rows)


# -- measuring --------------------------------------------------------------------------------------------------------


def recall(index: ApproximateIndex, ids: Sequence[str], queries: int = 50) -> dict[int, float]:
    """Return recall@5 and recall@60 against an exact search, over a sample of queries; deterministic.

    The queries are slightly perturbed vectors of indexed texts, so that none is its own answer or needs embedding.
    """
    source = np.random.default_rng(0)
    found, wanted = dict.fromkeys(DEPTHS, 0), dict.fromkeys(DEPTHS, 0)
    for place in source.choice(len(ids), min(queries, len(ids)), replace=False).tolist():
        row = index.vector(ids[place])
        step: NDArray[np.float32] = source.standard_normal(len(row), dtype=np.float32)
        query = row + step * np.float32(_STEP / np.linalg.norm(step))
        query /= np.float32(np.linalg.norm(query))
        for depth in DEPTHS:
            truth = {id for id, _ in index.exact(query, 0, depth)}
            found[depth] += len(truth.intersection(id for id, _ in index.search(query, 0, depth)))
            wanted[depth] += len(truth)
    return {depth: found[depth] / wanted[depth] if wanted[depth] else 1.0 for depth in DEPTHS}


def described(ids: Sequence[str], texts: Sequence[str], embedder: str) -> dict[str, str | int | float]:
    """Describe the index of these texts without embedding any; with recall and size if its files exist."""
    if approximate_plugin(len(ids)) is None:
        return {"kind": "exact"}
    files = peek(texts, embedder)
    if files is None or files.folder is None:
        return {"kind": "approximate"}
    names = keys(embedder, texts)
    known = [id for id, name in zip(ids, names, strict=True) if name in files.rows]
    index = _over(files, ids, names, files.graph.ndim)
    measured = {f"recall@{depth}": round(share, 4) for depth, share in recall(index, known).items()}
    size = sum(path.stat().st_size for path in files.folder.iterdir())
    return {"kind": "approximate", "bytes": size, "not_in_files": len(ids) - len(known), **measured}
