"""Harm by malicious curators to questions the gate never asks, with and without a gate, and the effect of good
curators.

    python benchmarks/gate.py                        # every curator, worlds 0 to 4; prints Markdown
    python benchmarks/gate.py --curators edits,paper --seeds 0 --json

Each curator works through a stream of 40 questions over a world of 80 people. The exam before and after is the split
test_in, of which neither the stream nor the gate has a question. Those that destroy begin on a store a good curator
has trained for 30 questions, the others on the flat one. The embedder is the hash one, which needs no model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from streams import HARMFUL, skewed_traffic

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.analysis.statistics import Sampled, difference
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.setup import Traffic, learn_traffic, open_online
from kbgym.training.exam import Row, examine
from kbgym.training.run import Settings
from kbgym.worlds.people import generate
from kbgym.worlds.world import World

GOOD = ("paper", "class")
TRAINED = ("members replaced", "deletes", "edits")
BEFORE, STREAM, PEOPLE, ASKED = 30, 40, 80, 20


async def exam(online: Online, world: World) -> list[Row]:
    now = online.live.snapshot()
    return await examine(now.store, now.engine, world.split("test_in"), ReferenceReader)


async def lead(place: Path, settings: Settings, gate: int, name: str, rows: list[Traffic], world: World) -> Online:
    """A curator has its way with a stream; the store is closed again."""
    online = open_online(place, settings, "hash", gate=gate)
    try:
        if name in HARMFUL:
            online.curator = HARMFUL[name]
        await learn_traffic(online, rows)
    finally:
        await online.live.close()
    return online


async def one(name: str, seed: int, gate: int) -> dict[str, Any]:
    world = generate(people=PEOPLE, seed=seed)
    settings = Settings(embedder="hash", strategy=name if name in GOOD else "paper")
    stream = [
        Traffic(row.question, row.answers, f"q{number}")
        for number, row in enumerate(skewed_traffic(world, BEFORE + STREAM, seed), 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store"
        world.save(place)
        if name in TRAINED:
            await lead(place, settings, 0, "paper", stream[:BEFORE], world)
        opened = open_online(place, settings, "hash")
        before = await exam(opened, world)
        await opened.live.close()
        online = await lead(place, settings, gate, name, stream[BEFORE:], world)
        opened = open_online(place, settings, "hash")
        after = await exam(opened, world)
        await opened.live.close()
    return {
        "before": [row.f1 for row in before],
        "after": [row.f1 for row in after],
        "actions": [sum(row.actions for row in rows) / len(rows) for rows in (before, after)],
        "admitted": online.admitted,
        "refused": online.refused,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curators", default=",".join([*HARMFUL, *GOOD]))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    found: dict[str, Any] = {}
    if not arguments.json:
        print(
            f"Change of F1 on test_in: {len(seeds)} worlds of {PEOPLE} people, {STREAM} questions each, gate {ASKED}.\n"
        )
        print(
            "| curator | F1 before | no gate | with gate | worst world | actions before, after | admitted | refused |"
        )
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for name in arguments.curators.split(","):
        without = [asyncio.run(one(name, seed, 0)) for seed in seeds]
        gated = [asyncio.run(one(name, seed, ASKED)) for seed in seeds]
        changes = [
            difference([Sampled(run["after"], run["before"]) for run in runs], scores=True).interval
            for runs in (without, gated)
        ]
        row = {
            "before": sum(sum(run["before"]) / len(run["before"]) for run in gated) / len(gated),
            "open": [changes[0].value, changes[0].low, changes[0].high],
            "gated": [changes[1].value, changes[1].low, changes[1].high],
            "worst": min(fmean(run["after"]) - fmean(run["before"]) for run in gated),
            "actions": [sum(run["actions"][at] for run in gated) / len(gated) for at in (0, 1)],
            **{key: sum(run[key] for run in gated) for key in ("admitted", "refused")},
        }
        found[name] = row
        if not arguments.json:
            shown = ["{:+.3f} [{:+.3f}, {:+.3f}]".format(*row[key]) for key in ("open", "gated")]
            print(
                f"| {name} | {row['before']:.3f} | {shown[0]} | {shown[1]} | {row['worst']:+.3f} "
                f"| {row['actions'][0]:.2f}, {row['actions'][1]:.2f} | {row['admitted']} | {row['refused']} |",
                flush=True,
            )
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
