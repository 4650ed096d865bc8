"""GGUF as far as the small model needs it: read a model's weights and vocabulary, write an adapter.

Tensors come in the layout of the file, as float32 arrays of shape (out, in). Known are F32, F16, Q8_0 and Q4_1.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_ALIGNED = 32


class Model:
    """What a model file says of itself, and its tensors by name."""

    def __init__(self, path: Path) -> None:
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        self._at = 4
        if bytes(self._data[:4]) != b"GGUF" or self._scalar("I") != 3:
            raise ValueError(f"{path} is no GGUF file of version 3")
        tensors, values = self._scalar("Q"), self._scalar("Q")
        self.about: dict[str, Any] = {}
        for _ in range(values):
            name = self._text()
            self.about[name] = self._value(self._scalar("I"))
        self._places = {}
        for _ in range(tensors):
            name = self._text()
            shape = [self._scalar("Q") for _ in range(self._scalar("I"))][::-1]
            self._places[name] = (shape, self._scalar("I"), self._scalar("Q"))
        self._start = -(-self._at // _ALIGNED) * _ALIGNED

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def tensor(self, name: str) -> np.ndarray:
        shape, kind, offset = self._places[name]
        count, begin = int(np.prod(shape)), self._start + offset
        size = {F32: count * 4, F16: count * 2, Q4_1: count // 32 * 20, Q8_0: count // 32 * 34}[kind]
        data = self._data[begin : begin + size]
        if kind in (F32, F16):
            return data.view(np.float32 if kind == F32 else np.float16).astype(np.float32).reshape(shape)
        blocks = data.reshape(count // 32, -1)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        if kind == Q8_0:
            return (scale * blocks[:, 2:].view(np.int8)).reshape(shape)
        least = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
        nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
        return (scale * nibbles + least).reshape(shape)

    def _scalar(self, code: str) -> Any:
        size = struct.calcsize(f"<{code}")
        self._at += size
        return struct.unpack(f"<{code}", self._data[self._at - size : self._at].tobytes())[0]

    def _text(self) -> str:
        size = self._scalar("Q")
        self._at += size
        return self._data[self._at - size : self._at].tobytes().decode("utf-8", "replace")

    def _value(self, kind: int) -> Any:
        if kind == 8:
            return self._text()
        if kind == 9:
            of, count = self._scalar("I"), self._scalar("Q")
            return [self._value(of) for _ in range(count)]
        return self._scalar(_SCALARS[kind])


def write_adapter(path: Path, alpha: float, pairs: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    """A low-rank adapter as llama.cpp loads it: for each matrix A (rank, in) as Q8_0 and B (out, rank) as F16."""
    texts = {"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora"}
    head = b"".join(_text(name) + struct.pack("<I", 8) + _text(value) for name, value in texts.items())
    head += _text("adapter.lora.alpha") + struct.pack("<If", 6, alpha)
    listed, body = b"", b""
    for name, (a, b) in pairs.items():
        for suffix, matrix, kind in ((".lora_a", a, Q8_0), (".lora_b", b, F16)):
            listed += _text(name + suffix) + struct.pack("<IQQIQ", 2, *matrix.shape[::-1], kind, len(body))
            data = _q8(matrix) if kind == Q8_0 else matrix.astype(np.float16).tobytes()
            body += data + b"\0" * (-len(data) % _ALIGNED)
    front = b"GGUF" + struct.pack("<IQQ", 3, 2 * len(pairs), len(texts) + 1) + head + listed
    path.write_bytes(front + b"\0" * (-len(front) % _ALIGNED) + body)


def q8(matrix: np.ndarray) -> np.ndarray:
    """A matrix as it is after it was written as Q8_0 and read again."""
    blocks = np.frombuffer(_q8(matrix), dtype=np.uint8).reshape(-1, 34)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    return (scale * blocks[:, 2:].view(np.int8)).reshape(matrix.shape)


def _q8(matrix: np.ndarray) -> bytes:
    blocks = matrix.astype(np.float32).reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127
    whole = np.round(blocks / np.where(scale == 0, 1, scale)).astype(np.int8)
    return np.concatenate([scale.astype(np.float16).view(np.uint8), whole.view(np.uint8)], axis=1).tobytes()


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def tokenizer(about: dict[str, Any]) -> Any:
    """The model's own tokenizer, out of its file."""
    tokens = about["tokenizer.ggml.tokens"]
    marks = [token for token, kind in zip(tokens, about["tokenizer.ggml.token_type"], strict=True) if kind == 3]
    return made_of({token: number for number, token in enumerate(tokens)}, about["tokenizer.ggml.merges"], marks)


def made_of(vocabulary: dict[str, int], merges: list[str], marks: list[str]) -> Any:
    """Bytes merged in pairs, each digit alone, marks such as <|im_end|> whole."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    pairs = [tuple(pair.split(" ")) for pair in merges]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    digits, words = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer, made.decoder = pre_tokenizers.Sequence([digits, words]), decoders.ByteLevel()
    made.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    return made
