"""Arms on groups of questions: the gradient, its seeds and strata, and the measures that all such tables share.

Every function takes opened results and returns a table of traceable cells with a summary sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import fmean
from typing import Literal

from kbgym.analysis.cells import Cell, Line, Table, estimate, number
from kbgym.analysis.results import LABELS, POOLED, Results, Seed
from kbgym.analysis.statistics import Estimate, difference, holm, ratio
from kbgym.analysis.verdict import LEVEL, MARGIN, Pair, accuracy_of, actions_in_words, judge, split
from kbgym.training.exam import Row

Value = Callable[[Row], float]


def float_of(field: str) -> Value:
    return lambda row: float(getattr(row, field) or 0.0)


ACTIONS, F1 = float_of("actions"), float_of("f1")


def columns(results: Results) -> tuple[str, ...]:
    return (*results.groups, POOLED)


def headings(results: Results) -> tuple[str, ...]:
    return tuple(LABELS[name] for name in columns(results))


def flatten(pairs: Sequence[Sequence[Pair]]) -> list[Pair]:
    return [pair for of_seed in pairs for pair in of_seed]


def main_arms(results: Results) -> list[str]:
    """Return the trainings, the controls, the oracle, and the strongest unsupervised arm."""
    beside = ("hipporag", "oracle")
    return [arm for arm in results.arms if arm in results.trainings or arm in beside or arm.startswith("control-")]


def ratio_of(results: Results, pairs: Sequence[Sequence[Pair]], value: Value = ACTIONS) -> Estimate:
    return ratio(results.sampled(pairs, value), results.apart)


def gain_of(results: Results, pairs: Sequence[Sequence[Pair]], value: Value = F1) -> Estimate:
    """Return the difference of scores."""
    return difference(results.sampled(pairs, value), results.apart, scores=True)


def how(results: Results, seeds: Sequence[Seed] | None = None) -> str:
    """Return how an interval was computed, for a formula."""
    if results.apart and len(results.seeds if seeds is None else seeds) > 1:
        return "95% interval by Student's t, the seed as the unit"
    return "95% interval by Student's t over questions, those that share a key taken together"


def _compared_cell(
    measure: Literal["rho", "difference"],
    results: Results,
    table: str,
    arm: str,
    group: str,
    seeds: Sequence[Seed] | None = None,
    base: str = "flat",
) -> Cell:
    """Return the ratio of actions or the difference of F1 between an arm and a base."""
    pairs, other = results.pairs(arm, group, base, seeds), f"on {results.label(base)}, same questions"
    if measure == "rho":
        found, field, mark = ratio_of(results, pairs), "actions", 1.0
        formula = f"mean actions on the arm over mean actions {other}; {how(results, seeds)}"
    else:
        found, field, mark = gain_of(results, pairs), "f1", 0.0
        formula = f"mean F1 on the arm minus mean F1 {other}; {how(results, seeds)}, of Wilson's type"
    of = group if seeds is None else f"seed-{seeds[0].number}/{group}"
    sources = results.sources(arm, group, field, base, seeds)
    return estimate(f"{table}/{arm}/{of}/{measure}", found.interval, formula, sources, mark=mark)


rho_cell, difference_cell = partial(_compared_cell, "rho"), partial(_compared_cell, "difference")


def mean_cell(results: Results, id: str, arm: str, group: str, field: str, digits: int = 3) -> Cell:
    mine, _ = split(flatten(results.pairs(arm, group)), field)
    formula = f"mean of {field} over questions scored on this arm and on flat (n = {len(mine)})"
    return number(id, fmean(mine) if mine else None, formula, results.sources(arm, group, field), digits)


def block(results: Results, title: str, arms: Iterable[str], cell: Callable[[str, str], Cell]) -> list[Line]:
    """Return a heading and one line per arm, with a cell for each group."""
    rows = (Line(results.label(arm), [cell(arm, group) for group in columns(results)]) for arm in arms)
    return [Line(title), *rows]


def gradient(results: Results) -> Table:
    """Return the paper's main table: rho and F1 by group and arm, and the difference with its interval."""

    def means(title: str, field: str, digits: int = 3) -> list[Line]:
        def cell(arm: str, group: str) -> Cell:
            return mean_cell(results, f"gradient/{arm}/{group}/{field}", arm, group, field, digits)

        return block(results, title, results.arms, cell)

    compared = [arm for arm in results.arms if arm != "flat"]
    costed = [arm for arm in compared if arm != "nostore"]  # it always gives up at once
    lines = [
        *block(results, "rho: actions relative to the flat store", costed, partial(rho_cell, results, "gradient")),
        *means("F1", "f1"),
    ]
    if results.world_kind.lists_answers:
        lines += means("F1 over what stands between commas (PhantomWiki's own)", "set_f1")
    lines += [
        *block(results, "F1 minus the flat store's", compared, partial(difference_cell, results, "gradient")),
        *block(results, f"accuracy not lower by {MARGIN} F1?", compared, partial(_accuracy_cell, results)),
        *means("actions a question", "actions", 2),
        *means("characters read a question", "characters", 0),
    ]
    title = "" if results.gradient else "Flat against trained"
    return results.table("gradient", lines, in_order(results), headings(results), title=title)


def _accuracy_cell(results: Results, arm: str, group: str) -> Cell:
    found = accuracy_of(gain_of(results, results.pairs(arm, group)))
    test = f"not lower: the 95% interval of the F1 difference lies above -{MARGIN}; lower: it lies below 0"
    files = tuple(results.sources(arm, group, "f1", "flat"))
    return Cell(f"noninferiority/{arm}/{group}", found, found, test, files)


def in_order(results: Results) -> str:
    """Return rho of every training by group, if it rises, and on which groups it is below 1."""
    parts = []
    for arm in results.trainings:
        if arm not in results.arms:
            continue
        found = {LABELS[group]: ratio_of(results, results.pairs(arm, group)) for group in results.groups}
        listed = ", ".join(f"{one.value:.3f} ({label})" for label, one in found.items())
        points = [one.value for one in found.values()]
        rises = f" and {'rises' if points == sorted(points) else 'does not rise'} from group to group"
        listed += rises if results.gradient else ""
        adjusted = zip(found.items(), holm([one.p for one in found.values()]), strict=True)
        sure = ", ".join(label for (label, one), p in adjusted if one.value < 1 and p <= LEVEL) or "no group"
        parts.append(f"{results.label(arm)}: rho is {listed}; below 1 at 5%, Holm over its groups: {sure}.")
    return " ".join(parts)


def in_short(results: Results) -> str:
    """Return the verdict on unseen questions, or an experiment's gain on its own questions, or an empty text."""
    if not results.groups:
        return ""
    arm, unseen = results.trainings[0], [name for name in results.groups if name != "trained"]
    if results.plan is None and unseen:
        seed = results.seeds[0]
        trained, flat = ([row for name in unseen for row in seed.rows(one, name)] for one in (arm, "flat"))
        return f"On questions training never saw, {judge(trained, flat, seed.keys).said}"
    if arm not in results.arms or "trained" not in results.groups:
        return ""
    pairs = results.pairs(arm, "trained")
    before, after = (fmean(scores) for scores in reversed(split(flatten(pairs), "f1")))
    cost = actions_in_words(ratio_of(results, pairs).interval)
    return f"On the questions it was trained on, a trained store: {cost}, accuracy {before:.2f} to {after:.2f}."


def by_seed(results: Results) -> Table | None:
    """Return rho and the F1 difference per seed; None for a single seed."""
    if len(results.seeds) == 1:
        return None
    lines: list[Line] = []
    for arm in main_arms(results):
        for what, cell in (("rho", rho_cell), ("difference", difference_cell)):
            lines.append(Line(f"{results.label(arm)}: {what}"))
            for seed in results.seeds:
                cells = [cell(results, "seeds", arm, group, [seed]) for group in columns(results)]
                lines.append(Line(f"seed {seed.number}", cells))
    return results.table("seeds", lines, columns=headings(results))


# A reader may use its last action to answer instead of running out: both exhaust its budget.
STRATA: dict[str, Callable[[Row, int], bool]] = {
    "at its budget's end": lambda flat, budget: flat.outcome == "out_of_budget" or flat.actions >= budget,
    "done with actions to spare": lambda flat, budget: flat.outcome == "answered" and flat.actions < budget,
}


def budget_split(results: Results) -> Table:
    """Split each group by the question's outcome on the flat store."""
    lines: list[Line] = []
    for arm in main_arms(results):
        for stratum in STRATA:
            lines.append(Line(f"{results.label(arm)}, where flat was {stratum}"))
            found = [_stratum_cells(results, arm, group, stratum) for group in columns(results)]
            rows = zip(("n", "F1 flat", "F1 arm", "rho"), zip(*found, strict=True), strict=True)
            lines += [Line(f"   {name}", cells) for name, cells in rows]
    return results.table("budget", lines, columns=headings(results))


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
    formula = f"mean actions on the arm over those on flat; {how(results)}, over {what}"
    return [
        n,
        number(f"{id}/f1_flat", flat, f"mean F1 of flat over {what}", files),
        number(f"{id}/f1", mine, f"mean F1 of the arm over {what}", files),
        estimate(f"{id}/rho", ratio, formula, files, mark=1.0),
    ]


def controls(results: Results) -> Table | None:
    """Return every training against every control, and against the oracle, which is asked no questions."""
    lines: list[Line] = []
    for control in (arm for arm in results.arms if arm.startswith("control-") or arm == "oracle"):
        for what, cell in (("actions over those of", rho_cell), ("F1 minus that of", difference_cell)):
            of_control = partial(cell, results, f"controls/{control}", base=control)
            lines += block(results, f"{what} {results.label(control)}", results.trainings, of_control)
    return results.table("controls", lines, columns=headings(results)) if lines else None
