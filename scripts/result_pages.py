"""Write docs/results.md, docs/paper.md and README.md's table from the folders of experiments; no number is typed.

    kbgym experiment run paper --seeds 20-29 --set readers=all --out exp/paper --arms \\
        flat,graphrag,hipporag,raptor,lightrag,bm25,nostore,oracle,wrong-answers,random-questions
    kbgym experiment run paper-original --world paper-universe.json --out exp/original
    kbgym report exp/paper
    python scripts/result_pages.py exp/paper --original exp/original --took "60 minutes on one core"
    kbgym init endoflife --questions questions.jsonl && kbgym prove
    kbgym train --world .kbgym/world --control wrong-answers --out control
    kbgym exam control --set test_in --out control.jsonl
    python scripts/result_pages.py --text endoflife .kbgym/run control.jsonl
    python scripts/result_pages.py --check

Every number is a cell of a report. The cells used are kept in docs/results.json; --check writes the pages from that
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
GROUPS = {"trained": "trained on", "both": "both keys", "one": "one key", "neither": "neither", "pooled": "pooled"}
MEASURES = {"f1": "F1", "actions": "actions a question", "characters": "characters read a question"}
AGAINST = {"actions_over_b3": "actions over B3's", "characters_over_b3": "characters over B3's"}
# What the first screen claims is checked by these arms, and by those that were trained.
BESIDE = ("hipporag", "oracle", "control-wrong-answers", "control-random-questions")

TEXT_MEASURES = [f"{key}_{side}" for key in ("first_page", "f1", "actions") for side in ("flat", "trained")]
TEXT_GROUPS = {
    "all": "all unseen",
    "paraphrase": "needs of training questions, in other words",
    "same_page": "other needs on the same pages",
    "sets": "lists and counts",
    "elsewhere": "other pages",
}


class Cells:
    """The cells of one experiment, by id; it remembers which were asked for."""

    def __init__(self, kept: dict[str, Any]) -> None:
        self.about: dict[str, Any] = kept["about"]
        self._cells: dict[str, Any] = kept["cells"]
        self._used: dict[str, Any] = {}

    def __call__(self, id: str) -> str:
        """Return the text of a cell, or a dash if the experiment has no such number."""
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
    """Return the cells of a report and a description of its experiment."""
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


def block(title: str, names: dict[str, str], cell: Callable[[str, str], str], rows: dict[str, str]) -> list[str]:
    """Return a heading and a table with a line for each of `rows`."""
    found = [[label, *(cell(row, name) for name in names)] for row, label in rows.items()]
    return [f"### {title}", table(["", *names.values()], found)]


def results_page(cells: Cells) -> list[str]:
    """Return the gradient, then the controls, then every arm under every reader, then what training costs."""
    about = cells.about
    arms, trained = about["arms"], about["trainings"]
    parts = ["## All tables", about["caption"]]
    compared = {arm: label for arm, label in arms.items() if arm not in ("flat", "nostore")}
    parts += block("rho, by group", GROUPS, lambda arm, group: cells(f"gradient/{arm}/{group}/rho"), compared)
    parts += block("F1, by group", GROUPS, lambda arm, group: cells(f"gradient/{arm}/{group}/f1"), arms)
    minus = "F1 minus the flat store's, by group"
    parts += block(minus, GROUPS, lambda arm, group: cells(f"gradient/{arm}/{group}/difference"), compared)
    not_lower = "Is accuracy shown not to be lower than flat's by 0.03 F1?"
    parts += block(not_lower, GROUPS, lambda arm, group: cells(f"noninferiority/{arm}/{group}"), compared)
    for control in (one for one in BESIDE if one in arms and one != "hipporag"):
        rows = {f"{arm}/{{}}/{field}": f"{arms[arm]}, {what}" for arm in trained for field, what in CONTROLLED.items()}
        title = f"Training against {arms[control]}"
        parts += block(title, GROUPS, lambda row, group: cells(f"controls/{control}/{row.format(group)}"), rows)  # noqa: B023
    readers = {reader: reader for reader in about["readers"]}
    for group, title in SETS.items():
        for field, name in MEASURES.items():
            of = f"{name}, {title}"
            parts += block(of, readers, lambda arm, r: cells(f"readers/{group}/{r}/{arm}/{field}"), arms)  # noqa: B023
        for arm in trained:
            rows = {**AGAINST, f"{group}/difference": "F1 minus B3's"}
            of = f"{arms[arm]} against B3, {title}"
            parts += block(of, readers, lambda field, r: cells(f"readers/{group}/{r}/{arm}/{field}"), rows)  # noqa: B023
    units = {"training": "training spent", "trained": "trained on", "pooled": "pooled"}
    units["pooled/hipporag"] = "pooled, against B3"
    rows = {f"{arm}/{unit}": f"{arms[arm]}, {unit}" for arm in trained for unit in ("actions", "characters")}
    parts += block(
        "Questions until training is paid for", units, lambda row, what: cells(f"break-even/{row}/{what}"), rows
    )
    return parts


CONTROLLED = {"rho": "actions over the control's", "difference": "F1 minus the control's"}


def pages(cells: Cells, kept: dict[str, Any]) -> dict[str, str]:
    results = [*first_screen(cells, kept), *results_page(cells)]
    return {"results.md": "\n\n".join(results) + "\n", "paper.md": "\n\n".join(paper_page(kept)) + "\n"}


def first_screen(cells: Cells, kept: dict[str, Any]) -> list[str]:
    """Return what is claimed, who read, what a reviewer will object, every reader against flat, and F1 by budget."""
    about = cells.about
    arms, readers = about["arms"], about["readers"]
    shown = {arm: arms[arm] for arm in (*BESIDE, *about["trainings"]) if arm in arms}
    rows = [
        [
            label,
            cells(f"gradient/{arm}/trained/rho"),
            cells(f"gradient/{arm}/pooled/rho"),
            cells(f"gradient/{arm}/pooled/difference"),
            cells(f"arms/{arm}/links"),
        ]
        for arm, label in shown.items()
    ]

    def against_flat(arm: str, reader: str) -> str:
        at = f"readers/pooled/{reader}"
        return f"{cells(f'{at}/{arm}/actions_over_flat')}; {cells(f'{at}/over-flat/{arm}/pooled/difference')}"

    wrong = "controls/control-wrong-answers/trained-paper/trained"
    named = {reader: reader for reader in readers}
    budgets = {str(actions): f"{actions} actions" for actions in range(3, 9)}
    return [
        "# Results",
        "**In two sentences.** By these reference agents, which are rules and no language model, the strategy `class` "
        "is driven by questions and not by answers: a store of all indexes, built without a question, does as well. "
        "The strategy `paper` uses the answers: with permuted ones it gains less.",
        f"{about['caption']} No setting was chosen on these seeds. Intervals are 95%, the seed as the unit; * marks "
        "those that exclude 1 or 0.",
        table(
            ["store", "actions over flat's, trained on", "the same, all four groups", "F1 minus flat's", "links"], rows
        ),
        "**What is claimed.** After 100 training questions a reader that recognises and trusts indexes needs fewer "
        "actions at a pooled F1 that is not lower, with far fewer links than HippoRAG-2 style. Trained with permuted "
        "answers, the store of `paper` is worse on its own training questions: actions with true answers over those "
        "with permuted ones "
        f"{cells(f'{wrong}/rho')}, F1 {cells(f'{wrong}/difference')} higher.",
        "**By whom it was read.** `reference` knows the benchmark's sentences and how our curators word an index; "
        "`neutral:*` know the sentences and not the wording: *trusting* opens any index, *sceptical* verifies what an "
        "index says, *first* and *overlap* choose by rank and by shared words, and *joining* asks about several people "
        "in one query, which makes the flat store cheap; `general` knows neither.",
        "### Every reader against the flat store: actions over flat's; F1 minus flat's",
        table(
            ["store", *named.values()],
            [
                [label, *(against_flat(arm, r) for r in readers)]
                for arm, label in shown.items()
                if not arm.startswith("control-")
            ],
        ),
        "Structure costs the distrustful reader: `neutral:sceptical` spends more actions than on the flat store on "
        "every store but that of `class`, and answers less well on those of HippoRAG-2 style and of `paper`. For the "
        "joining reader, the strongest on the flat store, the strategy `paper` saves little.",
        *block(
            "F1 within a budget of actions, reference reader",
            budgets,
            lambda arm, k: cells(f"within/{arm}/{k}"),
            {"flat": arms["flat"], **shown},
        ),
        "**What a reviewer will object.** The agents are rules that know the benchmark's sentences, so accuracy is "
        "near 1 on the flat store, and levels say nothing of a model. `class` needs questions only to choose among "
        "indexes that can be built from the documents. The unsupervised arms are our own implementations. It is one "
        "benchmark, made by us. Hard worlds were not measured again with these curators.",
        f"```console\n{kept['command']}\n```",
        f"Written by `scripts/result_pages.py`{_took(kept)}.",
    ]


def _took(kept: dict[str, Any]) -> str:
    return f"; {kept['took']}" if kept["took"] else ""


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
        "These figures are driven by questions, and by answers only in part: the curator of the strategy `paper` "
        "checks what it found by the expected answer, and with permuted answers it gains less ([results](results.md)); "
        "the strategy `class` gains what a store of all indexes gains, which is built without a question.",
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
    parser.add_argument("folder", nargs="?", type=Path, help="An experiment with a report.")
    parser.add_argument("--original", type=Path, help="The folder of `kbgym experiment run paper-original`.")
    text = "The name of a text, a run of `kbgym prove` over it, and an exam's rows on its wrong-answers control."
    parser.add_argument("--text", nargs=3, metavar=("NAME", "RUN", "ROWS"), action="append", default=[], help=text)
    parser.add_argument("--took", default="", help="What the run took, in words.")
    parser.add_argument("--out", type=Path, default=DOCS)
    parser.add_argument("--check", action="store_true", help="Are the pages what docs/results.json makes them?")
    chosen = parser.parse_args()
    file = chosen.out / KEPT.name
    kept: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}
    if chosen.check:
        wrong = [place.name for place, text in _written(kept, chosen.out) if _read(place) != text]
        sys.exit(f"{', '.join(wrong)} is not what results.json makes: run scripts/result_pages.py" if wrong else 0)
    if chosen.original:
        kept["original"] = opened(chosen.original)
    for name, run, rows in chosen.text:
        kept.setdefault("texts", {})[name] = text_values(Path(run), Path(rows))
    if chosen.folder:
        kept["results"], kept["took"] = opened(chosen.folder), chosen.took
        about = kept["results"]["about"]
        arms = [arm.removeprefix("control-") for arm in about["arms"] if arm not in about["trainings"]]
        kept["command"] = (
            f"kbgym experiment run paper --seeds {_seeds(about['seeds'])} --set readers={','.join(about['readers'])} "
            f"--out exp/paper \\\n  --arms {','.join(arms)}"
        )
    for place, text in _written(kept, chosen.out):
        place.write_text(text, encoding="utf-8")
    file.write_text(_lines(kept), encoding="utf-8")


def _written(kept: dict[str, Any], out: Path) -> list[tuple[Path, str]]:
    """Return every page's path and text, and leave only the cells they use in `kept`."""
    cells = Cells(kept["results"])
    found = [(out / name, text) for name, text in pages(cells, kept).items()]
    if out == DOCS:
        before, mark, rest = _read(README).partition(MARK)
        _, end, after = rest.partition(END)
        tables = f"{readme_table(cells)}\n\n{texts_table(kept.get('texts', {}))}"
        found.append((README, f"{before}{mark}\n{tables}\n{end}{after}"))
    kept["results"] = cells.kept
    return found


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


def text_values(run: Path, rows: Path) -> dict[str, Any]:
    """Return what a proof says of a text, by group, with the same of the control."""
    from kbgym.training.exam import read_rows, summarise
    from kbgym.worlds.world import World

    verdict = json.loads((run / "verdict.json").read_bytes())
    world, control = World.load(run / "world"), read_rows(rows)
    of = {question.id: question.group for question in world.questions}
    groups = {"all": verdict, **verdict["groups"]}
    found = {}
    for name, group in groups.items():
        if name == "trained":
            continue
        summary = summarise([row for row in control if name in ("all", of[row.id])])
        found[name] = {key: group[key] for key in ("n", *TEXT_MEASURES)}
        found[name] |= {"first_page_control": summary.first_page, "f1_control": summary.f1}
    pages = len({one.source.file for one in world.documents if one.source})
    return {"pages": pages, "sentence": verdict["sentence"], "groups": found}


def texts_table(texts: dict[str, Any]) -> str:
    """Return the gain of training on real text, beside the control."""
    heads = ["questions", "n", "evidence on the first page", "F1", "actions", "control: first page, F1"]
    parts = []
    for name, text in texts.items():
        rows = [
            [
                TEXT_GROUPS[group],
                str(one["n"]),
                *(f"{one[f'{key}_flat']:.2f} → {one[f'{key}_trained']:.2f}" for key in ("first_page", "f1", "actions")),
                f"{one['first_page_control']:.2f}, {one['f1_control']:.2f}",
            ]
            for group in TEXT_GROUPS
            if (one := text["groups"].get(group)) is not None
        ]
        said = f"{name}, {text['pages']} pages, general agents (rules, no language model, no key), flat → trained. "
        parts += [f"{said}A trained store {text['sentence']}", table(heads, rows)]
    return "\n\n".join(parts)


def _read(place: Path) -> str:
    return place.read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
