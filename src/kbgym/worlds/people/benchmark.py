"""The named versions of the people benchmark, and their export as a data set with the golds kept apart.

A name stands for bytes that never change: `kbgym-people-v1`, `kbgym-people-v2` and `kbgym-people-v2-hard`, each with
one world per seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import atomic_dir, digest, pretty, read_file, write_lines
from kbgym.errors import BadInput, Missing
from kbgym.worlds.people import generate
from kbgym.worlds.world import SPLITS, World

NAMES: dict[str, dict[str, Any]] = {
    "kbgym-people-v1": {"version": 1},
    "kbgym-people-v2": {"version": 2},
    "kbgym-people-v2-hard": {"version": 2, "hard": True},
}
Table = dict[str, list[dict[str, Any]]]  # the rows of each part
GOLDS = "golds"
_OF_GOLD = ("golds", "support", "unanswerable")

_IDS = {
    1: "Ids of this version tell the order in which documents were made, and with that whom they are about.",
    2: "Ids are codes that tell neither order nor kind.",
}


def named(name: str, seed: int) -> World:
    """Return the world of a named benchmark and a seed; raise BadInput if the name is unknown."""
    if name not in NAMES:
        raise BadInput(f"there is no benchmark {name!r}; there are {', '.join(NAMES)}.")
    return generate(seed=seed, **NAMES[name])


def export(name: str, seeds: Sequence[int], asked: str, out: Path, parquet: bool = False) -> str:
    """Write worlds of a benchmark as JSONL, optionally also as Parquet, with a dataset card; return their hash."""
    if len(set(seeds)) != len(seeds):
        raise BadInput("a seed is named twice.")
    worlds = {seed: named(name, seed) for seed in seeds}
    with atomic_dir(out) as folder:
        parts: Table = {"documents": [], "questions": [], GOLDS: []}
        for seed, world in worlds.items():
            for part, rows in _rows(world).items():
                parts[part] += [{"seed": seed, **row} for row in rows]
        for part, rows in parts.items():
            write_lines(folder / f"{part}.jsonl", rows)
            if parquet:
                _write_parquet(folder / f"{part}.parquet", rows)
        whole = digest(b"".join(read_file(folder / f"{part}.jsonl") for part in sorted(parts)))
        (folder / "README.md").write_text(_card(name, asked, worlds, whole, len(parts["documents"])), encoding="utf-8")
        about = {"benchmark": name, "seeds": list(seeds), "hash": whole}
        (folder / "benchmark.json").write_text(pretty(about), encoding="utf-8")
    return whole


def _rows(world: World) -> Table:
    questions: list[dict[str, Any]] = msgspec.to_builtins(world.questions)
    return {
        "documents": [{"id": document.id, "text": document.text} for document in world.documents],
        "questions": [{name: row[name] for name in row if name not in _OF_GOLD} for row in questions],
        GOLDS: [{name: row[name] for name in ("id", *_OF_GOLD)} for row in questions],
    }


def _card(name: str, asked: str, worlds: dict[int, World], whole: str, documents: int) -> str:
    rows = [(seed, len(world.documents), *(len(world.split(one)) for one in SPLITS)) for seed, world in worlds.items()]
    card = (files("kbgym.worlds.people") / "dataset_card.md").read_text(encoding="utf-8")
    return card.format(
        name=name,
        asked=asked,
        hash=whole,
        size="n<1K" if documents < 1_000 else "1K<n<10K" if documents < 10_000 else "10K<n<100K",
        rows="\n".join(f"| {' | '.join(map(str, row))} |" for row in rows),
        ids=_IDS[NAMES[name]["version"]],
    )


def _write_parquet(file: Path, rows: list[dict[str, Any]]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise Missing("Parquet needs pyarrow: run `pip install 'kbgym[research]'`, or leave --parquet out.") from error
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
