"""Tables about groups of questions: non-inferiority, the split by what flat did, what coverage buys, against B3.

Every function takes opened results and gives a table of traceable cells with a sentence made from its own numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from kbgym.analysis.cells import Cell, CellSource, Line, Table, estimate, number
from kbgym.analysis.results import LABELS, POOLED, Results, Seed
from kbgym.analysis.statistics import Interval, difference
from kbgym.analysis.tables.arms import (
    RHO,
    columns,
    difference_cell,
    flatten,
    float_of,
    gain_of,
    headings,
    how,
    main_arms,
    mean_cell,
    ratio_of,
)
from kbgym.analysis.tables.stores import store_sources
from kbgym.analysis.verdict import MARGIN, Pair, accuracy_of, split
from kbgym.training.exam import Row

# A reader may answer with its last action instead of running out: both are the end of its budget.
STRATA: dict[str, Callable[[Row, int], bool]] = {
    "at its budget's end": lambda flat, budget: flat.outcome == "out_of_budget" or flat.actions >= budget,
    "done with actions to spare": lambda flat, budget: flat.outcome == "answered" and flat.actions < budget,
}


def non_inferiority(results: Results) -> Table:
    """Decide for every arm and group whether accuracy is shown not to be lower than the flat store's."""
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
    """Each group by what the flat store did with the question."""
    lines: list[Line] = []
    said: dict[tuple[str, str], str] = {}
    for arm in main_arms(results):
        for stratum in STRATA:
            found = {group: _stratum_cells(results, arm, group, stratum) for group in columns(results)}
            flat, mine, ratio = (cell.value if cell else None for cell in found[POOLED][1:])
            if ratio is not None:  # there are such questions
                n = found[POOLED][0].text
                said[arm, stratum] = (
                    f"from {flat:.2f} to {mine:.2f} at rho {ratio:.2f} (n = {n}) where flat was {stratum}"
                )
                lines.append(Line(f"{results.label(arm)}, where flat was {stratum}"))
                rows = zip(("n", "F1 flat", "F1 arm", "rho"), zip(*found.values(), strict=True), strict=True)
                lines += [Line(f"   {name}", cells) for name, cells in rows]
    sentence = " ".join(
        f"{results.label(arm)}: F1 goes {' and '.join(said[arm, s] for s in STRATA if (arm, s) in said)}."
        for arm in results.trainings
    )
    title = "Split by what the flat store did"
    caption = results.caption()
    return Table("budget", title, headings(results), lines, caption, sentence, "measure")


def _stratum_cells(
    results: Results, arm: str, group: str, stratum: str
) -> tuple[Cell, Cell | None, Cell | None, Cell | None]:
    """How many questions there are, F1 on flat and on the arm, rho."""
    of_seeds, files = _stratum(results, arm, group, stratum)
    pairs = flatten(of_seeds)
    id = f"budget/{arm}/{stratum.replace(' ', '-')}/{group}"
    what = f"questions on which flat was {stratum}"
    n = number(f"{id}/n", len(pairs), f"number of {what}", files, 0)
    if not pairs:
        return n, None, None, None
    mine, flat = (fmean(scores) for scores in split(pairs, "f1"))
    ratio = ratio_of(results, of_seeds).interval
    return (
        n,
        number(f"{id}/f1_flat", flat, f"mean F1 of flat over {what}", files),
        number(f"{id}/f1", mine, f"mean F1 of the arm over {what}", files),
        estimate(f"{id}/rho", ratio, f"{RHO}{how(results)}, over {what}", files, mark=1.0),
    )


def _stratum(results: Results, arm: str, group: str, stratum: str) -> tuple[list[list[Pair]], list[CellSource]]:
    """The pairs of a stratum by seed, and which rows of which files they are."""
    found: list[list[Pair]] = []
    files: list[CellSource] = []
    budget = results.settings.forward_budget
    for seed in results.seeds:
        found.append([])
        for name in results.groups if group == POOLED else (group,):
            (pairs,) = results.pairs(arm, name, seeds=[seed])
            inside = [(a, b) for a, b in pairs if STRATA[stratum](b, budget)]
            ids = tuple(a.id for a, _ in inside)
            found[-1] += inside
            if ids:
                sources = results.sources(arm, name, "f1, actions, outcome", "flat", [seed])
                files += [CellSource(one.file, one.field, ids) for one in sources]
    return found, files


def per_point(results: Results) -> Table:
    """Gains over flat, pooled over the groups, by point of coverage."""
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
    base = gains.get("hipporag", [0.0])[0]
    sentences = [
        f"{results.label(arm)} saves {gains[arm][0]:.3f} actions and gains {gains[arm][1]:+.4f} F1 a point of "
        f"coverage, {gains[arm][0] / base:.1f} times B3's actions."
        for arm in results.trainings
        if base > 0 and arm in gains
    ]
    sentence = " ".join(sentences) or "No arm to compare with."
    heads = ("coverage", "actions", "F1", "actions saved a point", "F1 gained a point")
    caption = f"{results.caption()} Pooled over all groups."
    return Table("coverage", "What a point of coverage buys", heads, lines, caption, sentence, "store")


def against_b3(results: Results) -> Table | None:
    """Trained stores against the strongest unsupervised one, pooled over the groups, then seed by seed."""
    if "hipporag" not in results.arms:
        return None
    lines, said = [], []
    for arm in results.trainings:
        cells = _against(results, arm, None)
        lines += [Line(results.label(arm)), Line("all seeds", cells)]
        if len(results.seeds) > 1:
            lines += [Line(f"seed {seed.number}", _against(results, arm, seed)) for seed in results.seeds]
        f1, actions, characters, links = (cell.text for cell in cells)
        said.append(
            f"{results.label(arm)} against B3: F1 {f1}, {actions} times the actions, {characters} times the "
            f"characters, {links} times the links."
        )
    heads = ("F1 minus B3's", "actions over B3's", "characters over B3's", "links over B3's")
    caption = f"{results.caption()} Pooled over all groups."
    return Table("against-b3", "Trained stores against B3", heads, lines, caption, " ".join(said), "seeds")


def _against(results: Results, arm: str, seed: Seed | None) -> tuple[Cell, Cell, Cell, Cell]:
    seeds = None if seed is None else [seed]
    id = f"against-b3/{arm}" if seed is None else f"against-b3/{arm}/seed-{seed.number}"
    pairs = results.pairs(arm, POOLED, "hipporag", seeds)
    chosen = results.seeds if seed is None else (seed,)
    links = fmean(one.arms[arm]["links"] / one.arms["hipporag"]["links"] for one in chosen)
    formula = f"mean on the arm over mean on B3, same questions; {how(results, seeds)}"
    actions, characters = (
        estimate(f"{id}/{field}", ratio_of(results, pairs, float_of(field)).interval, formula, sources, mark=1.0)
        for field in ("actions", "characters")
        for sources in [results.sources(arm, POOLED, field, "hipporag", seeds)]
    )
    stores = [*store_sources(results, arm), *store_sources(results, "hipporag")]
    return (
        difference_cell(results, "against-b3", arm, POOLED, seeds, "hipporag"),
        actions,
        characters,
        number(f"{id}/links", links, "links of the arm over links of B3, mean over seeds", stores, 4),
    )
