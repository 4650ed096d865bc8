"""Writes docs/results.md, docs/paper.md and README.md's table from the folders of experiments; no number is typed.

    kbgym experiment run paper --seeds 20-29 --set readers=all --set workers=2 --out exp/paper
    kbgym experiment run paper --seeds 20-29 --set readers=all --set workers=2 --set hard=true --out exp/hard
    kbgym experiment run paper-original --world paper-universe.json --out exp/original
    kbgym report exp/paper; kbgym report exp/hard
    python scripts/result_pages.py exp/paper exp/hard --original exp/original --took "24 and 21 minutes on two cores"
    python scripts/result_pages.py --check

Every number is a cell of a report. The cells used are kept in docs/results.json; --check writes both pages from that
file once more and compares them. Without a folder the pages are written from that file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbgym.analysis.cells import shown
from kbgym.analysis.published import figures

DOCS = Path(__file__).resolve().parent.parent / "docs"
KEPT = DOCS / "results.json"
README = DOCS.parent / "README.md"
MARK, END = "<!-- results: written by scripts/result_pages.py -->", "<!-- /results -->"
SETS = {"pooled": "the four question groups together", "test_in": "test_in", "test_out": "test_out"}
MEASURES = {"f1": "F1", "actions": "actions a question", "characters": "characters read a question"}
AGAINST = {"actions_over_b3": "actions over B3's", "characters_over_b3": "characters over B3's"}


class Cells:
    """The cells of one experiment, by id; it remembers which were asked for."""

    def __init__(self, kept: dict[str, Any]) -> None:
        self.about: dict[str, Any] = kept["about"]
        self._cells: dict[str, Any] = kept["cells"]
        self._used: dict[str, Any] = {}

    def __call__(self, id: str) -> str:
        """What the report shows; a dash where the experiment has no such number."""
        return str(self._field(id, "text") or "–")

    def value(self, id: str, field: str = "value") -> float | None:
        found = self._field(id, field)
        return float(found) if isinstance(found, int | float) else None

    def _field(self, id: str, field: str) -> object:
        found = self._cells.get(id, {}).get(field)
        if found is not None:
            self._used.setdefault(id, {})[field] = found
        return found

    @property
    def kept(self) -> dict[str, Any]:
        return {"about": self.about, "cells": dict(sorted(self._used.items()))}


def opened(folder: Path) -> dict[str, Any]:
    """What a report says, and what the experiment was."""
    from kbgym.analysis.results import open_results

    report = folder / "report" / "cells.json"
    if not report.exists():
        sys.exit(f"{folder} has no report yet: run `kbgym report {folder}` first.")
    results = open_results(folder)
    plan = results.plan
    about = {
        "arms": {arm: results.label(arm) for arm in results.arms},
        "trainings": list(results.trainings),
        "readers": list(results.readers),
        "caption": results.caption(),
        "seeds": [seed.number for seed in results.seeds],
        "hard": plan is not None and plan.hard,
    }
    return {"about": about, "cells": json.loads(report.read_bytes())}


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def accuracy(cells: Cells, id: str) -> str:
    low, high = cells.value(id, "low"), cells.value(id, "high")
    if low is None or high is None:
        return "–"
    return "not lower" if low > -0.03 else "lower" if high < 0 else "undecided"


def results_page(cells: Cells) -> list[str]:
    """One experiment: the gradient, then every arm under every reader, then against B3, then what training costs."""
    about = cells.about
    arms, readers, trained = about["arms"], about["readers"], about["trainings"]
    groups = {"trained": "trained on", "both": "both keys", "one": "one key", "neither": "neither", "pooled": "pooled"}
    parts = [f"## {'The hard world' if about['hard'] else 'The standard world'}", about["caption"]]

    def block(title: str, names: dict[str, str], cell: Callable[[str, str], str], rows: dict[str, str]) -> None:
        found = [[label, *(cell(row, name) for name in names)] for row, label in rows.items()]
        parts.extend((f"### {title}", table(["", *names.values()], found)))

    compared = {arm: label for arm, label in arms.items() if arm not in ("flat", "nostore")}
    block("rho, by group", groups, lambda arm, group: cells(f"gradient/{arm}/{group}/rho"), compared)
    block("F1, by group", groups, lambda arm, group: cells(f"gradient/{arm}/{group}/f1"), arms)
    minus = "F1 minus the flat store's, by group"
    block(minus, groups, lambda arm, group: cells(f"gradient/{arm}/{group}/difference"), compared)
    not_lower = "Is accuracy shown not to be lower than flat's by 0.03 F1?"
    block(not_lower, groups, lambda arm, group: accuracy(cells, f"gradient/{arm}/{group}/difference"), compared)
    named = {reader: reader for reader in readers}
    for group, title in SETS.items():
        for field, name in MEASURES.items():
            block(f"{name}, {title}", named, lambda arm, r: cells(f"readers/{group}/{r}/{arm}/{field}"), arms)  # noqa: B023
        for arm in trained:
            rows = {**AGAINST, f"{group}/difference": "F1 minus B3's"}
            title_of = f"{arms[arm]} against B3, {title}"
            block(title_of, named, lambda field, r: cells(f"readers/{group}/{r}/{arm}/{field}"), rows)  # noqa: B023
    units = {"training": "training spent", "trained": "trained on", "pooled": "pooled"}
    units["pooled/hipporag"] = "pooled, against B3"
    rows = {f"{arm}/{unit}": f"{arms[arm]}, {unit}" for arm in trained for unit in ("actions", "characters")}
    block("Questions until training is paid for", units, lambda row, what: cells(f"break-even/{row}/{what}"), rows)
    return parts


def pages(experiments: list[Cells], kept: dict[str, Any]) -> dict[str, str]:
    command, took = kept["command"], kept["took"]
    how = f"Written by `scripts/result_pages.py`{f'; {took}' if took else ''}."
    said = f"{how} Intervals are 95%, the seed as the unit where several ran."
    results = [
        "# Results",
        said,
        f"```console\n{command}\n```",
        "Who reads: `reference` knows the benchmark's sentences and how our curators word an index; `neutral:*` know "
        "the sentences and not the wording; `general` knows neither. The reference agents, which are rules, trained.",
    ]
    if "fresh" in kept:
        results[1:1] = summary_page(kept)
    for cells in experiments:
        results += results_page(cells)
    return {"results.md": "\n\n".join(results) + "\n", "paper.md": "\n\n".join(paper_page(kept)) + "\n"}


def summary_page(kept: dict[str, Any]) -> list[str]:
    """One screen on top: what is claimed, who read, and what a reviewer will object."""
    fresh = Cells(kept["fresh"])
    arms, readers, seeds = fresh.about["arms"], fresh.about["readers"], fresh.about["seeds"]
    rows, heads = [], ["store"]
    for seed in seeds:
        heads += [f"actions over flat's, seed {seed}", f"F1 minus flat's, seed {seed}"]
    heads += [f"{what}, {reader}" for reader in readers[1:] for what in ("actions", "F1")]
    for arm, label in arms.items():
        row = [label]
        for seed in seeds:
            row += [fresh(f"seeds/{arm}/seed-{seed}/pooled/{what}") for what in ("rho", "difference")]
        for reader in readers[1:]:
            row += [fresh(f"readers/pooled/{reader}/{arm}/{what}") for what in ("actions", "f1")]
        if arm == "flat" or row[1] != "–":
            rows.append([*row, fresh(f"arms/{arm}/links")])
    kept["fresh"] = fresh.kept
    return [
        "## In short",
        f"Seeds that chose nothing. {fresh.about['caption']} All four question groups together; intervals of a seed "
        "are over its questions, clustered by key; * marks those that exclude 1 or 0.",
        table([*heads, "links"], rows),
        "What is claimed: training on 100 questions makes indexes that let a reader answer in fewer actions, with far "
        "fewer links than HippoRAG-2 style. Trained with permuted answers, the strategy `paper` gains much less, so it "
        "uses the answers. The oracle has every one-step and two-step index and was asked nothing: it bounds what "
        "questions can add.",
        "What a reviewer will object: the agents are rules that know the benchmark's sentences, so that accuracy is "
        "near 1 on the flat store and levels say nothing of a model; the strategy `class` is driven by the questions "
        "and hardly by their answers, since an oracle that was asked nothing comes as far; the unsupervised arms are "
        "our own implementations; it is one benchmark, made by us.",
        f"```console\n{kept['fresh_command']}\n```",
        "The tables below are of seeds 0 to 9 and of an earlier version of the curators; their commands make them "
        "anew.",
    ]


def paper_page(kept: dict[str, Any]) -> list[str]:
    """The paper's figures beside ours, from one experiment on the authors' universe."""
    original = Cells(kept["original"])
    rows = []
    for figure in figures():
        graded = original(f"grade/{figure.cell}")
        here = original(figure.cell)
        rows.append([figure.where, figure.what, shown(figure.value, figure.digits), here, f"`{figure.cell}`", graded])
    kept["original"] = original.kept
    counted = Counter(row[-1] for row in rows)
    return [
        "# The paper, figure by figure",
        "kbgym reimplements the paper; it does not reproduce it. The paper's reader and curator are gpt-5-mini, one "
        "seed; these are the reference agents, which are rules. Compare directions, not levels.",
        "The experiment is the paper's own: the authors' universe (5,864 documents) with their first 100 training "
        "questions, 34 questions a group, one seed.",
        "```console\nkbgym experiment run paper-original --world paper-universe.json --out exp/original\n```",
        original.about["caption"],
        f"Of {len(rows)} figures: {', '.join(f'{count} {name}' for name, count in counted.most_common())}.",
        "- *within the interval*: our 95% interval holds the paper's figure, or both are equal as printed;\n"
        "- *same direction*: both lie on the same side of 1, of 0, of the flat store, of B3 or of epoch 1, and so does "
        "our interval if there is one;\n"
        "- *by construction*: rules could not come out otherwise;\n"
        "- *differs*: none of these;\n"
        "- *not here*: these agents build no such thing, or the experiment has no such exam.",
        table(["where", "what", "the paper", "here", "cell", "grade"], rows),
        "Not tried here: that 400 questions reach full coverage. On a generated world of 500 people, 400 training "
        "questions gave the strategy `paper` a coverage of 62.7%. GraphRAG's communities are found by Leiden, the "
        "authors' by union-find; their summaries and the judge are rules here and a model's there.",
    ]


def _seeds(seeds: list[int]) -> str:
    whole = len(seeds) > 1 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}-{seeds[-1]}" if whole else ",".join(map(str, seeds))


def _lines(kept: dict[str, Any]) -> str:
    """A cell a line, so that a change can be read."""
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).replace("},", "},\n") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="Experiments with reports, the standard world first.")
    parser.add_argument("--original", type=Path, help="The folder of `kbgym experiment run paper-original`.")
    parser.add_argument("--fresh", type=Path, help="An experiment on seeds that chose nothing, for the summary.")
    parser.add_argument("--took", default="", help="What the runs took, in words.")
    parser.add_argument("--out", type=Path, default=DOCS)
    parser.add_argument("--check", action="store_true", help="Are the pages what docs/results.json makes them?")
    chosen = parser.parse_args()
    file = chosen.out / KEPT.name
    kept: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}
    experiments = [Cells(one) for one in kept.get("experiments", ())]
    if chosen.check:
        wrong = [place.name for place, text in _written(experiments, kept, chosen.out) if _read(place) != text]
        sys.exit(f"{', '.join(wrong)} is not what results.json makes: run scripts/result_pages.py" if wrong else 0)
    if chosen.original:
        kept["original"] = opened(chosen.original)
    if chosen.fresh:
        kept["fresh"] = opened(chosen.fresh)
        about = kept["fresh"]["about"]
        kept["fresh_command"] = (
            f"kbgym experiment run paper --seeds {_seeds(about['seeds'])} --arms "
            "flat,graphrag,hipporag,bm25,oracle,wrong-answers,random-questions "
            f"--set readers={','.join(about['readers'])} --out exp/fresh"
        )
    if chosen.folders:
        found = [opened(folder) for folder in chosen.folders]
        experiments = [Cells(one) for one in found]
        kept["took"] = chosen.took
        kept["command"] = "\n".join(
            f"kbgym experiment run paper {'--set hard=true ' if one.about['hard'] else ''}"
            f"--seeds {_seeds(one.about['seeds'])} "
            f"--set readers={','.join(one.about['readers'])} --set workers=2 --out {folder.parent.name}/{folder.name}"
            for folder, one in zip(chosen.folders, experiments, strict=True)
        )
    for place, text in _written(experiments, kept, chosen.out):
        place.write_text(text, encoding="utf-8")
    kept["experiments"] = [one.kept for one in experiments]
    file.write_text(_lines(kept), encoding="utf-8")


def _written(experiments: list[Cells], kept: dict[str, Any], out: Path) -> list[tuple[Path, str]]:
    """Return every page's path and text."""
    found = [(out / name, text) for name, text in pages(experiments, kept).items()]
    if out != DOCS:
        return found
    before, mark, rest = _read(README).partition(MARK)
    _, end, after = rest.partition(END)
    return [*found, (README, f"{before}{mark}\n{readme_table(experiments[0])}\n{end}{after}")]


def readme_table(cells: Cells) -> str:
    """Return the gain of training by group of questions."""
    about = cells.about
    groups = {
        "trained": "asked in training",
        "both": "new, training touched both of their keys",
        "one": "new, training touched one key",
        "neither": "new, training touched neither",
    }
    rows = [
        [
            name,
            cells(f"gradient/trained-paper/{group}/rho"),
            f"{cells(f'gradient/flat/{group}/f1')} → {cells(f'gradient/trained-paper/{group}/f1')}",
            cells(f"gradient/hipporag/{group}/rho"),
        ]
        for group, name in groups.items()
    ]
    heads = ["questions", "actions, trained over flat", "F1, flat → trained", "actions, HippoRAG-2 style over flat"]
    seeds = len(about["seeds"])
    said = f"500 fictional people, 5,842 documents, {seeds} seeds, 34 questions a group and seed, reference agents. "
    return f"{said}95% intervals over seeds; * marks those that exclude 1.\n\n{table(heads, rows)}"


def _read(place: Path) -> str:
    return place.read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
