"""The second stage: the small model plays in worlds made for learning, and what earned more than usual gets likelier.

    python reinforce.py --base SmolLM2-135M-Instruct.Q4_1.gguf --start imitation.gguf --minutes 6 --out adapter.gguf

A pass earns its F1 less a price for every action. Every question is played several times at temperature 1; what a pass
earned beyond the mean of its question is how strongly its own words are learnt, or unlearnt (a policy gradient).
Where all earn the same nothing can be learnt, so templates whose passes differed are asked more often, on each kind of
store. Nothing is said of how a question should be answered.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from distill import STORES, drawn, practice_world, stores_of
from gguf import write_adapter
from play import PlayedStores, Writer, model
from train import IGNORED, Pass, Player, batches, tensors

from kbgym.training.exam import Row
from kbgym.worlds.world import Question

Turns = list[tuple[list[int], list[int]]]  # what was shown up to here, and what was then written


def made(folder: Path, seed: int, people: int) -> tuple[list[str], list[Question]]:
    """A world's stores and many questions about it; stores that are there already are not made again."""
    world, places = practice_world(seed, people), [folder / str(seed) / name for name in STORES]
    if not all(place.exists() for place in places):
        places = list(stores_of(world, folder / str(seed)))
    return [str(place) for place in places], drawn(world, 400, seed)


def as_pass(turns: Turns) -> Pass | None:
    """A pass as one text with what the model wrote marked; None where the server would have read it otherwise."""
    tokens, wrote = list[int](), list[bool]()
    for shown, written in turns:
        if shown[: len(tokens)] != tokens:
            return None
        wrote += [False] * (len(shown) - len(tokens)) + [True] * len(written)
        tokens = shown + written
    return np.array(tokens, dtype=np.uint16), np.array(wrote)


class Differing:
    """How often the passes of a question differed, by the store's kind and the question's template."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[int]] = {}

    def note(self, place: str, template: str, differed: bool) -> None:
        counts = self._counts.setdefault((Path(place).name, template), [1, 4])  # before anything is known, one in four
        counts[0] += differed
        counts[1] += 1

    def draw(self, place: str, pool: Sequence[Question], count: int, rng: random.Random) -> list[Question]:
        """So many questions, none twice, each the likelier the more often its like differed."""

        def turn(one: Question) -> float:
            differed, asked = self._counts.get((Path(place).name, one.template), (1, 4))
            return float(rng.random() ** (asked / differed))

        return sorted(pool, key=turn, reverse=True)[:count]


def earned(row: Row, price: float) -> float:
    return (row.f1 or 0.0) - price * row.actions


def weighed(player: Player, batch: Sequence[Pass], worth: dict[int, float], device: str) -> torch.Tensor:
    """The loss whose gradient makes passes likelier by their worth."""
    shown, wanted = tensors(list(batch), device)
    written = wanted != IGNORED
    logits = player(shown)[written] @ player.frozen["token_embd.weight"].T
    surprise = F.cross_entropy(logits.float(), wanted[written], reduction="none")
    worths = torch.tensor([worth[id(one)] for one in batch], device=device)
    return (surprise * worths[:, None].expand_as(wanted)[written]).sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--start", type=Path, required=True, help="the adapter that was taught by imitation")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=Path("reinforce-worlds"), help="where the worlds are made")
    parser.add_argument("--worlds", type=int, default=14)
    parser.add_argument("--seed", type=int, default=5_000, help="the first world's")
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--questions", type=int, default=4, help="of each store, each time")
    parser.add_argument("--times", type=int, default=8, help="how often each is played")
    parser.add_argument("--price", type=float, default=0.02, help="of an action")
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--steps", type=int, default=4, help="of the optimiser, each time")
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--until", type=float, help="end at this time of the clock instead, in seconds since 1970")
    parser.add_argument("--rows", type=int, default=1_024)
    parser.add_argument("--length", type=int, default=3_072)
    parser.add_argument("--tokens", type=int, default=32_768, help="a batch's")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.worlds)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        worlds = list(pool.map(made, [asked.folder] * asked.worlds, seeds, [asked.people] * asked.worlds))
    places = [place for stores, _ in worlds for place in stores]
    pools = [questions for stores, questions in worlds for _ in stores]
    kind = torch.bfloat16 if asked.device == "cuda" else torch.float32
    player, made_of = model(asked.base, asked.start, kind, asked.device)
    torch.manual_seed(asked.seed)
    rng = random.Random(asked.seed)
    stores = PlayedStores(Writer(player, asked.rows, asked.length, temperature=1.0), made_of, places)
    optimiser = torch.optim.AdamW(player.parameters(), lr=asked.rate, betas=(0.9, 0.99), weight_decay=0.0)
    began, done, rounds, differing = time.time(), 0.0, 0, Differing()
    length = asked.until - began if asked.until else 60 * asked.minutes
    while done < 1:
        copies = [
            [msgspec.structs.replace(one, id=f"{one.id}/{copy}") for one in questions for copy in range(asked.times)]
            for questions in (
                differing.draw(place, pool, asked.questions, rng) for place, pool in zip(places, pools, strict=True)
            )
        ]
        learnt: list[Pass] = []
        worth: dict[int, float] = {}
        earnings, played = list[float](), list[Row]()
        for number, rows in enumerate(stores.play(copies)):
            got = [earned(row, asked.price) for row in rows]
            earnings, played = earnings + got, played + rows
            for start in range(0, len(rows), asked.times):
                mean = sum(got[start : start + asked.times]) / asked.times
                eight = got[start : start + asked.times]
                differing.note(places[number], rows[start].template, max(eight) - min(eight) > 1e-6)
                for row, reward in list(zip(rows, got, strict=True))[start : start + asked.times]:
                    one = as_pass(stores.turns[number, row.id])
                    if one is not None and abs(reward - mean) > 1e-6 and len(one[0]) <= asked.length:
                        learnt.append(one)
                        worth[id(one)] = reward - mean
        rounds, done = rounds + 1, (time.time() - began) / length
        for group in optimiser.param_groups:
            group["lr"] = asked.rate * max(0.05, 1 - done)
        rng.shuffle(learnt)
        for part in range(asked.steps):
            some = learnt[part :: asked.steps]
            for batch in batches(some, asked.tokens):
                (weighed(player, batch, worth, asked.device) / max(1, len(some))).backward()
            torch.nn.utils.clip_grad_norm_(player.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        stores.writer.fold()
        f1, actions = np.mean([row.f1 or 0.0 for row in played]), np.mean([row.actions for row in played])
        means = f"earned {np.mean(earnings):.4f}, F1 {f1:.4f}, actions {actions:.3f}"
        done_by = f"{time.time() - began:.0f} s, round {rounds}: {len(played)} passes"
        print(f"{done_by}, {means}, {len(learnt)} learnt from", flush=True)
    stores.close()
    rank = len(next(iter(player.a.values())))
    write_adapter(asked.out, rank * player.scale, player.adapters())


if __name__ == "__main__":
    main()
