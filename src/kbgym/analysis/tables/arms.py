"""The gradient table and its seeds, and the measures all tables about arms on questions share.

Every function takes opened results and gives a table of traceable cells with a sentence made from its own numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from kbgym.analysis import published as paper
from kbgym.analysis.cells import Cell, Line, Table, estimate, number, published
from kbgym.analysis.results import LABELS, POOLED, Pair, Results, Seed
from kbgym.analysis.seeds import pooled_over_seeds
from kbgym.analysis.stats import Interval, ratio_of_means, score_difference

RHO = "mean actions on the arm over mean actions on the flat store, same questions; "
BOOTSTRAP = "95% interval by paired bootstrap over questions (10,000 resamples, both arms redrawn together"


def columns(results: Results) -> tuple[str, ...]:
    return (*results.groups, POOLED)


def headings(results: Results) -> tuple[str, ...]:
    return tuple(LABELS.get(name, name) for name in columns(results))


def flatten(pairs: Sequence[Sequence[Pair]]) -> list[Pair]:
    return [pair for of_seed in pairs for pair in of_seed]


def rho(pairs: Sequence[Sequence[Pair]], field: Callable[..., float] = lambda row: row.actions) -> Interval:
    """One seed: the paired bootstrap. Several: questions redrawn inside their seeds."""
    split = [([field(a) for a, _ in seed], [field(b) for _, b in seed]) for seed in pairs if seed]
    if len(split) == 1:
        return ratio_of_means(*split[0])
    return pooled_over_seeds(split, "ratio").pooled


def f1_difference(pairs: Sequence[Sequence[Pair]]) -> Interval:
    both = flatten(pairs)
    return score_difference([a.f1 or 0.0 for a, _ in both], [b.f1 or 0.0 for _, b in both])


def rho_cell(results: Results, table: str, arm: str, group: str, seeds: Sequence[Seed] | None = None) -> Cell:
    where = f"{table}/{arm}/{group}/rho" if seeds is None else f"{table}/{arm}/seed-{seeds[0].number}/{group}/rho"
    many = len(results.seeds if seeds is None else seeds) > 1
    formula = f"{RHO}{BOOTSTRAP}{', inside each seed' if many else ''})"
    found = rho(results.pairs(arm, group, seeds=seeds))
    return estimate(where, found, formula, results.sources(arm, group, "actions", "flat", seeds), mark=1.0)


def mean_cell(
    results: Results, id: str, arm: str, group: str, field: str, digits: int = 3, seeds: Sequence[Seed] | None = None
) -> Cell:
    pairs = flatten(results.pairs(arm, group, seeds=seeds))
    value = fmean(float(getattr(row, field) or 0.0) for row, _ in pairs)
    formula = f"mean of {field} over questions scored on this arm and on flat (n = {len(pairs)})"
    return number(id, value, formula, results.sources(arm, group, field, seeds=seeds), digits)


def gradient(results: Results) -> Table:
    """The paper's main table: rho and F1 by group and arm, and the difference with its interval."""
    lines: list[Line] = [Line("rho: actions relative to the flat store")]
    compared = [arm for arm in results.arms if arm != "flat"]
    for arm in compared:
        if arm == "nostore":  # it gives up at once: how soon says nothing
            continue
        cells = [rho_cell(results, "gradient", arm, group) for group in columns(results)]
        lines.append(Line(results.label(arm), tuple(cells)))
    lines += _paper_lines(results, paper.RHO, "rho", ("graphrag", "trained-paper"))
    lines.append(Line("F1"))
    for arm in results.arms:
        cells = [mean_cell(results, f"gradient/{arm}/{group}/f1", arm, group, "f1") for group in columns(results)]
        lines.append(Line(results.label(arm), tuple(cells)))
    lines += _paper_lines(results, paper.F1, "f1", ("flat", "graphrag", "hipporag", "trained-paper"))
    if results.world_kind.lists_answers:
        lines.append(Line("F1 over what stands between commas (PhantomWiki's own)"))
        for arm in results.arms:
            cells = [
                mean_cell(results, f"gradient/{arm}/{group}/set_f1", arm, group, "set_f1") for group in columns(results)
            ]
            lines.append(Line(results.label(arm), tuple(cells)))
    lines.append(Line("F1 minus the flat store's"))
    for arm in compared:
        cells = [difference_cell(results, "gradient", arm, group) for group in columns(results)]
        lines.append(Line(results.label(arm), tuple(cells)))
    for title, field, digits in (("actions a question", "actions", 2), ("characters read a question", "characters", 0)):
        lines.append(Line(title))
        for arm in results.arms:
            cells = [
                mean_cell(results, f"gradient/{arm}/{group}/{field}", arm, group, field, digits)
                for group in columns(results)
            ]
            lines.append(Line(results.label(arm), tuple(cells)))
        if field == "actions":
            lines += _paper_lines(results, paper.ACTIONS, field, ("flat", "hipporag", "trained-paper"), 2)
    caption = f"{results.caption()} * marks an interval that excludes 1 (rho) or 0 (difference). {paper.NOTE}"
    return Table(
        "gradient", "The key-coverage gradient", headings(results), tuple(lines), caption, _monotone(results), "store"
    )


def _monotone(results: Results) -> str:
    parts = []
    for arm in results.trainings:
        if arm not in results.arms:
            continue
        values = [rho(results.pairs(arm, group)) for group in results.groups]
        listed = ", ".join(
            f"{value.value:.3f} ({LABELS[group]})" for group, value in zip(results.groups, values, strict=True)
        )
        points = [value.value for value in values]
        shape = "rises from group to group" if points == sorted(points) else "does not rise from group to group"
        sure = [LABELS[g] for g, value in zip(results.groups, values, strict=True) if value.high < 1]
        parts.append(
            f"{results.label(arm)}: rho is {listed} and {shape}; it is below 1 with 95% confidence for "
            f"{', '.join(sure) if sure else 'no group'}."
        )
    return " ".join(parts)


def _paper_lines(
    results: Results, values: dict[str, dict[str, float]], what: str, arms: Sequence[str], digits: int = 3
) -> list[Line]:
    """The paper's rows, in the columns that are here; PhantomWiki has its own table."""
    if results.kind == paper.OTHER:
        return []
    found = []
    for arm in arms:
        cells = tuple(
            published(f"gradient/{arm}/{group}/{what}", values[arm].get(group), digits) for group in columns(results)
        )
        found.append(Line(f"paper: {paper.NAMES[arm]}", cells, paper=True))
    return found


def difference_cell(
    results: Results, table: str, arm: str, group: str, base: str = "flat", seeds: Sequence[Seed] | None = None
) -> Cell:
    where = (
        f"{table}/{arm}/{group}/difference"
        if seeds is None
        else f"{table}/{arm}/seed-{seeds[0].number}/{group}/difference"
    )
    formula = (
        f"mean F1 on the arm minus mean F1 on {results.label(base)}, same questions; {BOOTSTRAP}, two made-up "
        "questions half a point either way joined to the draw)"
    )
    found = f1_difference(results.pairs(arm, group, base, seeds))
    return estimate(where, found, formula, results.sources(arm, group, "f1", base, seeds), mark=0.0)


def by_seed(results: Results) -> Table:
    """Every seed by itself, then mean and spread: one draw is no result."""
    lines: list[Line] = []
    arms = [arm for arm in results.arms if arm in results.trainings or arm == "hipporag"]
    for arm in arms:
        lines.append(Line(f"{results.label(arm)}: rho"))
        for seed in results.seeds:
            cells = [rho_cell(results, "seeds", arm, group, [seed]) for group in columns(results)]
            lines.append(Line(f"seed {seed.number}", tuple(cells)))
        if len(results.seeds) > 1:
            lines += _spread(results, arm, "rho")
        lines.append(Line(f"{results.label(arm)}: F1 minus flat's"))
        for seed in results.seeds:
            cells = [difference_cell(results, "seeds", arm, group, seeds=[seed]) for group in columns(results)]
            lines.append(Line(f"seed {seed.number}", tuple(cells)))
        if len(results.seeds) > 1:
            lines += _spread(results, arm, "difference")
    group = results.groups[0]
    parts = []
    for arm in results.trainings:
        pairs = results.pairs(arm, group)
        below = sum(rho([seed]).high < 1 for seed in pairs)
        lower = sum(f1_difference([seed]).value < 0 for seed in pairs)
        parts.append(
            f"{results.label(arm)} on the {LABELS[group]} group: rho's interval lies below 1 on {below} of "
            f"{len(pairs)} seeds, and F1 is lower than flat's on {lower}."
        )
    caption = f"{results.caption()} Mean and sd are over seeds; the mean's interval is Student's t, for further seeds."
    return Table("seeds", "Seed by seed", headings(results), tuple(lines), caption, " ".join(parts), "seed")


def _spread(results: Results, arm: str, what: str) -> list[Line]:
    across, sds = [], []
    for group in columns(results):
        if what == "rho":
            split = [([a.actions for a, _ in s], [b.actions for _, b in s]) for s in results.pairs(arm, group)]
            over = pooled_over_seeds(split, "ratio", resamples=100)
            field = "actions"
        else:
            scores = [([a.f1 or 0.0 for a, _ in s], [b.f1 or 0.0 for _, b in s]) for s in results.pairs(arm, group)]
            over = pooled_over_seeds(scores, "difference", resamples=100)
            field = "f1"
        files = results.sources(arm, group, field, "flat")
        id = f"seeds/{arm}/{group}/{what}"
        across.append(
            estimate(
                f"{id}/mean", over.across, "mean of the per-seed estimates, Student's t interval over seeds", files
            )
        )
        sds.append(number(f"{id}/sd", over.sd, "standard deviation of the per-seed estimates", files))
    return [Line("mean [t interval]", tuple(across)), Line("sd over seeds", tuple(sds))]


def below_one(results: Results) -> str:
    """Which arms are surely cheaper than flat, for under a picture."""
    parts = []
    for arm in results.arms:
        if arm in ("flat", "nostore"):
            continue
        sure = [LABELS[group] for group in results.groups if rho(results.pairs(arm, group)).high < 1]
        parts.append(f"{results.label(arm)}: {', '.join(sure) if sure else 'none'}")
    return f"Groups on which an arm surely needs fewer actions than flat: {'; '.join(parts)}."
