"""Tables by reader: every arm under every reader, answers before and after, and steps until evidence was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean

from kbgym.analysis.cells import TABLES, Cell, Line, Table, estimate, number
from kbgym.analysis.results import LABELS, POOLED, Results
from kbgym.analysis.tables.arms import difference_cell, flatten, float_of, how, mean_cell, ratio_of
from kbgym.analysis.verdict import Pair, right_in
from kbgym.sanitize import safe_text
from kbgym.training.exam import Row

MOST = 60  # questions listed; the exams' files have all


def answers(results: Results) -> Table | None:
    """Return question, expected answer and the answers before and after of one run, changed answers first."""
    arm = results.trainings[0]
    pairs = flatten(results.pairs(arm, POOLED)) if results.plan is None else []
    if not pairs:
        return None
    pairs.sort(key=lambda pair: -abs((pair[0].f1 or 0.0) - (pair[1].f1 or 0.0)))
    files = results.sources(arm, POOLED, "answer, golds", "flat")
    lines = []
    for number_, (after, before) in enumerate(pairs[:MOST], 1):
        texts = {"expected": after.golds[0], "before": before.answer or "", "after": after.answer or ""}
        cells = [
            Cell(f"answers/{number_}/{name}", safe_text(text), text, f"{name} answer", tuple(files))
            for name, text in texts.items()
        ]
        lines.append(Line(safe_text(after.question), cells))
    both = right_in(pairs)
    sentence = f"Right in both {both['both']}, only before {both['flat']}, only after {both['trained']}, in neither "
    sentence += f"{both['neither']} of {len(pairs)}."
    return results.table("answers", lines, sentence)


BASES = {"flat": ("flat", "flat's"), "hipporag": ("b3", "B3's")}
SETS = {POOLED: "the question groups together", "test_in": "test_in", "test_out": "test_out"}


def by_reader(results: Results, group: str) -> Table | None:
    """Return a block per reader with a line per arm, on one set of questions; None for a single reader."""
    lines: list[Line] = []
    for reader, read in results.readers.items():
        shown = [arm for arm in read.arms if group == POOLED or _is_asked(read, arm, group)]
        if len(shown) > 1:
            lines.append(Line(reader))
            lines += [Line(read.label(arm), _cells(read, f"readers/{group}/{reader}", arm, group)) for arm in shown]
    if not lines:
        return None
    sentence = " ".join(_sentence(results, arm, lines) for arm in results.trainings)
    caption = f"Training by {results.agent}, once. {results.caption().partition('; ')[2].capitalize()}"
    title = TABLES["readers"].title.format(arm=SETS.get(group, LABELS[group]))
    return results.table("readers", lines, sentence, of=group, caption=caption, title=title)


def _is_asked(read: Results, arm: str, group: str) -> bool:
    return all(seed.has(one, group) for seed in read.seeds for one in (arm, "flat"))


def _cells(read: Results, table: str, arm: str, group: str) -> list[Cell | None]:
    mean = partial(mean_cell, read, arm=arm, group=group)
    cells: list[Cell | None] = [
        mean(f"{table}/{arm}/{field}", field=field, digits=digits)
        for field, digits in (("f1", 3), ("actions", 2), ("characters", 0))
    ]
    for base, (name, _) in BASES.items():
        if arm == base or base not in read.arms or not (group == POOLED or _is_asked(read, base, group)):
            cells += [None, None, None]
            continue
        under = table if base == "hipporag" else f"{table}/over-flat"
        cells.append(difference_cell(read, under, arm, group, base=base))
        for field in ("actions", "characters"):
            ratio = ratio_of(read, read.pairs(arm, group, base), float_of(field)).interval
            formula = f"mean {field} on the arm over mean {field} on {base}, same questions and reader; {how(read)}"
            files = read.sources(arm, group, field, base)
            cells.append(estimate(f"{table}/{arm}/{field}_over_{name}", ratio, formula, files, mark=1.0))
    return cells


def _sentence(results: Results, arm: str, lines: Sequence[Line]) -> str:
    """Return for how many readers the intervals of actions lie below 1, and those of F1 below 0."""
    rows = [line.cells for line in lines if line.head == results.label(arm) and line.cells]
    parts = []
    for place, (_, base) in zip((3, 6), BASES.values(), strict=True):
        found = [(row[place], row[place + 1]) for row in rows]
        lower = sum(f1 is not None and f1.high is not None and f1.high < 0 for f1, _ in found)
        fewer = sum(one is not None and one.high is not None and one.high < 1 for _, one in found)
        parts.append(f"actions below {base} under {fewer} of {len(rows)} readers, F1 below under {lower}")
    return f"{results.label(arm)}, by whole intervals: {'; '.join(parts)}."


BUDGETS = range(3, 9)


def within(results: Results) -> Table:
    """Return mean F1 of every arm at budgets of 3 to 8 actions: a pass that took more counts as wrong."""
    lines = []
    for arm in results.arms:
        rows = [row for row, _ in flatten(results.pairs(arm, POOLED))]
        files = results.sources(arm, POOLED, "f1, actions")
        means = [(k, fmean((row.f1 or 0.0) if row.actions <= k else 0.0 for row in rows)) for k in BUDGETS]
        cells = [
            number(f"within/{arm}/{k}", mean, f"mean F1, 0 for passes of more than {k} actions", files)
            for k, mean in means
        ]
        lines.append(Line(results.label(arm), cells))
    return results.table("within", lines)


WITHIN = (1, 2, 4, 8)
_NEVER = "a pass that never saw everything counts with its whole budget"


def evidence(results: Results) -> Table | None:
    """Return the evidence seen by every arm on every group that has supports."""
    budget = results.settings.forward_budget

    def until(row: Row) -> float:
        found = row.evidence.actions if row.evidence is not None else None
        return float(budget if found is None else found)

    lines = []
    for group in results.groups:
        shown = [arm for arm in results.arms if flatten(_supported(results, arm, group))]
        if shown:
            lines.append(Line(LABELS[group]))
        for arm in shown:
            pairs = _supported(results, arm, group)
            lines.append(Line(results.label(arm), _evidence_cells(results, arm, group, pairs, until)))
    return results.table("evidence", lines) if lines else None


def _supported(results: Results, arm: str, group: str) -> list[list[Pair]]:
    return [
        [pair for pair in of_seed if all(row.evidence is not None and row.evidence.supports for row in pair)]
        for of_seed in results.pairs(arm, group)
    ]


def _evidence_cells(
    results: Results,
    arm: str,
    group: str,
    pairs: Sequence[Sequence[Pair]],
    until: Callable[[Row], float],
) -> list[Cell]:
    rows, id = flatten(pairs), f"evidence/{arm}/{group}"
    own, both = results.sources(arm, group, "evidence"), results.sources(arm, group, "evidence", "flat")
    cells = [number(f"{id}/n", len(rows), "questions with supports, asked on this arm and on flat", own, 0)]
    for k in WITHIN:
        share = fmean(row.evidence is not None and row.evidence.all_within(k) for row, _ in rows)
        cells.append(number(f"{id}/within-{k}", share, f"share with every support shown within {k} actions", own))
    actions = fmean(until(row) for row, _ in rows)
    cells.append(number(f"{id}/actions", actions, f"mean actions until every support was shown; {_NEVER}", own, 2))
    formula = f"those actions over the same on the flat store, same questions; {how(results)}"
    cells.append(estimate(f"{id}/ratio", ratio_of(results, pairs, until).interval, formula, both, mark=1.0))
    return cells
