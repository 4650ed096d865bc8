"""The part of docs/results.md about the small model: what it reads and trains, from an experiment it played in.

    kbgym experiment run paper --seeds 201-205 --arms flat,hipporag --strategy paper,class --readers reference,small,...

`examples/small-model/play.py` and `curate.py` fill such a folder on a graphics card. `cells_of` takes from it what the
page shows; `result_pages.py` keeps that in docs/results.json, and `section` and `sentence` write it.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

SETS = {"pooled": "the four groups", "test_in": "test_in", "test_out": "test_out"}
READER, CURATED = "small", "trained-small"


def cells_of(folder: Path) -> dict[str, Any]:
    """Every number that is shown, by the statistics of the report."""
    from kbgym.analysis.results import open_results
    from kbgym.analysis.tables.arms import difference_cell, mean_cell, rho_cell
    from kbgym.analysis.tables.stores import index_quality

    results = open_results(folder)
    read = results.readers[READER]
    about = {
        "seeds": [seed.number for seed in results.seeds],
        "arms": {arm: results.label(arm) for arm in results.arms},
        "played": list(read.arms),
        "readers": {name: list(of.arms) for name, of in results.readers.items()},
    }
    cells: dict[str, str] = {}
    for name, of in results.readers.items():
        for arm in of.arms:
            for group in SETS:
                for field, digits in (("f1", 3), ("actions", 2)):
                    cell = mean_cell(of, "", arm, group, field, digits)
                    cells[f"{name}/{arm}/{group}/{field}"] = cell.text
                if arm != "flat":
                    cells[f"{name}/{arm}/{group}/difference"] = difference_cell(of, "", arm, group).text
                    cells[f"{name}/{arm}/{group}/rho"] = rho_cell(of, "", arm, group).text
                if arm == CURATED and "trained-class" in of.arms:
                    beside = difference_cell(of, "", arm, group, base="trained-class")
                    cells[f"{name}/{arm}/{group}/beside"] = beside.text
    for arm in read.arms:
        groups = (*read.groups, "test_in", "test_out")
        rows = [row for seed in read.seeds for group in groups for row in seed.rows(arm, group)]
        used = [row.usage or {} for row in rows]
        flawed, asked = (sum(one.get(part, 0) for one in used) for part in ("malformed", "requests"))
        cells[f"malformed/{arm}"] = f"{flawed:,} of {asked:,}"
        cells[f"n/{arm}"] = f"{len(rows):,}"
    for arm in results.trainings:
        quality = index_quality(results, arm)
        if quality is not None:
            for cell in quality.lines[-1].cells[:4]:
                if cell is not None:
                    cells[f"quality/{arm}/{cell.id.rpartition('/')[2]}"] = cell.text
    return {"about": about, "cells": {id: {"text": text} for id, text in sorted(cells.items())}}


def section(kept: dict[str, Any]) -> list[str]:
    """The part of the page."""
    about, cells = kept["about"], kept["cells"]
    arms, seeds = about["arms"], ", ".join(map(str, about["seeds"]))

    def cell(id: str) -> str:
        return str(cells.get(id, {}).get("text", "–"))

    def table(heads: list[str], rows: list[list[str]]) -> str:
        lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
        return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])

    parts = [
        "## A small language model",
        f"SmolLM2-135M, taught by our rules ([how](small-model.md)), on the standard world, seeds {seeds}, which it "
        "had never seen. It says how structure helps a weak reader that makes mistakes, not how well models reason. "
        "Passes in which it gave no valid call have no score. `pages` is not among the arms: these documents have no "
        "pages, so that it is the flat store. Where 16 lessons are under way at once each is lent fewer errands, and "
        "fewer of the narrow indexes are made, by rules as by the small model.",
    ]
    played = about["played"]
    for group, title in SETS.items():
        heads = ["", "F1", "actions", "F1 minus flat's", "actions over flat's", "its teacher: F1", "actions"]
        rows = [
            [
                arms[arm],
                *(cell(f"{READER}/{arm}/{group}/{field}") for field in ("f1", "actions", "difference", "rho")),
                *(cell(f"reference/{arm}/{group}/{field}") for field in ("f1", "actions")),
            ]
            for arm in played
        ]
        parts += [f"### It reads: {title}", table(heads, rows)]
    rows = [[arms[arm], cell(f"malformed/{arm}"), cell(f"n/{arm}")] for arm in played]
    parts += ["### Malformed calls, all sets", table(["", "of its calls", "questions"], rows)]
    trained = [arm for arm in arms if arm.startswith("trained-")]  # the first is the paper's way
    names = ("n", "degree", "precision", "recall")
    rows = [[arms[arm], *(cell(f"quality/{arm}/{name}") for name in names)] for arm in trained]
    parts += ["### It trains: the indexes", table(["", "indexes", "links an index", "precision", "recall"], rows)]
    for group, title in SETS.items():
        shown = [(name, arm) for name, of in about["readers"].items() for arm in ("flat", *trained[1:]) if arm in of]
        fields = ("f1", "actions", "rho", "beside")
        rows = [
            [f"{name}, {arms[arm]}", *(cell(f"{name}/{arm}/{group}/{field}") for field in fields)]
            for name, arm in shown
        ]
        heads = ["", "F1", "actions", "actions over flat's", "F1 minus the rules' store's"]
        parts += [f"### Its store under other readers: {title}", table(heads, rows)]
    return parts


def sentence(kept: dict[str, Any]) -> str:
    """The line of the README."""
    cells = kept["cells"]
    flat, trained = (
        f"F1 {cells[f'{READER}/{arm}/pooled/f1']['text']} in {cells[f'{READER}/{arm}/pooled/actions']['text']} actions"
        for arm in ("flat", "trained-class")
    )
    said = (
        "A language model of 135 million parameters, taught by our rules and played offline (`--agent small`), reads "
        f"the flat store with {flat} a question and the store trained by `class` with {trained}; over "
        f"{len(kept['about']['seeds'])} worlds it had never seen: [docs/small-model.md](docs/small-model.md)."
    )
    return fill(said, 120, break_long_words=False, break_on_hyphens=False)
