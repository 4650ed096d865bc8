"""Teach SmolLM2-135M to play: low-rank adapters on all its matrices, by imitation of recorded passes, in plain PyTorch.

    python distill.py --worlds 48 --out samples
    python train.py --base SmolLM2-135M-Instruct.Q4_1.gguf --samples samples --minutes 8 --out adapter.gguf

The weights are read from the GGUF file as they lie there, quantised as the player will use them. A sample is a whole
pass; the loss is on what the model is to write and on nothing it is shown. The schedule goes by the clock: files that
are added to the folder while it trains are taken in. Samples whose file's name starts with `held-out` are never trained
on; how many replies come out exactly as the teacher's is measured on them.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from gguf import Model, q8, tokenizer, write_adapter

IGNORED = -100
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
Pass = tuple[np.ndarray, np.ndarray]  # tokens, and for each whether it is to be learnt


class Player(torch.nn.Module):
    """The model: frozen weights, and an adapter (A, B) for each matrix, folded in before each product."""

    def __init__(self, base: Model, rank: int, scale: float, kind: torch.dtype) -> None:
        super().__init__()
        self.layers = base.about["llama.block_count"]
        self.heads, self.pairs = base.about["llama.attention.head_count"], base.about["llama.attention.head_count_kv"]
        self.width = base.about["llama.rope.dimension_count"]
        self.epsilon = base.about["llama.attention.layer_norm_rms_epsilon"]
        self.theta, self.kind, self.scale = base.about["llama.rope.freq_base"], kind, scale
        self.block = layer_of(self.heads, self.pairs, self.epsilon, scale)
        self.frozen: dict[str, torch.Tensor] = {}
        self.a, self.b = torch.nn.ParameterDict(), torch.nn.ParameterDict()
        for name in base.names:
            weights = torch.from_numpy(base.tensor(name))
            self.frozen[name] = weights if "norm" in name else weights.to(kind)
            if any(f".{matrix}." in name for matrix in MATRICES):
                out, into = weights.shape
                self.a[_key(name)] = torch.nn.Parameter(torch.randn(rank, into) / math.sqrt(into))
                self.b[_key(name)] = torch.nn.Parameter(torch.zeros(out, rank))

    def take(self, adapter: Path) -> None:
        """Go on from an adapter that was written before; of one of a higher rank, from the nearest of this one."""
        written = Model(adapter)
        for name in (name.removesuffix(".lora_a") for name in written.names if name.endswith(".lora_a")):
            a, b = (torch.from_numpy(written.tensor(f"{name}.lora_{part}").copy()) for part in "ab")
            self.a[_key(name)].data, self.b[_key(name)].data = of_rank(len(self.a[_key(name)]), a, b)

    def on(self, device: str) -> Player:
        self.frozen = {name: weights.to(device) for name, weights in self.frozen.items()}
        return self.to(device)

    def weights(self, layer: int) -> list[torch.Tensor]:
        """What one layer is computed with: two norms, then its matrices with their adapters."""
        norms = [self.frozen[f"blk.{layer}.{name}.weight"] for name in ("attn_norm", "ffn_norm")]
        names = [f"blk.{layer}.{matrix}.weight" for matrix in MATRICES]
        return norms + [part for name in names for part in (self.frozen[name], self.a[_key(name)], self.b[_key(name)])]

    def turns(self, length: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """By how much each place turns each pair."""
        pairs = torch.arange(0, self.width, 2, device=device)
        turns = torch.arange(length, device=device)[:, None] * self.theta ** (-pairs / self.width)
        return turns.cos().to(self.kind), turns.sin().to(self.kind)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The last hidden state of every place."""
        x = self.frozen["token_embd.weight"][tokens].to(self.kind)
        cos, sin = self.turns(tokens.shape[1], tokens.device)
        for layer in range(self.layers):
            x = self.block(growing(x, 0, 1), growing(cos, 0), growing(sin, 0), *self.weights(layer))
        return norm(x, self.frozen["output_norm.weight"], self.epsilon)

    def loss(self, tokens: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        learnt = wanted != IGNORED
        logits = self(tokens)[learnt] @ self.frozen["token_embd.weight"].T
        return F.cross_entropy(logits.float(), wanted[learnt])

    def adapters(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        def plain(matrix: torch.Tensor) -> np.ndarray:
            return matrix.detach().float().cpu().numpy()

        names = [name for name in self.frozen if _key(name) in self.a]
        return {name: (plain(self.a[_key(name)]), plain(self.b[_key(name)])) for name in names}


def _key(name: str) -> str:
    return name.replace(".", "/")


def of_rank(rank: int, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The two factors whose product is nearest to these two's."""
    if len(a) == rank:
        return a, b
    (left, by), (right, of) = torch.linalg.qr(b), torch.linalg.qr(a.T)
    u, sizes, v = torch.linalg.svd(by @ of.T)
    root = sizes[:rank].sqrt()
    return root[:, None] * v[:rank] @ right.T, left @ u[:, :rank] * root


def norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon) * weight).to(x.dtype)


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions: in this file's layout neighbours form a pair."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def growing(x: torch.Tensor, *dimensions: int) -> torch.Tensor:
    """The same, with a word for the compiler: these dimensions differ from batch to batch."""
    torch._dynamo.maybe_mark_dynamic(x, dimensions)
    return x


def layer_of(heads: int, pairs: int, epsilon: float, scale: float) -> Callable[..., torch.Tensor]:
    def block(
        x: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        before: torch.Tensor,
        between: torch.Tensor,
        *matrices: torch.Tensor,
    ) -> torch.Tensor:
        rows, length, _ = x.shape
        adapted = zip(matrices[0::3], matrices[1::3], matrices[2::3], strict=True)
        q, k, v, out, gate, up, down = (w + (scale * b @ a).to(w.dtype) for w, a, b in adapted)
        h = norm(x, before, epsilon)
        queries = turned((h @ q.T).view(rows, length, heads, -1).transpose(1, 2), cos, sin)
        keys = turned((h @ k.T).view(rows, length, pairs, -1).transpose(1, 2), cos, sin)
        values = (h @ v.T).view(rows, length, pairs, -1).transpose(1, 2)
        seen = F.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)
        x = x + seen.transpose(1, 2).reshape(rows, length, -1) @ out.T
        h = norm(x, between, epsilon)
        return x + (F.silu(h @ gate.T) * (h @ up.T)) @ down.T

    return block


def passes_of(file: Path, made: object, longest: int) -> list[Pass]:
    """The passes of a file as tokens; those longer than `longest` are left out."""
    samples = [json.loads(line)["parts"] for line in file.open(encoding="utf-8")]
    parts = [part for sample in samples for part in sample]
    tokens = iter([np.array(one.ids, dtype=np.uint16) for one in made.encode_batch(parts)])
    found = []
    for sample in samples:
        pieces = [next(tokens) for _ in sample]
        learnt = [np.full(len(piece), place % 2 == 1) for place, piece in enumerate(pieces)]
        found.append((np.concatenate(pieces), np.concatenate(learnt)))
    return [one for one in found if len(one[0]) <= longest]


def batches(passes: list[Pass], tokens: int) -> list[list[Pass]]:
    """Passes of like length together, each batch of about so many tokens, in random order."""
    passes = sorted(passes, key=lambda one: len(one[0]))
    found, start = [], 0
    while start < len(passes):
        end = start + 1
        while end < len(passes) and (end + 1 - start) * padded(len(passes[end][0])) <= tokens:
            end += 1
        found.append(passes[start:end])
        start = end
    random.shuffle(found)
    return found


def padded(length: int, to: int = 64) -> int:
    return -(-length // to) * to


def tensors(batch: list[Pass], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens, and behind each the one that is to follow it where that is to be learnt."""
    size = (len(batch), padded(max(len(tokens) for tokens, _ in batch)))
    shown, wanted = np.full(size, 2), np.full(size, IGNORED)
    for row, (tokens, learnt) in enumerate(batch):
        shown[row, : len(tokens)] = tokens
        wanted[row, : len(tokens) - 1] = np.where(learnt[1:], tokens[1:].astype(np.int64), IGNORED)
    return torch.from_numpy(shown).to(device), torch.from_numpy(wanted).to(device)


@torch.no_grad()
def exact(player: Player, passes: list[Pass], tokens: int, device: str) -> float:
    """The share of replies that would come out just as the teacher's, given the teacher's pass before."""
    right = total = 0
    for batch in batches(passes, tokens):
        shown, wanted = tensors(batch, device)
        hidden = player(shown)
        for row in range(len(batch)):
            learnt = wanted[row] != IGNORED
            hit = torch.ones_like(learnt)
            hit[learnt] = (hidden[row][learnt] @ player.frozen["token_embd.weight"].T).argmax(-1) == wanted[row][learnt]
            ends = (learnt & ~F.pad(learnt[1:], (0, 1))).nonzero().flatten().tolist()
            starts = (learnt & ~F.pad(learnt[:-1], (1, 0))).nonzero().flatten().tolist()
            right += sum(bool(hit[start : end + 1].all()) for start, end in zip(starts, ends, strict=True))
            total += len(ends)
    return right / max(1, total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--samples", type=Path, required=True, help="a folder of JSONL files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="an adapter to go on from")
    parser.add_argument("--rank", type=int, default=12)
    parser.add_argument("--scale", type=float, default=2.0)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--until", type=float, help="end at this time of the clock instead, in seconds since 1970")
    parser.add_argument("--tokens", type=int, default=49_152, help="a batch's")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument("--longest", type=int, default=3_072)
    parser.add_argument("--wait", type=int, default=1, help="begin when the folder has so many files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked = parser.parse_args()
    torch.manual_seed(asked.seed)
    torch.set_float32_matmul_precision("high")
    random.seed(asked.seed)
    base = Model(asked.base)
    made = tokenizer(base.about)
    player = Player(base, asked.rank, asked.scale, torch.bfloat16 if asked.device == "cuda" else torch.float32)
    if asked.start:
        player.take(asked.start)
    player = player.on(asked.device)
    plain_block = player.block
    if asked.device == "cuda" and not asked.eager:
        player.block = torch.compile(plain_block)
    optimiser = torch.optim.AdamW(player.parameters(), lr=asked.rate, betas=(0.9, 0.99), weight_decay=0.0)
    taken: set[Path] = set()
    passes: list[Pass] = []
    held: list[Pass] = []

    def look() -> None:
        for file in sorted(set(asked.samples.glob("*.jsonl")) - taken):
            taken.add(file)
            (held if file.name.startswith("held-out") else passes).extend(passes_of(file, made, asked.longest))

    look()
    for batch in batches((passes or held)[:600], asked.tokens)[:3]:  # compiled before the clock starts
        player.loss(*tensors(batch, asked.device)).backward()
        optimiser.zero_grad(set_to_none=True)
    while len(taken) < asked.wait:
        time.sleep(1)
        look()
    length = asked.until - time.time() if asked.until else 60 * asked.minutes
    began, steps, seen, losses = time.time(), 0, 0, []
    done = 0.0
    while done < 1:
        look()
        print(f"{time.time() - began:.0f} s: {len(passes):,} passes in {len(taken)} files", flush=True)
        for batch in batches(random.sample(passes, min(len(passes), 6_000)), asked.tokens):
            done = (time.time() - began) / length
            if done >= 1:
                break
            rate = min(1.0, steps / 50) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
            for group in optimiser.param_groups:
                group["lr"] = asked.rate * rate
            shown, wanted = tensors(batch, asked.device)
            loss = player.loss(shown, wanted)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(player.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            steps, seen = steps + 1, seen + shown.numel()
            losses.append(loss.detach())
            if steps % 50 == 0:
                mean = torch.stack(losses[-50:]).mean().item()
                print(
                    f"{time.time() - began:.0f} s, step {steps}, {seen / 1e6:.1f}M tokens, loss {mean:.5f}", flush=True
                )
    pairs = player.adapters()
    write_adapter(asked.out, asked.rank * asked.scale, pairs)
    player.block = plain_block
    with torch.no_grad():  # as the player will have it
        for name, (a, b) in pairs.items():
            player.a[_key(name)].copy_(torch.from_numpy(q8(a)))
            player.b[_key(name)].copy_(torch.from_numpy(b.astype(np.float16).astype(np.float32)))
    print(f"{steps} steps, {seen:,} tokens, {asked.out.stat().st_size:,} bytes")
    if held:
        share = exact(player, held, asked.tokens, asked.device)
        print(f"of the replies of {len(held)} held-out passes {share:.4f} exactly as the teacher's", flush=True)


if __name__ == "__main__":
    main()
