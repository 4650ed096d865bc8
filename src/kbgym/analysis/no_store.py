"""The sentence every report on public text has: what the reader scores without a store."""

from __future__ import annotations

from collections.abc import Sequence

from kbgym.analysis.results import Results, Seed
from kbgym.canonical import read_lines
from kbgym.training.exam import Row
from kbgym.training.no_store import ARM, is_public, no_store_file


def no_store_note(results: Results) -> list[str]:
    """One note on a world whose text is public, none on any other."""
    if not any(is_public(seed.world) for seed in results.seeds):
        return []
    rows = [_rows(seed, group) for seed in results.seeds for group in results.groups]
    known = "The text of this world is public and models may know it"
    if not all(rows):
        how = (
            f"run the experiment again with --arms {ARM}"
            if results.plan is not None
            else "examine the run again with `kbgym exam --out exams/flat-GROUP.jsonl`, which asks without a store too"
        )
        return [f"{known}; its score without a store is missing: {how}."]
    flat = [seed.rows("flat", group) for seed in results.seeds for group in results.groups]
    return [
        f"{known}: without a store the same reader scores F1 {_f1(rows):.3f} on the same {sum(map(len, rows))} "
        f"questions, with the untrained store {_f1(flat):.3f}. Only what lies above the first number is the store's."
    ]


def _f1(groups: Sequence[Sequence[Row]]) -> float:
    scored = [row.f1 for rows in groups for row in rows if row.f1 is not None]
    return sum(scored) / len(scored) if scored else 0.0


def _rows(seed: Seed, group: str) -> Sequence[Row]:
    if seed.has(ARM, group):
        return seed.rows(ARM, group)
    beside = no_store_file(seed.file("flat", group))
    return tuple(read_lines(beside, Row)) if beside.exists() else ()
