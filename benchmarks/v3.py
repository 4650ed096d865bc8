"""Gain of training on benchmark v3: flat, `paper`, `class` and oracle stores under several readers.

    python benchmarks/v3.py play --seed S --folder DIR [--search words] [--asked N]   # minutes; run again to resume
    python benchmarks/v3.py tables --folder DIR   # the tables of docs/benchmark.md, of all seeds there

For each seed a world of 500 people is generated; the reference agents train on all its training questions, one epoch.
Readers answer N questions of test_in and test_out (two to one), the reference reader also in held-out wordings and
after the first round of updates. Then the curator spends 26 lessons on upkeep.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from kbgym.agents.reference.v3 import ReportReader
from kbgym.agents.reference.v3_curator import ReportAgenda, ReportCurator
from kbgym.agents.registry import make_agent
from kbgym.analysis.audit import Auditor
from kbgym.analysis.verdict import judge, shared_keys
from kbgym.api.factory import embedder_named
from kbgym.api.training import train
from kbgym.baselines import build_arm
from kbgym.canonical import encode, read_lines, read_value
from kbgym.gym.environment import Environment
from kbgym.gym.episode import Transcript, play
from kbgym.gym.grading import grade_question
from kbgym.gym.observations import documents
from kbgym.gym.policy import Forward, Turn
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.store import Store
from kbgym.trace.events import Imported
from kbgym.trace.replay import follow_import
from kbgym.training.exam import Row, examine
from kbgym.training.loop import backward_task
from kbgym.training.run import Settings
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.people3 import generate
from kbgym.worlds.updates import updated, updates
from kbgym.worlds.world import Question, World

ARMS = ("flat", "paper", "class", "oracle")
READERS = ("reference-v3", "neutral-v3:trusting", "neutral-v3:sceptical", "neutral-v3:joining")
VERSIONS = ("", "-reworded", "-update1")
UPKEEP = 26  # lessons after the update


class Upkeep(msgspec.Struct, frozen=True):
    """The indexes of a store by the facts after an update; stale links lead to what the update superseded."""

    indexes: int
    links: int
    stale: int
    precision: float
    recall: float
    actions: int = 0


def upkeep(store: Store, world: World, rounds: int, actions: int = 0) -> Upkeep:
    """Score the indexes of a store to which the first `rounds` updates were applied."""
    after = updated(world, rounds)
    superseded = {id for update in updates(world)[:rounds] for id in update.superseded}
    authored = [record for record in store if record.flag == "authored" and record.links]
    targets = [target for record in authored for target in record.links]
    total = Auditor(store, kind_of(after).truth(after)).audit().total
    scores = (total.precision, total.recall) if total else (0.0, 0.0)
    return Upkeep(len(authored), len(targets), sum(target in superseded for target in targets), *scores, actions)


def asked_of(world: World, n: int, version: str = "") -> list[Question]:
    """Return two questions of test_in for one of test_out, evenly mixed over templates."""
    parts = [world.split(f"test_in{version}")[: 2 * n // 3], world.split(f"test_out{version}")[: n - 2 * n // 3]]
    return [one for part in parts for one in part]


def store_of(arm: str, world: World, folder: Path, settings: Settings) -> Store:
    if arm in ("flat", "oracle"):
        return build_arm(arm, world).store
    questions = len(world.split("train"))
    how = {"embedder": settings.embedder, "search": settings.search, "strategy": arm}
    return train(world, folder / "run", questions=questions, epochs=1, eval=False, **how).store


def exam(store: Store, questions: Sequence[Question], reader: str, out: Path, settings: Settings) -> None:
    engine = engine_for(store, embedder_named(settings.embedder), search=settings.search)
    asyncio.run(examine(store, engine, questions, make_agent(reader, "reader"), out, settings))


async def upkept(store: Store, world: World, settings: Settings) -> int:
    """Teach lessons on a store after an update; return the curator's actions."""
    environment = Environment(store, live_engine_for(store, embedder_named(settings.embedder), search=settings.search))
    agenda, actions = ReportAgenda(), 0

    def note(transcript: Transcript) -> tuple[Turn, ...]:
        for step in transcript.steps:
            agenda.saw(step.action, documents(step.observation))
        return tuple(Turn(step.action, step.observation) for step in transcript.steps)

    for one in world.split("train")[:UPKEEP]:
        agenda.note_question(one.text)
        task = Forward(one.text)
        forward = await play(ReportReader(), environment, "reader", task, settings.forward_budget, settings.memory)
        turns = note(forward)
        f1 = grade_question(forward.answer, one).f1
        backward = backward_task(one.text, turns, one.golds, f1, forward.answer, agenda.index_tasks(one.text))
        budget = settings.backward_budget
        curated = await play(ReportCurator(), environment, "curator", backward, budget, settings.memory)
        note(curated)
        actions += len(curated.steps)
    return actions


def play_seed(seed: int, folder: Path, asked: int, search: str, arms: Sequence[str]) -> None:
    world = generate(500, seed)
    settings = Settings(search=search, embedder="none" if search == "words" else Settings().embedder)
    after = updated(world, 1)
    for arm in arms:
        out = folder / f"{seed}-{arm}"
        out.mkdir(parents=True, exist_ok=True)
        store = store_of(arm, world, out, settings)
        for reader in READERS:
            exam(store, asked_of(world, asked), reader, out / f"{reader.replace(':', '-')}.jsonl", settings)
        exam(store, asked_of(world, asked, "-reworded"), READERS[0], out / "reworded.jsonl", settings)
        changed = store.copy()
        follow_import(changed, Imported(0, added=updates(world)[0].documents))
        exam(changed, asked_of(after, asked, "-update1"), READERS[0], out / "update1.jsonl", settings)
        scores = [upkeep(store, world, 0), upkeep(changed, world, 1)]
        if arm == "class":
            spent = asyncio.run(upkept(changed, after, settings))
            scores.append(upkeep(changed, world, 1, spent))
            exam(changed, asked_of(after, asked, "-update1"), READERS[0], out / "upkept.jsonl", settings)
        (out / "upkeep.json").write_bytes(encode(scores))


# -- tables -----------------------------------------------------------------------------------------------------------


def pooled(folder: Path, arm: str, name: str) -> list[Row]:
    """Return the rows of all seeds, each question named with its seed."""
    rows: list[Row] = []
    for place in sorted(folder.glob(f"*-{arm}")):
        seed = place.name.partition("-")[0]
        for row in read_lines(place / f"{name}.jsonl", Row):
            rows.append(msgspec.structs.replace(row, id=f"{seed}:{row.id}", question=f"{seed}:{row.question}"))
    return rows


def comparisons(folder: Path, seeds: Sequence[int]) -> Iterator[str]:
    keys = {}
    for seed in seeds:
        world = generate(500, seed)
        for text, named in shared_keys(world, (*world.questions, *updated(world, 1).questions)).items():
            keys[f"{seed}:{text}"] = tuple((seed, key) for key in named)
    yield "| reader, questions | n | arm | F1 | difference to flat | actions | rho |"
    yield "| --- | ---: | --- | ---: | --- | ---: | --- |"
    names = [reader.replace(":", "-") for reader in READERS] + ["reworded", "update1", "upkept"]
    for name in names:
        flat = pooled(folder, "flat", "update1" if name == "upkept" else name)
        f1, actions = (sum(getattr(row, field) for row in flat) / len(flat) for field in ("f1", "actions"))
        yield f"| {name} | {len(flat)} | flat | {f1:.2f} | | {actions:.1f} | |"
        for arm in played(folder)[1:] if name != "upkept" else ("class",):
            found = judge(pooled(folder, arm, name), flat, keys)
            gain, rho = found.gain, found.rho
            more = f"{gain.value:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]"
            ratio = f"{rho.value:.2f} [{rho.low:.2f}, {rho.high:.2f}]"
            yield f"| | {found.n} | {arm} | {found.f1_trained:.2f} | {more} | {found.actions_trained:.1f} | {ratio} |"


def played(folder: Path) -> list[str]:
    """Return the arms of a folder, flat first."""
    return [arm for arm in ARMS if any(folder.glob(f"*-{arm}/upkeep.json"))]


def classes(folder: Path) -> Iterator[str]:
    arms = played(folder)
    yield f"| class | n | {' | '.join(arms)} |\n| --- | ---: |{' ---: |' * len(arms)}"
    rows = {arm: pooled(folder, arm, READERS[0]) for arm in arms}
    for class_ in dict.fromkeys(row.class_ for row in rows["flat"]):
        cells = []
        for arm in arms:
            found = [row for row in rows[arm] if row.class_ == class_]
            f1, actions = (sum(getattr(row, field) for row in found) / len(found) for field in ("f1", "actions"))
            cells.append(f"{f1:.2f} in {actions:.1f}")
        yield f"| {class_} | {len(found)} | {' | '.join(cells)} |"


def upkeep_table(folder: Path) -> Iterator[str]:
    """Yield the means over the seeds."""
    yield "| arm | moment | indexes | links | stale links | precision | recall | actions |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    moments = ("before the update", "right after", f"after {UPKEEP} lessons")
    for arm in played(folder)[1:]:
        seeds = [read_value(place, list[Upkeep]) for place in sorted(folder.glob(f"*-{arm}/upkeep.json"))]
        for moment, found in zip(moments, zip(*seeds, strict=True), strict=False):
            cells = [
                f"{fmean(getattr(one, name) for one in found):,.{digits}f}"
                for name, digits in (("indexes", 0), ("links", 0), ("stale", 0), ("precision", 2), ("recall", 2))
            ]
            yield f"| {arm} | {moment} | {' | '.join(cells)} | {fmean(one.actions for one in found):,.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["play", "tables"])
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--asked", type=int, default=78)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--search", choices=["vectors", "words", "hybrid"], default="vectors")
    parser.add_argument("--arms", default=",".join(ARMS))
    given = parser.parse_args()
    if given.what == "play":
        play_seed(given.seed, given.folder, given.asked, given.search, given.arms.split(","))
        return
    seeds = sorted({int(place.name.partition("-")[0]) for place in given.folder.glob("*-flat")})
    print(f"Seeds {', '.join(map(str, seeds))}; 500 people, 156 training questions, one epoch.\n")
    for table in (comparisons(given.folder, seeds), classes(given.folder), upkeep_table(given.folder)):
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main()
