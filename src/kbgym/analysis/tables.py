"""The tables about arms on questions: the gradient, seed by seed, non-inferiority, the budget split, coverage's worth.

Every function takes opened results and gives a table of traceable cells with a sentence made from its own numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from kbgym.analysis import published as paper
from kbgym.analysis.cells import Cell, Line, Source, Table, estimate, number, published, shown
from kbgym.analysis.results import LABELS, POOLED, Pair, Results, Seed
from kbgym.analysis.seeds import pooled_over_seeds
from kbgym.analysis.stats import (
    Interval,
    excludes,
    holm,
    mean_difference,
    non_inferior,
    ratio_of_means,
    score_difference,
    sign_flip,
)

MARGIN = 0.03
RHO = "mean actions on the arm over mean actions on the flat store, same questions; "
BOOTSTRAP = "95% interval by paired bootstrap over questions (10,000 resamples, both arms redrawn together"
STRATA = {
    "out of budget": lambda flat: flat.outcome == "out_of_budget",
    "wrong": lambda flat: flat.outcome == "answered" and (flat.f1 or 0.0) < 1.0,
    "right": lambda flat: flat.f1 == 1.0,
}


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
        cells = [rho_cell(results, "gradient", arm, group) for group in columns(results)]
        lines.append(Line(results.label(arm), tuple(cells)))
    lines += _paper_lines(results, paper.RHO, "rho", ("graphrag", "trained-paper"))
    lines.append(Line("F1"))
    for arm in results.arms:
        cells = [mean_cell(results, f"gradient/{arm}/{group}/f1", arm, group, "f1") for group in columns(results)]
        lines.append(Line(results.label(arm), tuple(cells)))
    lines += _paper_lines(results, paper.F1, "f1", ("flat", "graphrag", "hipporag", "trained-paper"))
    if any(row.set_f1 != row.f1 for row in results.seeds[0].rows("flat", results.groups[0])):
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
    if results.kind == "phantomwiki":
        return []
    found = []
    for arm in arms:
        cells = tuple(
            published(f"gradient/{arm}/{group}/{what}", values[arm].get(group), digits) for group in columns(results)
        )
        found.append(Line(f"paper: {results.label(arm)}", cells, paper=True))
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
        f"mean F1 on the arm minus mean F1 on {results.label(base)}, same questions; {BOOTSTRAP}, two made-up questions "
        "half a point either way joined to the draw)"
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
            f"{results.label(arm)} on the {LABELS[group]} group: rho's interval lies below 1 on {below} of {len(pairs)} "
            f"seeds, and F1 is lower than flat's on {lower}."
        )
    caption = f"{results.caption()} Mean and standard deviation are over seeds; the last line is Student's t for a further seed's mean."
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


def non_inferiority(results: Results) -> Table:
    """Whether an arm may be called no worse than flat, and by how sure a test."""
    lines: list[Line] = []
    verdicts: dict[str, list[str]] = {}
    for arm in results.arms:
        if arm == "flat":
            continue
        p_values = []
        for group in columns(results):
            both = flatten(results.pairs(arm, group))
            p_values.append(sign_flip([a.f1 or 0.0 for a, _ in both], [b.f1 or 0.0 for _, b in both]))
        adjusted = holm(p_values)
        cells, tests = [], []
        for group, p in zip(columns(results), adjusted, strict=True):
            found = f1_difference(results.pairs(arm, group))
            fine = non_inferior(found, MARGIN)
            if fine:
                verdicts.setdefault(arm, []).append(group)
            files = tuple(results.sources(arm, group, "f1", "flat"))
            cells.append(
                Cell(
                    f"noninferiority/{arm}/{group}/verdict",
                    f"{'yes' if fine else 'no'} ({shown(found.low, 3)})",
                    found.low,
                    f"yes if the lower end of the F1 difference's 95% interval lies above -{MARGIN}",
                    files,
                )
            )
            formula = "two-sided sign-flip test of the F1 difference, Holm-adjusted over the columns"
            tests.append(number(f"noninferiority/{arm}/{group}/p", p, formula, files))
        lines += [Line(results.label(arm), tuple(cells)), Line("   p (Holm)", tuple(tests))]
    sentence = (
        " ".join(
            f"{results.label(arm)} is shown to be non-inferior to flat on {', '.join(LABELS.get(g, g) for g in found)}."
            for arm, found in verdicts.items()
            if arm in results.trainings or arm == "hipporag"
        )
        or "No trained arm is shown to be non-inferior to flat on any group at this n."
    )
    caption = f"{results.caption()} Margin {MARGIN} F1; in brackets the lower end of the interval."
    return Table(
        "noninferiority", "Non-inferior to the flat store?", headings(results), tuple(lines), caption, sentence, "store"
    )


def budget_split(results: Results) -> Table:
    """Each group by what the flat store did with the question."""
    lines: list[Line] = []
    arms = [arm for arm in results.arms if arm in results.trainings or arm == "hipporag"]
    said: dict[str, str] = {}
    for arm in arms:
        for stratum, inside in STRATA.items():
            lines.append(Line(f"{results.label(arm)}, where flat was {stratum}"))
            rows: dict[str, list[Cell | None]] = {"n": [], "F1 flat": [], "F1 arm": [], "rho": []}
            for group in columns(results):
                pairs = [(a, b) for a, b in flatten(results.pairs(arm, group)) if inside(b)]
                id = f"budget/{arm}/{stratum.replace(' ', '-')}/{group}"
                ids = tuple(a.id for a, _ in pairs)
                files = [
                    Source(one.file, one.field, tuple(i for i in ids))
                    for one in results.sources(arm, group, "f1, actions, outcome", "flat")
                ]
                what = f"questions on which flat was {stratum}"
                rows["n"].append(number(f"{id}/n", len(pairs), f"number of {what}", files, 0))
                if not pairs:
                    for name in ("F1 flat", "F1 arm", "rho"):
                        rows[name].append(None)
                    continue
                flat, mine = fmean(b.f1 or 0.0 for _, b in pairs), fmean(a.f1 or 0.0 for a, _ in pairs)
                rows["F1 flat"].append(number(f"{id}/f1_flat", flat, f"mean F1 of flat over {what}", files))
                rows["F1 arm"].append(number(f"{id}/f1", mine, f"mean F1 of the arm over {what}", files))
                ratio = ratio_of_means([a.actions for a, _ in pairs], [b.actions for _, b in pairs])
                rows["rho"].append(estimate(f"{id}/rho", ratio, f"{RHO}{BOOTSTRAP}), over {what}", files, mark=1.0))
                if group == POOLED and arm in results.trainings:
                    said[f"{arm}:{stratum}"] = f"{flat:.2f} to {mine:.2f} at rho {ratio.value:.2f} (n = {len(pairs)})"
            lines += [Line(f"   {name}", tuple(cells)) for name, cells in rows.items()]
    if results.kind != "phantomwiki":
        lines.append(Line("paper: trained, where flat was out of budget"))
        for place, name in enumerate(("F1 flat", "F1 arm")):
            cells = [
                published(f"budget/{group}/{name}", paper.OUT_OF_BUDGET[group][place] if group != POOLED else None, 2)
                for group in columns(results)
            ]
            lines.append(Line(f"   {name}", tuple(cells), paper=True))
    sentence = " ".join(
        f"{results.label(arm)}: F1 goes from {said[f'{arm}:out of budget']} where flat ran out of budget"
        f"{', and from ' + said[f'{arm}:right'] + ' where flat was right' if f'{arm}:right' in said else ''}."
        for arm in results.trainings
        if f"{arm}:out of budget" in said
    )
    return Table(
        "budget",
        "Split by what the flat store did",
        headings(results),
        tuple(lines),
        results.caption(),
        sentence or "The flat store never ran out of budget on these questions.",
        "measure",
    )


def per_point(results: Results) -> Table:
    """Gains over flat, pooled over the groups, by point of coverage."""
    lines: list[Line] = []
    gains: dict[str, tuple[float, float]] = {}
    for arm in results.arms:
        share = fmean(seed.arms[arm]["coverage"]["direct"] for seed in results.seeds)
        files = [_store_source(results, seed, arm) for seed in results.seeds]
        cells: list[Cell | None] = [
            number(
                f"coverage/{arm}/direct", share, "share of originals an index links to, mean over seeds", files, 3, True
            ),
            mean_cell(results, f"coverage/{arm}/actions", arm, POOLED, "actions", 2),
            mean_cell(results, f"coverage/{arm}/f1", arm, POOLED, "f1"),
        ]
        both = flatten(results.pairs(arm, POOLED))
        if share and arm != "flat":
            points = share * 100
            saved = mean_difference([b.actions for _, b in both], [a.actions for a, _ in both])
            gained = f1_difference(results.pairs(arm, POOLED))
            gains[arm] = (saved.value / points, gained.value / points)
            for name, found, field in (("actions", saved, "actions"), ("f1", gained, "f1")):
                each = Interval(found.value / points, found.low / points, found.high / points)
                what = "saved" if name == "actions" else "gained"
                formula = f"mean {name} {what} against flat over {points:.2f} points of coverage; {BOOTSTRAP})"
                sources = results.sources(arm, POOLED, field, "flat")
                cells.append(estimate(f"coverage/{arm}/{name}_a_point", each, formula, sources, 4, mark=0.0))
        else:
            cells += [None, None]
        lines.append(Line(results.label(arm), tuple(cells)))
    if results.kind != "phantomwiki":
        for arm, (share, actions, f1) in paper.PER_POINT.items():
            lines.append(
                Line(
                    f"paper: {results.label(arm)}",
                    (
                        published(f"coverage/{arm}/direct", share, 3, True),
                        published(f"coverage/{arm}/actions", paper.ACTIONS.get(arm, {}).get(POOLED), 2),
                        published(f"coverage/{arm}/f1", paper.F1[arm].get(POOLED)),
                        published(f"coverage/{arm}/actions_a_point", actions, 4),
                        published(f"coverage/{arm}/f1_a_point", f1, 4),
                    ),
                    paper=True,
                )
            )
    sentence = ""
    if "hipporag" in gains and gains["hipporag"][0] > 0:
        base = gains["hipporag"]
        sentence = " ".join(
            f"{results.label(arm)} saves {gains[arm][0]:.3f} actions and gains {gains[arm][1]:+.4f} F1 a point of coverage, "
            f"{gains[arm][0] / base[0]:.1f} times B3's actions."
            for arm in results.trainings
            if arm in gains
        )
    heads = ("coverage", "actions", "F1", "actions saved a point", "F1 gained a point")
    caption = f"{results.caption()} Pooled over all groups."
    return Table(
        "coverage",
        "What a point of coverage buys",
        heads,
        tuple(lines),
        caption,
        sentence or "No arm to compare with.",
        "store",
    )


def _store_source(results: Results, seed: Seed, arm: str) -> Source:
    if arm in seed.trained:
        return Source(seed.trained[arm].trace, "the store at the end of the trace")
    return Source(str((seed.folder / "arms" / f"{arm}.json").relative_to(results.root)), "coverage.direct")


def against_b3(results: Results) -> Table | None:
    """Trained stores against the strongest unsupervised one, pooled over the groups."""
    if "hipporag" not in results.arms:
        return None
    lines, said = [], []
    for arm in results.trainings:
        if arm not in results.arms:
            continue
        id = f"against-b3/{arm}"
        difference = difference_cell(results, "against-b3", arm, POOLED, "hipporag")
        pairs = results.pairs(arm, POOLED, "hipporag")
        actions, characters = rho(pairs), rho(pairs, lambda row: row.characters)
        links = [seed.arms[arm]["links"] / seed.arms["hipporag"]["links"] for seed in results.seeds]
        files = lambda field: results.sources(arm, POOLED, field, "hipporag")  # noqa: E731
        formula = f"mean on the arm over mean on B3, same questions; {BOOTSTRAP})"
        lines.append(
            Line(
                results.label(arm),
                (
                    difference,
                    estimate(f"{id}/actions", actions, formula, files("actions"), mark=1.0),
                    estimate(f"{id}/characters", characters, formula, files("characters"), mark=1.0),
                    number(f"{id}/links", fmean(links), "links of the arm over links of B3, mean over seeds", (), 4),
                ),
            )
        )
        said.append(
            f"{results.label(arm)} against B3: F1 {difference.text}, {actions.value:.2f} times the actions, "
            f"{characters.value:.2f} times the characters, {fmean(links):.3f} times the links."
        )
    heads = ("F1 minus B3's", "actions over B3's", "characters over B3's", "links over B3's")
    caption = f"{results.caption()} Pooled over all groups."
    return Table("against-b3", "Trained stores against B3", heads, tuple(lines), caption, " ".join(said), "store")


def sure_below_one(found: Interval) -> bool:
    return excludes(found, 1.0) and found.value < 1
