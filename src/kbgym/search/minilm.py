"""The all-MiniLM-L6-v2 embedder on onnxruntime.

The graph ships with the package (`minilm.onnx`, built by scripts/build_minilm_graph.py); the weights are the official
float32 file, verified by hash and memory-mapped without copying. A text has bit-identical vectors alone and in any
batch: a batch holds texts of equal length, so nothing is padded, and runs in one thread. Other processor families may
round the last bit differently, so a trace records results and never embeds again. This module does not cache vectors.

The `-int8` variant rounds the same weights to integers at load (`minilm_int8.onnx`). It is faster and has different
vectors, which are independent of the batch too.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbgym import errors
from kbgym.search.models import INT8, MINILM, VOCABULARY, WEIGHTS, check
from kbgym.search.onnx import session_of
from kbgym.search.wordpiece import WordPiece

DIMENSIONS = 384
GRAPHS = {MINILM.name: Path(__file__).with_name("minilm.onnx"), INT8: Path(__file__).with_name("minilm_int8.onnx")}
_TOKENS_AT_ONCE = 192  # the fastest batch measured; a larger one exceeds a core's cache


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the float32 tensors of a safetensors file as views of its memory-mapped bytes."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        (size,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + size])
        tensors = {}
        for name, entry in header.items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                start, end = entry["data_offsets"]
                flat = np.frombuffer(data, np.dtype("<f4"), (end - start) // 4, 8 + size + start)
                tensors[name] = flat.reshape(entry["shape"])
        return tensors
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise errors.Damaged(f"{path} is not a safetensors file: {error}.") from error


class MiniLM:
    """The embedder. Files are opened at the first text, since a warm cache never needs them."""

    dimensions = DIMENSIONS

    def __init__(self, folder: Path, cache: Path, threads: int | None = None, name: str = MINILM.name) -> None:
        self.name = name
        self._folder, self._cache = folder, cache
        self._threads = threads or min(os.cpu_count() or 1, 4)
        self._lock = threading.Lock()
        self._parts: tuple[WordPiece, Callable[[NDArray[np.int64]], NDArray[np.float32]]] | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per text."""
        out = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        if not texts:
            return out
        tokenizer, run = self._load()
        encoded = [tokenizer.encode(text) for text in texts]

        def work(rows: list[int]) -> None:
            out[rows] = run(np.array([encoded[row] for row in rows], dtype=np.int64))

        batches = list(_batches([len(ids) for ids in encoded]))
        if len(batches) == 1 or self._threads == 1:
            for batch in batches:
                work(batch)
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(work, batches))
        return out

    def warm(self) -> None:
        """Open the files now, so that the first text does not wait."""
        self._load()[1](np.zeros((1, 2), dtype=np.int64))

    def _load(self) -> tuple[WordPiece, Callable[[NDArray[np.int64]], NDArray[np.float32]]]:
        with self._lock:
            if self._parts is None:
                check(MINILM, self._folder, self._cache)
                tokenizer = WordPiece(self._folder / VOCABULARY)
                weights = read_safetensors(self._folder / WEIGHTS)
                self._parts = tokenizer, _session(weights if self.name == MINILM.name else _rounded(weights), self.name)
            return self._parts


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield positions of equal length, at most `_TOKENS_AT_ONCE` tokens together, longest first to balance threads."""
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    for length in sorted(by_length, reverse=True):
        rows = by_length[length]
        size = max(1, _TOKENS_AT_ONCE // length)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


def _rounded(weights: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
    """Return the weights of the int8 graph: transposed matrices of integers with one scale per column."""
    made: dict[str, NDArray[Any]] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and name.startswith("encoder."):
            scale = made[f"{name}.scale"] = np.abs(weight).max(axis=1) / np.float32(64)
            made[f"{name}.int8"] = np.ascontiguousarray(np.rint(weight / scale[:, None]).astype(np.int8).T)
        else:
            made[name] = weight
    return made


def _session(weights: dict[str, NDArray[Any]], graph: str) -> Callable[[NDArray[np.int64]], NDArray[np.float32]]:
    import onnxruntime

    used = {name: array for name, array in weights.items() if not name.startswith("pooler.")}
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in used.items()}
    session = session_of(GRAPHS[graph].read_bytes(), values)

    def run(ids: NDArray[np.int64], keep: object = (used, values)) -> NDArray[np.float32]:
        # `keep` holds the mapped weights alive as long as the session reads them.
        (vectors,) = session.run(["vectors"], {"ids": ids})
        return np.asarray(vectors, dtype=np.float32)

    return run
