"""The `hnsw` plugin: an approximate vector index in files.

A usearch HNSW graph proposes candidates, which are ranked by exact scores. It has each distinct text once and may be a
memory-mapped file, so edits do not change it: new vectors are in an exact index beside it, and removed ids are filtered
from its results. Scores are bit-identical to those of `ExactIndex`; the only difference is hits that the graph misses.

Files are found by the texts they contain, not by the store that wrote them. After up to a few thousand edits they are
still used, with the edits in memory; after more, new files are built from them. If files cannot be written, the index
is kept in memory.
"""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kbgym.canonical import atomic_dir, digest
from kbgym.errors import KbgymError, Missing
from kbgym.progress import ProgressCallback
from kbgym.search.cache import cache_folder
from kbgym.search.embed import CachedEmbedder, keys
from kbgym.search.index import ExactIndex, Hit, check_page, check_shape, page_of

Rows = NDArray[np.float32]

INSTALL = "pip install 'kbgym[scale]'"
# With a million vectors (benchmarks/scale.py, 384 candidates), recall@5 was 0.978 when built with 64 and 0.992 with
# 128, which takes 1.7 times as long to build.
CONNECTIVITY = 16
EXPANSION = 128
# With a million vectors, recall@5 was 0.992 with 384 candidates, 0.997 with 512, 0.999 with 1,024 in twice the time.
WIDTH = 512
DEEPEST = 1000  # results up to which the graph is searched; beyond that, all rows are scanned
FOLDER = "indexes-2"
GRAPH, KEYS = "graph.usearch", "keys.bin"
FEW = 4096  # texts that files may lack
_BATCH = 8192  # rows embedded and linked at a time


def installed() -> bool:
    return importlib.util.find_spec("usearch") is not None


def new_graph(dimensions: int) -> Any:
    """Return an empty graph. Raise `Missing` if the extra is not installed."""
    try:
        # Imported first, because it crashes if loaded after usearch (onnxruntime 1.31, usearch 2.26).
        import onnxruntime  # noqa: F401
        from usearch.index import Index
    except ImportError as error:
        raise Missing(f"the approximate index is not installed; run `{INSTALL}`.") from error
    # The search width equals the number of requested rows.
    return Index(
        ndim=dimensions,
        metric="ip",
        dtype="f32",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION,
        expansion_search=1,
    )


class ApproximateIndex:
    """A graph whose rows map to ids, and an exact index of vectors put later."""

    def __init__(self, dimensions: int, graph: Any = None, rows: Iterable[tuple[str, int]] = ()) -> None:
        """Create an index. Each id of `rows` has the vector of a row of the graph; several may share one."""
        self._dimensions = dimensions
        self._graph = new_graph(dimensions) if graph is None else graph
        self._rows = dict(rows)
        self._ids: dict[int, dict[str, None]] = {}
        for id, row in self._rows.items():
            self._ids.setdefault(row, {})[id] = None
        self._later = ExactIndex(dimensions)

    def __len__(self) -> int:
        return len(self._rows) + len(self._later)

    def __contains__(self, id: object) -> bool:
        return id in self._rows or id in self._later

    def vector(self, id: str) -> Rows:
        """Return a copy of the vector under an id. Raise `KeyError` if it is unknown."""
        if id in self._later:
            return self._later.vector(id)
        return np.array(self._graph.get(self._rows[id]), dtype=np.float32)

    def put(self, id: str, vector: ArrayLike) -> None:
        self.put_many([id], np.asarray(vector, dtype=np.float32)[None])

    def put_many(self, ids: Sequence[str], vectors: ArrayLike, own: bool = False) -> None:
        """Put all vectors or none; a wrong shape or a non-finite vector changes nothing."""
        self._later.put_many(ids, vectors, own)
        for id in ids:
            self._forget(id)

    def remove(self, id: str) -> None:
        if not self._forget(id):
            self._later.remove(id)

    def _forget(self, id: str) -> bool:
        row = self._rows.pop(id, None)
        if row is not None:
            del self._ids[row][id]
        return row is not None

    def search(self, vector: ArrayLike, offset: int, limit: int, exact: bool = False) -> list[Hit]:
        """Return a page; with `exact`, or beyond `DEEPEST`, by scanning all rows."""
        query: Rows = np.asarray(vector, dtype=np.float32)
        check_page(offset, limit)
        check_shape(query, self._dimensions)
        exact = exact or offset + limit > DEEPEST
        end = min(offset + limit, len(self))
        if offset >= end:
            return []
        hits = self._later.search(query, 0, end)
        width = len(self._graph) if exact else min(max(WIDTH, 2 * end), len(self._graph))
        while width and self._rows:
            found = self._proposed(query, width, exact)
            if len(found) >= min(end, len(self._rows)) or width == len(self._graph):
                hits += found
                break
            width = min(4 * width, len(self._graph))
        return page_of(hits, offset, limit)

    def _proposed(self, query: Rows, width: int, exact: bool) -> list[Hit]:
        """Return the ids of the nearest rows with their exact scores."""
        numbers = self._graph.search(query, width, threads=1, exact=exact).keys
        rows = [row for row in numbers.tolist() if self._ids.get(row)]
        if not rows:
            return []
        # Summed in the same order as in `ExactIndex`.
        vectors = np.asarray(self._graph.get(np.array(rows, dtype=np.uint64)), dtype=np.float32)
        scores = (vectors * query.astype(np.float64)).sum(axis=1).tolist()
        return [(id, score) for row, score in zip(rows, scores, strict=True) for id in self._ids[row]]


# -- files ------------------------------------------------------------------------------------------------------------


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
    rows = ((id, files.rows[name]) for id, name in zip(ids, names, strict=True) if name in files.rows)
    index = ApproximateIndex(dimensions, files.graph, rows)
    missing = [at for at, name in enumerate(names) if name not in files.rows]
    if missing:
        index.put_many([ids[at] for at in missing], embedder.embed([texts[at] for at in missing], tick))
    return index


def peek(texts: Sequence[str], name: str) -> Files | None:
    """Return the files that `open_index` would use unchanged, or None."""
    names = keys(name, texts)
    files = _best(_place(None, name), names, None)
    return files if files is not None and _serves(files, names) else None


def _place(cache: Path | None, embedder: str) -> Path:
    return (cache or cache_folder()) / FOLDER / digest(embedder.encode())[:12]


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
