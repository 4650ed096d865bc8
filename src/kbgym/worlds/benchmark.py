"""Named benchmarks, and their export as a data set with the golds in separate files.

A name always denotes the same bytes, with one world per seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import atomic_dir, digest, pretty, read_file, write_lines
from kbgym.errors import BadInput
from kbgym.worlds.people import generate
from kbgym.worlds.people3 import Dials
from kbgym.worlds.people3 import generate as generate_v3
from kbgym.worlds.updates import updates
from kbgym.worlds.world import SPLITS, World

NAMES: dict[str, Callable[[int], World]] = {
    "kbgym-people-v2": lambda seed: generate(seed=seed),
    "kbgym-people-v2-hard": lambda seed: generate(seed=seed, hard=True),
    "kbgym-people-v3": lambda seed: generate_v3(seed=seed),
    "kbgym-people-v3-pages": lambda seed: generate_v3(seed=seed, dials=Dials(passage=8)),
    "kbgym-people-v3-5k": lambda seed: generate_v3(5_000, seed),
    "kbgym-people-v3-50k": lambda seed: generate_v3(50_000, seed),
    "kbgym-people-v3-training": lambda seed: generate_v3(seed=seed, dials=Dials(wordings="open")),
}
Table = dict[str, list[dict[str, Any]]]  # the rows of each part
GOLDS = "golds"
_OF_GOLD = ("golds", "support", "unanswerable")


def named(name: str, seed: int) -> World:
    """Return the world of a named benchmark and a seed; raise BadInput if the name is unknown."""
    if name not in NAMES:
        raise BadInput(f"there is no benchmark {name!r}; there are {', '.join(NAMES)}.")
    return NAMES[name](seed)


def export(name: str, seeds: Sequence[int], asked: str, out: Path) -> str:
    """Write worlds of a benchmark as JSONL with a dataset card; return their hash."""
    if len(set(seeds)) != len(seeds):
        raise BadInput("a seed is given twice.")
    worlds = {seed: named(name, seed) for seed in seeds}
    with atomic_dir(out) as folder:
        parts: Table = {}
        for seed, world in worlds.items():
            for part, rows in _rows(world).items():
                parts.setdefault(part, []).extend({"seed": seed, **row} for row in rows)
        for part, rows in parts.items():
            write_lines(folder / f"{part}.jsonl", rows)
        whole = digest(b"".join(read_file(folder / f"{part}.jsonl") for part in sorted(parts)))
        (folder / "README.md").write_text(_card(name, asked, worlds, whole, parts), encoding="utf-8")
        about = {"benchmark": name, "seeds": list(seeds), "hash": whole}
        (folder / "benchmark.json").write_text(pretty(about), encoding="utf-8")
    return whole


def _rows(world: World) -> Table:
    rounds = updates(world) if "updates" in world.facts else ()
    asked = [*world.questions, *(question for update in rounds for question in update.questions)]
    questions: list[dict[str, Any]] = msgspec.to_builtins(asked)
    found = {
        "documents": [{"id": document.id, "text": document.text} for document in world.documents],
        "questions": [{name: row[name] for name in row if name not in _OF_GOLD} for row in questions],
        GOLDS: [{name: row[name] for name in ("id", *_OF_GOLD)} for row in questions],
    }
    if rounds:
        found["updates"] = [
            {"round": update.round, "id": document.id, "text": document.text}
            for update in rounds
            for document in update.documents
        ]
    return found


def _card(name: str, asked: str, worlds: dict[int, World], whole: str, parts: Table) -> str:
    documents = len(parts["documents"])
    rows = [(seed, len(world.documents), *(len(world.split(one)) for one in SPLITS)) for seed, world in worlds.items()]
    return (
        (files("kbgym.worlds") / "dataset_card.md")
        .read_text(encoding="utf-8")
        .format(
            name=name,
            asked=asked,
            hash=whole,
            size="n<1K" if documents < 1_000 else "1K<n<10K" if documents < 10_000 else "10K<n<100K",
            rows="\n".join(f"| {' | '.join(map(str, row))} |" for row in rows),
            configs="\n".join(f"- config_name: {part}\n  data_files: {part}.jsonl" for part in parts),
            updates=_UPDATES if "updates" in parts else "",
        )
    )


_UPDATES = """- `updates`: `seed`, `round`, `id`, `text`. Documents that are added in each round; the splits that end in
  `-updateN` are asked after round N. The splits that end in `-reworded` ask the test questions in held-out wordings.
"""
