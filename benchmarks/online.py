"""Learning online on six streams of questions, against the flat store, HippoRAG-2 style, and training once.

    python benchmarks/online.py [--seeds 0,1,2,3,4] [--questions 200]

    steady     keys are asked for unevenly: the k-th most wanted 1/k as often as the first
    repeats    every question is drawn from the first third of a steady stream
    shift      at half time other keys are the wanted ones
    changing   at half time a quarter of the people exchange jobs: their documents are edited, expected answers change
    delayed    expected answers arrive 20 questions later
    noisy      every fifth expected answer is that of another question

Worlds of 500 people, reference agents, strategy class, no gate. Every question is answered before it is learnt from,
and on three other stores: flat, HippoRAG-2 style (built again when documents change), and the online store as it was
after the first third of the stream ("once"; before, it is the online store). A key is seen once an earlier question
named it. "charged" adds the actions of training to those of reading. The unit of the intervals is the seed.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from msgspec.structs import replace
from streams import skewed_traffic

from kbgym.analysis.statistics import Sampled, difference, ratio
from kbgym.api import open as open_store
from kbgym.api.factory import embedder_named
from kbgym.baselines import build_arm, engine_for_arm
from kbgym.gym.environment import Environment
from kbgym.gym.grading import score
from kbgym.search.embed import Embedder
from kbgym.search.factory import engine_for
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.setup import Traffic, open_online
from kbgym.trace.events import Acted, Imported
from kbgym.training.gate import ask, qa_pair
from kbgym.training.run import Settings
from kbgym.worlds.people import generate
from kbgym.worlds.world import World

STREAMS = ("steady", "repeats", "shift", "changing", "delayed", "noisy")
STORES = ("flat", "hipporag", "once", "online")
DELAY, NOISE, MOVED = 20, 5, 4


class Answered(NamedTuple):
    """One question on every store, by the order of `STORES`."""

    row: Traffic
    is_seen: bool
    f1: tuple[float, ...]
    actions: tuple[int, ...]


class Stream(NamedTuple):
    """The answers of one world; training actions of the online store, and of the store trained once."""

    answered: list[Answered]
    training: int
    training_once: int


def changed(world: World, seed: int) -> World:
    """Return the world after a quarter of the people exchanged jobs."""
    dice = Random(f"{seed}:moved")
    people = [dict(one) for one in world.facts["people"]]
    chosen = dice.sample([one for one in people if not one["distractor"]], len(people) // MOVED)
    for one, job in zip(chosen, [one["job"] for one in chosen[1:] + chosen[:1]], strict=True):
        one["job"] = job
    told = {one["id"]: f"{one['name']}'s job is {one['job']}." for one in chosen}
    documents = tuple(
        replace(one, text=told[one.about[0]]) if one.kind == "job" and one.about[0] in told else one
        for one in world.documents
    )
    return replace(world, documents=documents, facts={**world.facts, "people": people})


def traffic_of(kind: str, world: World, after: World, n: int, seed: int) -> list[Traffic]:
    if kind == "repeats":
        return Random(f"{seed}:repeats").choices(skewed_traffic(world, n // 3, seed), k=n)
    if kind in ("shift", "changing"):
        return skewed_traffic(world, n // 2, seed) + skewed_traffic(after, n - n // 2, seed + 1000 * (kind == "shift"))
    return skewed_traffic(world, n, seed)


def built(arm: str, world: World, embedder: Embedder) -> Environment:
    store = build_arm(arm, world, lambda: embedder).store
    return Environment(store.freeze(), engine_for_arm(arm, store, embedder))


async def edited(online: Online, before: World, after: World) -> None:
    """Record the edited documents in the live store."""
    known = {one.id: one.text for one in before.documents}
    edits = tuple(one for one in after.documents if known[one.id] != one.text)
    live = online.live
    async with live.write():
        live.record(Imported(live.iteration + 1, edited=edits))
        durable = live.commit()
    await durable


async def play(kind: str, world: World, n: int, seed: int, place: Path, embedder: Embedder) -> Stream:
    after = changed(world, seed) if kind == "changing" else world
    traffic = traffic_of(kind, world, after, n, seed)
    told = [row.answers for row in traffic]
    if kind == "noisy":
        told[NOISE - 1 :: NOISE] = Random(f"{seed}:noise").sample(told[NOISE - 1 :: NOISE], len(told) // NOISE)
    world.save(place)
    settings = Settings(strategy="class", embedder=embedder.name)
    budget, memory = settings.forward_budget, settings.memory
    online = open_online(place, settings, embedder.name)
    fixed = {arm: built(arm, world, embedder) for arm in ("flat", "hipporag")}
    once: Environment | None = None
    until, seen, found = 0, set[object](), list[Answered]()
    delay = DELAY if kind == "delayed" else 0
    for at, row in enumerate(traffic):
        if at == n // 2 and after is not world:
            await edited(online, world, after)
            fixed = {arm: built(arm, after, embedder) for arm in fixed}
            if once is not None:
                once = await with_documents(once, after, embedder)
        if at == n // 3:
            store, until = online.live.store.copy().freeze(), online.live.iteration
            once = Environment(store, engine_for(store, embedder))
        mine = await online.ask(row.question, "traffic", f"q{at}")
        question = qa_pair(f"q{at}", row.question, row.answers, False)
        scored = {"online": (graded(mine.answer, row), mine.actions)}
        for name, environment in (*fixed.items(), *([("once", once)] if once else ())):
            passed, measured = await ask(question, environment, online.reader, budget, memory)
            scored[name] = measured.f1, len(passed.steps)
        scored.setdefault("once", scored["online"])
        f1, actions = zip(*(scored[name] for name in STORES), strict=True)
        found.append(Answered(row, {*row.keys} <= seen, f1, actions))
        seen |= {*row.keys}
        if at >= delay:
            await online.gold(f"q{at - delay}", told[at - delay])
            await online.learn()
    await online.live.close()
    with open_store(place) as opened:
        spent = [e.iteration for e in opened.events if isinstance(e, Acted) and e.phase == "backward"]
    return Stream(found, len(spent), sum(iteration <= until for iteration in spent))


async def with_documents(once: Environment, after: World, embedder: Embedder) -> Environment:
    """Return a store with the texts of changed documents."""
    store = once.store.copy()
    for one in after.documents:
        if store[one.id].text != one.text:
            store.edit(one.id, one.text)
    return Environment(store.freeze(), engine_for(store, embedder))


def graded(answer: str | None, row: Traffic) -> float:
    return score(answer, row.answers, False).f1 or 0.0


def cells(streams: Sequence[Stream]) -> list[str]:
    """Return one line of the table."""

    def sampled(field: str, name: str, base: str, seen: bool | None = None, charged: bool = False) -> list[Sampled]:
        of, to = STORES.index(name), STORES.index(base)
        pooled = []
        for one in streams:
            rows = [row for row in one.answered if seen in (None, row.is_seen)]
            spent = (one.training if name == "online" else one.training_once) / len(rows) if charged else 0.0
            mine, other = ([getattr(row, field)[at] for row in rows] for at in (of, to))
            pooled.append(Sampled([value + spent for value in mine], other, [row.row.keys for row in rows]))
        return pooled

    def mean(field: str, name: str) -> float:
        values = [getattr(row, field)[STORES.index(name)] for one in streams for row in one.answered]
        return sum(values) / len(values)

    def rho(*about: object, **more: object) -> str:
        found = ratio(sampled("actions", *about, **more)).interval  # type: ignore[arg-type]
        return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"

    gain = difference(sampled("f1", "online", "flat"), scores=True).interval
    return [
        f"{mean('f1', 'flat'):.3f}",
        f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]",
        f"{mean('f1', 'hipporag'):.3f}",
        f"{mean('f1', 'once'):.3f}",
        f"{mean('actions', 'flat'):.2f}",
        rho("online", "flat"),
        rho("online", "flat", seen=True),
        rho("online", "flat", seen=False),
        rho("hipporag", "flat"),
        rho("once", "flat"),
        rho("online", "flat", charged=True),
        rho("once", "flat", charged=True),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--streams", default=",".join(STREAMS))
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2")
    chosen = parser.parse_args()
    heads = ["F1 flat", "online minus flat", "F1 B3", "F1 once", "actions flat", "online / flat", "seen keys",
             "a new key", "B3 / flat", "once / flat", "online charged / flat", "once charged / flat"]  # fmt: skip
    print(f"| stream | {' | '.join(heads)} |\n| --- |{' ---: |' * len(heads)}", flush=True)
    embedder = embedder_named(chosen.embedder)
    for kind in chosen.streams.split(","):
        found = []
        for seed in map(int, chosen.seeds.split(",")):
            world = generate(people=chosen.people, seed=seed)
            with tempfile.TemporaryDirectory() as folder:
                found.append(asyncio.run(play(kind, world, chosen.questions, seed, Path(folder) / "store", embedder)))
        print(f"| {kind} | {' | '.join(cells(found))} |", flush=True)


if __name__ == "__main__":
    main()
