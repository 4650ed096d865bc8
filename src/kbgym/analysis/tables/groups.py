"""Tables about question groups: non-inferiority, strata by flat result, gain per point of coverage, comparison with B3.

Every function takes opened results and returns a table of traceable cells with a summary sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from kbgym.analysis.cells import Cell, Line, Table, estimate, number
from kbgym.analysis.results import LABELS, POOLED, Results
from kbgym.analysis.statistics import Interval, difference
from kbgym.analysis.tables.arms import (
    RHO,
    columns,
    flatten,
    gain_of,
    headings,
    how,
    main_arms,
    mean_cell,
    ratio_of,
)
from kbgym.analysis.tables.stores import store_sources
from kbgym.analysis.verdict import MARGIN, accuracy_of, split
from kbgym.training.exam import Row

# A reader may use its last action to answer instead of running out: both exhaust its budget.
STRATA: dict[str, Callable[[Row, int], bool]] = {
    "at its budget's end": lambda flat, budget: flat.outcome == "out_of_budget" or flat.actions >= budget,
    "done with actions to spare": lambda flat, budget: flat.outcome == "answered" and flat.actions < budget,
}


def non_inferiority(results: Results) -> Table:
    """Test for every arm and group whether accuracy is non-inferior to the flat store's."""
    lines: list[Line] = []
    test = f"whether the 95% interval of the F1 difference lies above -{MARGIN} (not lower) or below 0 (lower)"
    shown_on: dict[str, list[str]] = {}
    for arm in (one for one in results.arms if one != "flat"):
        cells = []
        for group in columns(results):
            found: str = accuracy_of(gain_of(results, results.pairs(arm, group)))
            if found == "not lower":
                shown_on.setdefault(arm, []).append(LABELS[group])
            files = tuple(results.sources(arm, group, "f1", "flat"))
            cells.append(Cell(f"noninferiority/{arm}/{group}", found, found, test, files))
        lines.append(Line(results.label(arm), cells))
    sentence = " ".join(
        f"{results.label(arm)} is shown not to be lower than flat on {', '.join(shown_on[arm])}."
        for arm in main_arms(results)
        if arm in shown_on
    )
    caption = f"{results.caption()} Margin {MARGIN} F1."
    title = "Accuracy not lower than the flat store's?"
    sentence = sentence or "No trained arm is shown not to be lower than flat on any group at this n."
    return Table("noninferiority", title, headings(results), lines, caption, sentence, "store")


def budget_split(results: Results) -> Table:
    """Split each group by the question's outcome on the flat store."""
    lines: list[Line] = []
    for arm in main_arms(results):
        for stratum in STRATA:
            lines.append(Line(f"{results.label(arm)}, where flat was {stratum}"))
            found = [_stratum_cells(results, arm, group, stratum) for group in columns(results)]
            rows = zip(("n", "F1 flat", "F1 arm", "rho"), zip(*found, strict=True), strict=True)
            lines += [Line(f"   {name}", cells) for name, cells in rows]
    title, sentence = (
        "Split by what the flat store did",
        "Questions that ended the flat reader's budget, and the others.",
    )
    return Table("budget", title, headings(results), lines, results.caption(), sentence, "measure")


def _stratum_cells(results: Results, arm: str, group: str, stratum: str) -> list[Cell | None]:
    """Return n, F1 on flat and on the arm, and rho, over the questions of a stratum."""
    budget = results.settings.forward_budget
    of_seeds = [[(a, b) for a, b in pairs if STRATA[stratum](b, budget)] for pairs in results.pairs(arm, group)]
    pairs, id = flatten(of_seeds), f"budget/{arm}/{stratum.replace(' ', '-')}/{group}"
    files = results.sources(arm, group, "f1, actions, outcome", "flat")
    what = f"questions on which flat was {stratum}"
    n = number(f"{id}/n", len(pairs), f"number of {what}", files, 0)
    if not pairs:
        return [n, None, None, None]
    mine, flat = (fmean(scores) for scores in split(pairs, "f1"))
    ratio = ratio_of(results, of_seeds).interval
    return [
        n,
        number(f"{id}/f1_flat", flat, f"mean F1 of flat over {what}", files),
        number(f"{id}/f1", mine, f"mean F1 of the arm over {what}", files),
        estimate(f"{id}/rho", ratio, f"{RHO}{how(results)}, over {what}", files, mark=1.0),
    ]


def per_point(results: Results) -> Table:
    """Return gains over flat, pooled over the groups, per point of coverage."""
    lines: list[Line] = []
    gains: dict[str, list[float]] = {}
    for arm in results.arms:
        share = fmean(seed.arms[arm]["coverage"]["direct"] for seed in results.seeds)
        what = "share of originals an index links to, mean over seeds"
        cells: list[Cell | None] = [
            number(f"coverage/{arm}/direct", share, what, store_sources(results, arm), 3, True),
            mean_cell(results, f"coverage/{arm}/actions", arm, POOLED, "actions", 2),
            mean_cell(results, f"coverage/{arm}/f1", arm, POOLED, "f1"),
        ]
        if share and arm != "flat":
            points = share * 100
            pairs = results.pairs(arm, POOLED)
            saved = difference(results.sampled(pairs, lambda row: -float(row.actions)), results.apart)
            found = {"actions saved": saved.interval, "f1 gained": gain_of(results, pairs).interval}
            gains[arm] = [one.value / points for one in found.values()]
            for name, one in found.items():
                field = name.split()[0]
                each = Interval(one.value / points, one.low / points, one.high / points)
                formula = f"mean {name} against flat over {points:.2f} points of coverage; {how(results)}"
                sources = results.sources(arm, POOLED, field, "flat")
                cells.append(estimate(f"coverage/{arm}/{field}_a_point", each, formula, sources, 4, mark=0.0))
        else:
            cells += [None, None]
        lines.append(Line(results.label(arm), cells))
    sentence = " ".join(
        f"{results.label(arm)} saves {gains[arm][0]:.3f} actions and gains {gains[arm][1]:+.4f} F1 a point of coverage."
        for arm in results.trainings
        if arm in gains
    )
    heads = ("coverage", "actions", "F1", "actions saved a point", "F1 gained a point")
    caption = f"{results.caption()} Pooled over all groups."
    return Table("coverage", "What a point of coverage buys", heads, lines, caption, sentence, "store")
