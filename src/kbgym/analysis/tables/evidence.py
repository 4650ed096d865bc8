"""The table of evidence: how soon a reader was shown everything a question's answer depends on, arm by arm.

It tells what a store does for finding, whoever reads; what the reader made of it is for the other tables. Questions
without supports are left out; a pass that never saw everything counts with its whole budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from kbgym.analysis.cells import Cell, Line, Table, estimate, number
from kbgym.analysis.results import LABELS, Pair, Results
from kbgym.analysis.statistics import Estimate, holm
from kbgym.analysis.tables.arms import LEVEL, flatten, gain_of, how, ratio_of
from kbgym.training.exam import Row

WITHIN = (1, 2, 4, 8)
_NEVER = "a pass that never saw everything counts with its whole budget"


def evidence(results: Results) -> Table | None:
    """Every arm on every group that has supports."""
    budget = results.settings.forward_budget

    def until(row: Row) -> float:
        found = row.evidence.actions if row.evidence is not None else None
        return float(budget if found is None else found)

    lines, ratios = [], {}
    for group in results.groups:
        shown = [arm for arm in results.arms if flatten(_supported(results, arm, group))]
        if shown:
            lines.append(Line(LABELS.get(group, group)))
        for arm in shown:
            pairs = _supported(results, arm, group)
            ratio = ratio_of(results, pairs, until)
            ratios[arm, group] = ratio
            lines.append(Line(results.label(arm), _cells(results, arm, group, pairs, until, ratio)))
    if not lines:
        return None
    adjusted = zip(ratios.items(), holm([ratio.p for ratio in ratios.values()]), strict=True)
    better = [
        f"{results.label(arm)} ({LABELS.get(g, g)})" for ((arm, g), one), p in adjusted if one.value < 1 and p <= LEVEL
    ]
    sentence = (
        f"Everything is seen in fewer actions than on the flat store (at 5%, Holm over all {len(ratios)}) by: "
        f"{', '.join(better) or 'no arm'}."
    )
    columns = ("n", *(f"all within {k}" for k in WITHIN), "actions until all", "over flat", "within 8, minus flat")
    return Table("evidence", "How soon all evidence was seen", columns, lines, results.caption(), sentence, "arm")


def _supported(results: Results, arm: str, group: str) -> list[list[Pair]]:
    return [
        [pair for pair in of_seed if all(row.evidence is not None and row.evidence.supports for row in pair)]
        for of_seed in results.pairs(arm, group)
    ]


def _cells(
    results: Results,
    arm: str,
    group: str,
    pairs: Sequence[Sequence[Pair]],
    until: Callable[[Row], float],
    ratio: Estimate,
) -> list[Cell]:
    rows, id = flatten(pairs), f"evidence/{arm}/{group}"
    own, both = results.sources(arm, group, "evidence"), results.sources(arm, group, "evidence", "flat")
    cells = [number(f"{id}/n", len(rows), "questions with supports, asked on this arm and on flat", own, 0)]
    for k in WITHIN:
        share = fmean(_within(row, k) for row, _ in rows)
        cells.append(number(f"{id}/within-{k}", share, f"share with every support shown within {k} actions", own))
    actions = fmean(until(row) for row, _ in rows)
    cells.append(number(f"{id}/actions", actions, f"mean actions until every support was shown; {_NEVER}", own, 2))
    formula = f"those actions over the same on the flat store, same questions; {how(results)}"
    cells.append(estimate(f"{id}/ratio", ratio.interval, formula, both, mark=1.0))
    gained = gain_of(results, pairs, lambda row: _within(row, 8)).interval
    formula = f"share within 8 actions minus the same on the flat store; {how(results)}"
    cells.append(estimate(f"{id}/gained", gained, formula, both, mark=0.0))
    return cells


def _within(row: Row, actions: int) -> float:
    return float(row.evidence is not None and row.evidence.all_within(actions))
