"""The benchmark by name, and worlds of it as a data set: documents and questions on one side, golds on the other.

A name stands for bytes that never change: `kbgym-people-v1`, `kbgym-people-v2` and `kbgym-people-v2-hard`, each a world
a seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

_CARD = """---
license: cc0-1.0
language: en
pretty_name: {name}
task_categories: [question-answering, text-retrieval]
size_categories: [{size}]
---
# {name}

Worlds of fictional people: one-sentence documents, and questions over them with exact golds, made by
`kbgym export benchmark --name {name} --seeds {asked}`. The same command gives the same bytes; their hash is
`{hash}`.

| seed | documents | {splits} |
|---|---|{rules}|
{rows}

- `documents`: `seed`, `id`, `text`. An exam's store holds all documents of one seed and nothing else.
- `questions`: `seed`, `id`, `split`, `class`, `template`, `text`, `keys`. `train`, `test_in` and `eval` share their
  templates, `test_out` and a part of `eval` have templates that training never sees; no text is in two splits.
- `golds`, apart from the questions so that these can be handed out alone: every accepted answer, `support` (the
  documents it depends on), `unanswerable` (the answer is that the store does not hold it).

Nobody in it exists, so nothing in it can have been learnt elsewhere; worlds of other seeds are as many as one likes.
Seeds that were published are known to whoever read them: examine on seeds that were not. {ids}
"""
_IDS = {
    1: "Ids of this version tell the order in which documents were made, and with that whom they are about.",
    2: "Ids are codes that tell neither order nor kind.",
}


def named(name: str, seed: int) -> World:
    """One world of a benchmark."""
    if name not in NAMES:
        raise BadInput(f"there is no benchmark {name!r}; there are {', '.join(NAMES)}.")
    return generate(seed=seed, **NAMES[name])


def export(name: str, seeds: Sequence[int], asked: str, out: Path, parquet: bool = False) -> str:
    """Write worlds of a benchmark as JSONL, or as Parquet too, with a card; gives the hash of what was written."""
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
    def cells(row: Iterable[object]) -> str:
        return f"| {' | '.join(map(str, row))} |"

    def lines() -> Iterator[str]:
        for seed, world in worlds.items():
            yield cells([seed, len(world.documents), *(len(world.split(split)) for split in SPLITS)])

    return _CARD.format(
        name=name,
        asked=asked,
        hash=whole,
        size="n<1K" if documents < 1_000 else "1K<n<10K" if documents < 10_000 else "10K<n<100K",
        splits=" | ".join(SPLITS),
        rules="|".join("---" for _ in SPLITS),
        rows="\n".join(lines()),
        ids=_IDS[NAMES[name]["version"]],
    )


def _write_parquet(file: Path, rows: list[dict[str, Any]]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise Missing("Parquet needs pyarrow: run `pip install 'kbgym[datasets]'`, or leave --parquet out.") from error
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
