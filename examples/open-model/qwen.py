"""Qwen2 in PyTorch, read from a GGUF file: weights, tokenizer, and one forward step over many texts at once.

A step takes the next tokens of several rows, packed without padding, so that one row may read a long prompt while
others write a token. Every row keeps keys and values of all its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gguf import GGUFReader, dequantize
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


class Qwen:
    """The weights of a model, with the adapter folded in if there is one."""

    def __init__(self, file: Path, adapter: Path | None = None, device: str = "cpu") -> None:
        reader = GGUFReader(file)
        about = {name: field.contents() for name, field in reader.fields.items() if name.startswith("qwen2.")}
        self.layers: int = about["qwen2.block_count"]
        self.heads: int = about["qwen2.attention.head_count"]
        self.pairs: int = about["qwen2.attention.head_count_kv"]
        self.width: int = about["qwen2.embedding_length"] // self.heads
        self.epsilon: float = about["qwen2.attention.layer_norm_rms_epsilon"]
        self.base: float = about["qwen2.rope.freq_base"]
        self.device = torch.device(device)
        self.tokenizer = _tokenizer(reader)
        self.weights: dict[str, torch.Tensor] = {}
        self.adapters: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}  # low-rank pairs that are being taught
        for tensor in reader.tensors:
            values = torch.from_numpy(np.array(dequantize(tensor.data, tensor.tensor_type)))
            self.weights[tensor.name] = values.to(self.device, torch.bfloat16)
        if adapter is not None:
            self.fold(torch.load(adapter, map_location=self.device))

    def fold(self, adapter: dict[str, torch.Tensor]) -> None:
        """Add the product of each pair of low-rank matrices to its weight."""
        for name in {name.rpartition(".")[0] for name in adapter}:
            change = adapter[f"{name}.b"].float() @ adapter[f"{name}.a"].float()
            self.weights[f"{name}.weight"] = (self.weights[f"{name}.weight"].float() + change).to(torch.bfloat16)

    def of(self, layer: int, name: str) -> torch.Tensor:
        return self.weights[f"blk.{layer}.{name}.weight"]

    def times(self, layer: int, name: str, x: torch.Tensor) -> torch.Tensor:
        """Return the product with a matrix, with its bias and its adapter if it has them."""
        place = f"blk.{layer}.{name}"
        made = F.linear(x, self.weights[f"{place}.weight"], self.weights.get(f"{place}.bias"))
        if place not in self.adapters:
            return made
        a, b = self.adapters[place]
        return made + F.linear(F.linear(x.float(), a), b).to(x.dtype)

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, weight.shape, weight, self.epsilon)

    def turned(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return heads (tokens, heads, width) with rotary positions."""
        powers = torch.arange(0, self.width, 2, device=x.device) / self.width
        angles = (places[:, None].float() / self.base**powers).repeat(1, 2)[:, None]
        first, second = x.chunk(2, -1)
        other = torch.cat((-second, first), -1)
        return (x * angles.cos() + other * angles.sin()).to(x.dtype)

    def heads_of(self, layer: int, x: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return queries, keys and values of the tokens of a layer."""
        q, k, v = (self.times(layer, f"attn_{one}", x) for one in "qkv")
        q, k, v = (one.view(len(x), -1, self.width) for one in (q, k, v))
        return self.turned(q, places), self.turned(k, places), v

    def layer(self, layer: int, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Return the output of a layer, given what its heads saw."""
        x = x + self.times(layer, "attn_output", seen)
        h = self.norm(x, self.of(layer, "ffn_norm"))
        gate, up = self.times(layer, "ffn_gate", h), self.times(layer, "ffn_up", h)
        return x + self.times(layer, "ffn_down", F.silu(gate) * up)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return F.linear(self.norm(hidden, self.weights["output_norm.weight"]), self.weights["output.weight"]).float()


class Rows:
    """The texts that a model reads and writes together: their tokens so far, with keys and values."""

    def __init__(self, model: Qwen, count: int, length: int) -> None:
        self.model, self.length = model, length
        shape = (model.layers, count, model.pairs, length, model.width)
        self.keys, self.values = (torch.zeros(shape, dtype=torch.bfloat16, device=model.device) for _ in range(2))
        self.known: list[list[int]] = [[] for _ in range(count)]

    def begin(self, row: int, tokens: Sequence[int]) -> int:
        """Keep, or copy from another row, the longest common beginning with `tokens`, and return its length."""
        shared = [common_length(known, tokens) for known in self.known]
        best = max(range(len(shared)), key=lambda one: (shared[one], one == row))
        keep = min(shared[best], len(tokens) - 1)
        if best != row:
            for kept in (self.keys, self.values):
                kept[:, row, :, :keep] = kept[:, best, :, :keep]
        self.known[row] = list(tokens[:keep])
        return keep

    @torch.no_grad()
    def step(self, new: dict[int, list[int]]) -> torch.Tensor:
        """Read new tokens of some rows and return the logits of what follows each row's last one."""
        model, device = self.model, self.model.device
        starts = [len(self.known[row]) for row in new]
        sizes = [len(tokens) for tokens in new.values()]
        for row, tokens in new.items():
            self.known[row] += tokens
        flat = torch.tensor([token for tokens in new.values() for token in tokens], device=device)
        places = torch.cat([torch.arange(start, start + n) for start, n in zip(starts, sizes, strict=True)]).to(device)
        rows = torch.repeat_interleave(torch.tensor(list(new)), torch.tensor(sizes)).to(device)
        x = model.weights["token_embd.weight"][flat]
        for layer in range(model.layers):
            h = model.norm(x, model.of(layer, "attn_norm"))
            q, k, v = model.heads_of(layer, h, places)
            self.keys[layer, rows, :, places] = k
            self.values[layer, rows, :, places] = v
            seen = [
                self._seen(layer, row, start, asked)
                for row, start, asked in zip(new, starts, q.split(sizes), strict=True)
            ]
            x = model.layer(layer, x, torch.cat(seen))
        return model.logits(x[torch.tensor(sizes, device=device).cumsum(0) - 1])

    def _seen(self, layer: int, row: int, start: int, asked: torch.Tensor) -> torch.Tensor:
        """Return what the new tokens of one row see: all tokens before them and themselves."""
        count, heads, width = asked.shape
        keys, values = (kept[layer, row, :, : start + count][None] for kept in (self.keys, self.values))
        groups = heads // keys.shape[1]
        mask = None
        if count > 1:
            place = torch.arange(start + count, device=asked.device)
            mask = (place <= place[start:, None]).repeat(groups, 1)
        asked = asked.view(count, -1, groups, width).permute(1, 2, 0, 3).reshape(1, -1, groups * count, width)
        found = F.scaled_dot_product_attention(asked, keys, values, mask)
        return found.view(-1, groups, count, width).permute(2, 0, 1, 3).reshape(count, -1)


def common_length(known: list[int], tokens: Sequence[int]) -> int:
    size = min(len(known), len(tokens))
    differs = np.asarray(known[:size]) != np.asarray(tokens[:size])
    return int(differs.argmax()) if differs.any() else size


def _tokenizer(reader: GGUFReader) -> Any:
    fields = {name: reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges", "token_type")}
    vocabulary = {token: number for number, token in enumerate(fields["tokens"])}
    made = Tokenizer(models.BPE(vocabulary, [tuple(pair.split(" ")) for pair in fields["merges"]]))
    made.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(_WORDS), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    marks = [token for token, kind in zip(fields["tokens"], fields["token_type"], strict=True) if kind == 3]
    made.add_special_tokens([AddedToken(mark, normalized=False) for mark in marks])
    return made
