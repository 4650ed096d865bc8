"""BERT models exported to ONNX: embedders and cross-encoders.

Texts run one at a time, because the rounding of a quantised model depends on the batch.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from kbgym.canonical import decode
from kbgym.errors import BadInput
from kbgym.search.wordpiece import WordPiece

_LONGEST = 512  # tokens
_THREADS = min(os.cpu_count() or 1, 4)
Tokens = Sequence[int]


def pooling_of(folder: Path) -> str:
    """Return the pooling mode of a sentence-transformers folder."""
    file = folder / "1_Pooling" / "config.json"
    try:
        return "cls" if decode(file.read_bytes(), dict[str, Any]).get("pooling_mode_cls_token") else "mean"
    except (OSError, msgspec.DecodeError):
        return "mean"


def session_of(model: str | bytes, initial: dict[str, Any] | None = None) -> Any:
    """Open a model in one thread, since sums over several differ in the last bits; `initial` are external weights."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if initial:
        options.add_external_initializers(list(initial), list(initial.values()))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class OnnxModel:
    """A tokenizer and an inference session, opened at the first text."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._opened: tuple[WordPiece, Any, list[str]] | None = None

    def encode(self, text: str) -> list[int]:
        return self._load()[0].encode(text)

    def run(self, ids: Tokens, types: Tokens) -> NDArray[np.float32]:
        """Return the first output for one text."""
        _, session, names = self._load()
        values = {
            "input_ids": np.array([ids], dtype=np.int64),
            "attention_mask": np.ones((1, len(ids)), dtype=np.int64),
            "token_type_ids": np.array([types], dtype=np.int64),
        }
        out = session.run(None, {name: values[name] for name in names})[0][0]
        return np.asarray(out, dtype=np.float32)

    def map(self, work: Callable[[str], Any], texts: Sequence[str]) -> list[Any]:
        if len(texts) < 2:
            return [work(text) for text in texts]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(work, texts))

    def _load(self) -> tuple[WordPiece, Any, list[str]]:
        with self._lock:
            if self._opened is None:
                tokenizer = WordPiece(self._folder / "vocab.txt", _LONGEST)
                try:
                    session = session_of(str(self._folder / "model.onnx"))
                except Exception as error:  # onnxruntime has no common exception class
                    raise BadInput(f"{self._folder} has no usable model: {error}.") from error
                self._opened = tokenizer, session, [one.name for one in session.get_inputs()]
            return self._opened


class OnnxEmbedder:
    """An embedder in a folder with `model.onnx` and `vocab.txt`."""

    def __init__(self, folder: Path, name: str, pooling: str = "mean", prefix: str = "") -> None:
        self.name, self.prefix, self._pooling = name, prefix, pooling
        self._model = OnnxModel(folder)
        self._dimensions = 0

    @property
    def dimensions(self) -> int:
        self._dimensions = self._dimensions or self._vector("a").shape[0]
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = self._model.map(self._vector, texts)
        return np.stack(rows) if rows else np.empty((0, self.dimensions), dtype=np.float32)

    def warm(self) -> None:
        self._vector("a")

    def _vector(self, text: str) -> NDArray[np.float32]:
        ids = self._model.encode(text)
        states = self._model.run(ids, [0] * len(ids))
        if states.ndim > 1:
            states = states[0] if self._pooling == "cls" else states.mean(axis=0)
        unit: NDArray[np.float32] = states / np.float32(np.linalg.norm(states.astype(np.float64)))
        return unit


class CrossEncoder:
    """A reranker in a folder with `model.onnx` and `vocab.txt`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._model = OnnxModel(folder)

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance score of each text for a query."""
        asked = self._model.encode(query)

        def score(text: str) -> float:
            ids = [*asked, *self._model.encode(text)[1:]][:_LONGEST]
            types = [0] * min(len(asked), len(ids)) + [1] * (len(ids) - len(asked))
            return float(self._model.run(ids, types).ravel()[0])

        return self._model.map(score, texts)
