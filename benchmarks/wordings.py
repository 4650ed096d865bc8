"""Gain of training for needs asked again in other words, and its cost to other questions.

    python benchmarks/wordings.py [--data FOLDER] [--work FOLDER] [WORLD ...]

HotpotQA and MuSiQue (100 questions each), each with 20 trained questions asked again in words of our own
(`wordings.tsv`), and any imported worlds with groups of questions. The general agents train on the training split with
the gate, hybrid search, ranking `slot`. Also trained with wrong answers as a control. `10 results` is the flat store
with ten results, more than a page and its slot show. Intervals are 95%, over questions. Prints Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kbgym.agents.general.reader import GeneralReader
from kbgym.analysis.statistics import Sampled, difference
from kbgym.api import teach, trainer_for
from kbgym.api.factory import agents_named, embedder_named, settings_with
from kbgym.baselines import build_arm
from kbgym.corpus.public import read_public
from kbgym.experiments.controls import controlled
from kbgym.search.factory import engine_for
from kbgym.store import Store
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import Row, examine
from kbgym.training.run import Run, Settings
from kbgym.worlds.kinds import search_of
from kbgym.worlds.world import Question, World

HERE = Path(__file__).resolve()
DATA = Path(os.environ.get("KBGYM_DATA", HERE.parents[2] / "shared" / "data"))
FILES = {"hotpotqa": "hotpotqa-100.json", "musique": "musique-100.jsonl"}


def with_wordings(name: str, data: Path) -> World:
    """Return a public set whose training questions are the 20 that are asked again; the others are unseen."""
    world = read_public(name, data / FILES[name], None, 0).world
    with HERE.with_suffix(".tsv").open(encoding="utf-8", newline="") as file:
        wordings = {row["id"]: row["wording"] for row in csv.DictReader(file, delimiter="\t") if row["set"] == name}
    asked = list[Question]()
    for question in world.questions:
        if (wording := wordings.get(question.id)) is not None:
            asked.append(msgspec.structs.replace(question, group="trained"))
            again = {"id": f"{question.id}-again", "text": wording, "split": "test_in", "group": "paraphrase"}
            asked.append(msgspec.structs.replace(question, **again))
        elif question.split != "train":  # the other training questions are left out
            asked.append(msgspec.structs.replace(question, group="unseen" if question.split == "test_in" else "eval"))
    return World(world.documents, tuple(asked), world.facts)


def settings_of(world: World) -> Settings:
    return settings_with(
        search=search_of(world),
        observations="rich",
        ranking="slot",
        reader="general",
        curator="general",
        strategy="class",
        gate=20,
        questions=len(world.split("train")),
    )


def trained(world: World, place: Path, control: str = "") -> Store:
    settings, first = settings_of(world), None
    if control:
        world, settings, first = controlled(world, control, settings)
    run = Run.open_or_create(place, world, settings, first)
    teach(trainer_for(run, agents_named(settings, world=world)))
    return StoreFolder(place).store()


def first_page(row: Row) -> float:
    assert row.evidence is not None
    return sum(seen == 1 for seen in row.evidence.seen) / row.evidence.supports


MEASURES: dict[str, Callable[[Row], float]] = {
    "first page": first_page,
    "all within 4": lambda row: float(row.evidence is not None and row.evidence.all_within(4)),
    "actions": lambda row: float(row.actions),
    "characters": lambda row: float(row.characters),
    "F1": lambda row: row.f1 or 0.0,
}


def table(name: str, world: World, work: Path) -> None:
    flat = build_arm("flat", world).store
    stores = {
        "flat": flat,
        "trained": trained(world, work / f"{name}-trained"),
        "wrong answers": trained(world, work / f"{name}-wrong", "wrong-answers"),
    }
    questions = [*world.split("train"), *world.split("test_in")]
    group = {question.id: question.group for question in questions}
    rows: dict[str, list[Row]] = {}
    for store, built in stores.items():
        engine = engine_for(built, embedder_named(""), search=search_of(world))
        rows[store] = asyncio.run(examine(built, engine, questions, GeneralReader, settings=settings_of(world)))
    engine = engine_for(flat, embedder_named(""), search=search_of(world))
    ten = {one.id: {id for id, _ in engine.search(one.text, 0, 10)} & {*one.support} for one in questions}
    for store in stores:
        written = sum(record.flag == "authored" for record in stores[store])
        for of in dict.fromkeys(group.values()):
            pairs = [
                (row, base)
                for row, base in zip(rows[store], rows["flat"], strict=True)
                if group[row.id] == of and row.evidence is not None and row.evidence.supports
            ]
            if not pairs:
                continue
            wide = [len(ten[row.id]) / row.evidence.supports for row, _ in pairs if row.evidence]
            cells = [f"{name}, {of}", f"{store} ({written})", str(len(pairs)), f"{sum(wide) / len(wide):.2f}"]
            cells += [_cell(measure, pairs, store) for measure in MEASURES.values()]
            print(f"| {' | '.join(cells)} |", flush=True)


def _cell(measure: Callable[[Row], float], pairs: Sequence[tuple[Row, Row]], store: str) -> str:
    own, base = [measure(row) for row, _ in pairs], [measure(row) for _, row in pairs]
    mean = f"{sum(own) / len(own):,.2f}" if max(own) < 1_000 else f"{sum(own) / len(own):,.0f}"
    if store == "flat":
        return mean
    found = difference([Sampled(own, base)], scores=max(own) <= 1).interval
    return f"{mean} ({found.value:+,.2f} [{found.low:+,.2f}, {found.high:+,.2f}])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("worlds", nargs="*", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path(tempfile.mkdtemp(prefix="kbgym-wordings-")))
    given = parser.parse_args()
    print(f"| questions | store (written) | n | 10 results | {' | '.join(MEASURES)} |")
    print("|" + " --- |" * (4 + len(MEASURES)))
    for world in given.worlds:
        table(world.name, World.load(world), given.work)
    for name in FILES if not given.worlds else ():
        if (given.data / FILES[name]).is_file():
            table(name, with_wordings(name, given.data), given.work)
        else:
            print(f"\n{name} was not measured: {FILES[name]} is not in --data.")


if __name__ == "__main__":
    main()
