"""Gain of training by the general agents on text without a known grammar: five draws of the questions of five sets.

    python benchmarks/trained_text.py [--data FOLDER] [--work FOLDER] [--seeds N] [--sets NAME,NAME] [--table]

HotpotQA and MuSiQue (100 questions each, drawn so that no page supports questions of two splits), the example corpus
skarn, and two generated worlds with grammars the agents are not told, people and PhantomWiki. Each store is trained by
`paper` and by `class`, from the flat documents and from `pages`; hybrid search, rich observations, one epoch. A pass
that never saw all supports counts with its whole budget. Intervals are 95%, over questions inside the draws;
draws of one set share questions, so they are on the narrow side. Every training and exam is kept in --work, and a run
that was interrupted goes on; `--table` only prints what is there.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from kbgym.agents.general.reader import GeneralReader
from kbgym.analysis.statistics import Interval, Sampled, difference, ratio
from kbgym.api import teach, trainer_for
from kbgym.api.factory import agents_named, embedder_named, settings_with
from kbgym.baselines import build_arm
from kbgym.corpus.documents import ReadingOptions
from kbgym.corpus.importing import make
from kbgym.corpus.public import read_public
from kbgym.errors import KbgymError
from kbgym.search.factory import engine_for
from kbgym.store import Store
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import Row, examine, read_rows
from kbgym.training.run import Run, Settings
from kbgym.worlds import people
from kbgym.worlds.kinds import search_of
from kbgym.worlds.splits import with_pages_apart
from kbgym.worlds.world import Question, World

HERE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("KBGYM_DATA", HERE.parent / "shared" / "data"))
FILES = {"hotpotqa": "hotpotqa-100.json", "musique": "musique-100.jsonl"}
SKARN = HERE / "examples" / "skarn"
SETS = ("hotpotqa", "musique", "skarn", "people", "phantomwiki")
STORES = ("flat", "pages", "paper", "class", "paper from pages", "class from pages")
GENERATED = ("people", "phantomwiki")  # flat and trained from flat are enough there: they have no pages
MOST = 40  # questions a group of a generated world
BUDGET = Settings().forward_budget


def world_of(name: str, seed: int, data: Path) -> World:
    """A set with its questions in the splits of a draw."""
    match name:
        case "skarn":
            return make([SKARN / "pages"], SKARN / "questions.jsonl", ReadingOptions(links=True), seed).world
        case "people":
            return people.generate(200, seed)
        case "phantomwiki":
            return _phantomwiki(seed)
    return with_pages_apart(_public(name, data), seed)


@cache
def _public(name: str, data: Path) -> World:
    return read_public(name, data / FILES[name], None, 0).world


def _phantomwiki(seed: int) -> World:
    from kbgym.worlds.phantomwiki import build

    how = f"--seed {1 + seed} --num-family-trees 4 --num-questions-per-type 60 --article-format json"
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["pw-generate", "-od", scratch, *how.split(), "--question-format", "json"], check=True)
        return build(Path(scratch))[0]


def groups(world: World) -> dict[str, Sequence[Question]]:
    trained = world.split("train")
    rest = [one for one in world.questions if one.split != "train"] if len(world.questions) < 200 else None
    return {"trained": trained[:MOST] if rest is None else trained, "unseen": rest or world.split("test_in")[:MOST]}


def store_of(world: World, name: str, place: Path) -> Store:
    """An arm's store, or a trained one, which is kept at its place."""
    strategy, _, begins = name.partition(" from ")
    if strategy in ("flat", "pages"):
        return build_arm(strategy, world).store
    first = build_arm(begins, world).store if begins else None
    questions = len(groups(world)["trained"])
    said = f"{begins} {first.fingerprint[:16]}" if first is not None else ""
    settings = settings_with(how(world), strategy=strategy, questions=questions, begins=said)
    run = Run.open_or_create(place, world, settings, first)
    teach(trainer_for(run, agents_named(settings, world=world)))
    return StoreFolder(place).store()


def how(world: World) -> Settings:
    """As `kbgym train --agent general` would, for one epoch."""
    return settings_with(
        search=search_of(world), observations="rich", reader="general", curator="general", epochs=1, eval=False
    )


def measure(name: str, seed: int, folder: Path, data: Path) -> None:
    """Every exam of a draw that is not there yet."""
    world: World | None = None
    for store in STORES[:4] if name in GENERATED else STORES:
        files = {group: exam_file(folder, name, seed, store, group) for group in ("trained", "unseen")}
        if all(file.with_suffix(".done").exists() for file in files.values()):
            continue
        world = world or world_of(name, seed, data)
        built = store_of(world, store, folder / f"{name}-{seed}-{store.replace(' ', '-')}")
        engine = engine_for(built, embedder_named(""), search=how(world).search)
        for group, questions in groups(world).items():
            asyncio.run(examine(built, engine, questions, GeneralReader, files[group], how(world)))
            written = sum(record.flag == "authored" for record in built)
            files[group].with_suffix(".done").write_text(f"{built.links} {written}")
        print(f"{name} {seed} {store}", file=sys.stderr, flush=True)


def exam_file(folder: Path, name: str, seed: int, store: str, group: str) -> Path:
    return folder / f"exam-{name}-{seed}-{store.replace(' ', '-')}-{group}.jsonl"


# -- the table --------------------------------------------------------------------------------------------------------


def until(row: Row) -> float:
    found = row.evidence.actions if row.evidence is not None else None
    return float(BUDGET if found is None else found)


def within(row: Row) -> float:
    return float(row.evidence is not None and row.evidence.all_within(8))


def score(row: Row) -> float:
    return row.f1 or 0.0


def pairs_of(folder: Path, name: str, seeds: range, store: str, group: str) -> list[tuple[list[Row], list[Row]]]:
    """The rows of every draw that was measured, beside those of the flat store."""
    found = []
    for seed in seeds:
        own, flat = (exam_file(folder, name, seed, one, group) for one in (store, "flat"))
        if own.with_suffix(".done").exists() and flat.with_suffix(".done").exists():
            base = {row.id: row for row in read_rows(flat)}
            rows = read_rows(own)
            found.append((rows, [base[row.id] for row in rows]))
    return found


def table(folder: Path, sets: Sequence[str], seeds: range) -> None:
    print(
        "| set, questions | store | draws, n | indexes, links | all evidence within 8 | minus flat "
        "| actions to all evidence | over flat | all actions over flat | F1 minus flat |"
    )
    print("|" + " --- |" * 10)
    for name in sets:
        for group in ("trained", "unseen"):
            for store in STORES:
                if pairs := pairs_of(folder, name, seeds, store, group):
                    print(_line(folder, name, group, store, pairs), flush=True)


def _line(folder: Path, name: str, group: str, store: str, pairs: list[tuple[list[Row], list[Row]]]) -> str:
    rows = [row for own, _ in pairs for row in own]
    told = [row for row in rows if _is_told(row)]

    def against(measure: Callable[[Row], float], how: str, only: Callable[[Row], bool] = lambda row: True) -> str:
        if store == "flat" or not any(map(only, rows)):
            return ""
        draws = [([*filter(only, own)], [*filter(only, flat)]) for own, flat in pairs]
        # The draws share their questions: what happens to one happens to it in every draw.
        worlds = [Sampled([*map(measure, a)], [*map(measure, b)], [[row.id] for row in a]) for a, b in draws if a]
        return _said((ratio if how == "ratio" else difference)(worlds, apart=False).interval, how)

    notes = [file.read_text().split() for file in folder.glob(f"exam-{name}-?-{store.replace(' ', '-')}-{group}.done")]
    links, written = (sum(int(note[place]) for note in notes) / len(notes) for place in (0, 1))
    cells = [
        f"{name}, {group}",
        store,
        f"{len(pairs)}, {len(rows)}",
        f"{written:,.0f}, {links:,.0f}",
        f"{sum(map(within, told)) / len(told):.2f}" if told else "",
        against(within, "difference", _is_told),
        f"{sum(map(until, told)) / len(told):.2f}" if told else "",
        against(until, "ratio", _is_told),
        against(lambda row: float(row.actions), "ratio"),
        against(score, "difference"),
    ]
    return f"| {' | '.join(cells)} |"


def _is_told(row: Row) -> bool:
    return row.evidence is not None and row.evidence.supports > 0


def _said(found: Interval, how: str) -> str:
    sign = "" if how == "ratio" else "+"
    return f"{found.value:{sign}.2f} [{found.low:{sign}.2f}, {found.high:{sign}.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "kbgym-trained-text")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    sets = [name for name in given.sets.split(",") if name not in FILES or (given.data / FILES[name]).is_file()]
    if left := [name for name in given.sets.split(",") if name not in sets]:
        print(f"Not measured, the files are not here (see --data): {', '.join(left)}.\n")
    given.work.mkdir(parents=True, exist_ok=True)
    for seed in range(0 if given.table else given.seeds):
        for name in sets:
            try:
                measure(name, seed, given.work, given.data)
            except KbgymError as error:
                print(f"{name} {seed}: {error}", file=sys.stderr, flush=True)
    table(given.work, sets, range(given.seeds))


if __name__ == "__main__":
    main()
