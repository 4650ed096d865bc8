"""Writes docs/benchmark.md: what a solver that knows only the sentences had to assume to reach every gold.

    python scripts/solver_list.py            # worlds of seeds 0 and 1, standard and hard
    python scripts/solver_list.py --check    # is the page what it would write?

The solver is tests/worlds/second_path.py, which shares no code with the package and says itself what each of its rules
assumes; a template whose gold it misses is shown as missed, never left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "worlds"))
from second_path import ASSUMED, SentenceReader, as_golds, assumed  # noqa: E402

from kbgym.worlds.people import TEMPLATES, generate  # noqa: E402
from kbgym.worlds.world import World  # noqa: E402

PAGE = ROOT / "docs" / "benchmark.md"
SEEDS = (0, 1)
WORLDS = {"standard": False, "hard": True}


def reached(worlds: Iterable[World]) -> dict[str, tuple[int, int, set[str]]]:
    """By template: how many questions there are, how many golds the solver reaches, what that assumes."""
    found: dict[str, tuple[int, int, set[str]]] = {}
    for world in worlds:
        reader = SentenceReader(document.text for document in world.documents)
        for one in world.questions:
            n, right, names = found.get(one.template, (0, 0, set()))
            is_right = as_golds(reader.answer(one.text)) == set(one.golds)
            found[one.template] = (n + 1, right + is_right, {*names, *assumed(one.text)})
    return found


def page() -> str:
    of_worlds = {name: reached(generate(500, seed, hard=hard) for seed in SEEDS) for name, hard in WORLDS.items()}
    rows = []
    for name, template in TEMPLATES.items():
        counts, names = [], set[str]()
        for found in of_worlds.values():
            n, right, declared = found.get(name, (0, 0, set()))
            counts.append(f"{right} of {n}" if n else "not asked")
            names |= declared
        listed = ", ".join(one for one in ASSUMED if one in names)
        rows.append(f"| {template.class_} | {template.text.format('A', 'B', 'C')} | {' | '.join(counts)} | {listed} |")
    lines = [
        "# The people benchmark: what its answers rest on",
        "",
        "Every gold is worked out from the world's facts. A second solver, which shares no code with kbgym and knows",
        "only the documents' sentences, answers the same questions (`tests/worlds/second_path.py`); the table says how",
        "many golds it reaches and what it had to assume, as it says itself. Version 2 of the benchmark, seeds 0, 1,",
        "standard and hard; written by `scripts/solver_list.py`, checked by a test.",
        "",
        "| class | question | reached | reached, hard | assumed |",
        "| --- | --- | ---: | ---: | --- |",
        *rows,
        "",
        "What is assumed:",
        "",
        *(f"- *{name}*: {text}." for name, text in ASSUMED.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        kept = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        sys.exit(0 if kept == page() else "docs/benchmark.md is stale: run python scripts/solver_list.py")
    PAGE.write_text(page(), encoding="utf-8")
