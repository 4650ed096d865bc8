"""Learning online: a stream of 300 questions whose keys are asked for unevenly, against the flat store.

    python benchmarks/online.py                      # worlds 0 to 4, each with the stream of the same seed

The setting is fixed: 500 people, seeds 0 to 4, one stream each, the real embedder, strategy class, no gate. Every
question is answered before it is learnt from, and on the flat store as well. All seeds are shown, whatever they say.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from streams import skewed_traffic

from kbgym.analysis.statistics import Interval, Sampled, difference, ratio
from kbgym.serving.learning.setup import StreamRow, Traffic, learn_traffic, open_online
from kbgym.training.run import Settings
from kbgym.worlds.people import generate
from kbgym.worlds.world import World


async def stream(world: World, traffic: list[Traffic], embedder: str | None) -> list[StreamRow]:
    with tempfile.TemporaryDirectory() as folder:
        world.save(Path(folder) / "store")
        settings = Settings(strategy="class") if embedder is None else Settings(strategy="class", embedder=embedder)
        online = open_online(Path(folder) / "store", settings, embedder)
        try:
            return await learn_traffic(online, traffic)
        finally:
            await online.live.close()


def row_of(name: str, learnt: list[StreamRow], f1: Interval, rho: Interval) -> dict[str, Any]:
    n = len(learnt)
    return {
        "seed": name,
        "f1_flat": sum(one.flat_f1 for one in learnt) / n,
        "f1": sum(one.f1 for one in learnt) / n,
        "difference": [f1.value, f1.low, f1.high],
        "actions_flat": sum(one.flat_actions for one in learnt) / n,
        "actions": sum(one.actions for one in learnt) / n,
        "rho": [rho.value, rho.low, rho.high],
    }


def show(row: dict[str, Any]) -> None:
    difference = "{:+.3f} [{:+.3f}, {:+.3f}]".format(*row["difference"])
    rho = "{:.3f} [{:.3f}, {:.3f}]".format(*row["rho"])
    print(
        f"| {row['seed']} | {row['f1_flat']:.3f} | {row['f1']:.3f} | {difference} "
        f"| {row['actions_flat']:.2f} | {row['actions']:.2f} | {rho} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--embedder", help="[default: the real one]")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not arguments.json:
        print("| seed | F1 flat | F1 online | difference | actions flat | actions online | ratio |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    rows: list[dict[str, Any]] = []
    scores, actions, whole = list[Sampled](), list[Sampled](), list[StreamRow]()
    for seed in map(int, arguments.seeds.split(",")):
        world = generate(people=arguments.people, seed=seed)
        traffic = skewed_traffic(world, arguments.questions, seed)
        learnt, keys = asyncio.run(stream(world, traffic, arguments.embedder)), [row.keys for row in traffic]
        scores.append(Sampled([one.f1 for one in learnt], [one.flat_f1 for one in learnt], keys))
        actions.append(Sampled([one.actions for one in learnt], [one.flat_actions for one in learnt], keys))
        whole += learnt
        f1, rho = difference(scores[-1:], scores=True).interval, ratio(actions[-1:]).interval
        rows.append(row_of(str(seed), learnt, f1, rho))
        if not arguments.json:
            show(rows[-1])
    over_f1, over_rho = difference(scores, scores=True).interval, ratio(actions).interval
    rows.append(row_of("all, the seed as the unit", whole, over_f1, over_rho))
    if arguments.json:
        print(json.dumps(rows))
        return
    show(rows[-1])


if __name__ == "__main__":
    main()
