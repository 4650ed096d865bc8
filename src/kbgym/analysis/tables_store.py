"""The tables about stores: arms and what they cost, coverage in four readings, index quality, audit, edits, break-even.

Stores of trained arms come from their traces; unsupervised arms from what was noted when they were built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from kbgym.analysis import published as paper
from kbgym.analysis.audit import SHAPES, quality
from kbgym.analysis.cells import Cell, Line, Source, Table, number, published
from kbgym.analysis.results import LABELS, POOLED, Results, Trained
from kbgym.analysis.retention import forward_passes
from kbgym.analysis.stats import break_even
from kbgym.analysis.tables import flatten, mean_cell
from kbgym.analysis.trajectory import EDITS
from kbgym.worlds.truth import GROUPS

READS_INDEXES = (
    "The GraphRAG and RAPTOR rows measure the reference reader as well as the structure: it opens only documents it "
    "recognises as an index of a key, and a summary of a community is none."
)


def over_seeds(results: Results, arm: str, value: Callable[[Trained], float]) -> float:
    return fmean(value(seed.trained[arm]) for seed in results.seeds)


def traces(results: Results, arm: str, what: str) -> list[Source]:
    return [Source(seed.trained[arm].trace, what) for seed in results.seeds]


def arms(results: Results) -> Table:
    lines: list[Line] = []
    for arm in results.arms:
        about = [seed.arms[arm] for seed in results.seeds]
        files = [_source(results, seed.number, arm) for seed in results.seeds]
        cells: list[Cell | None] = [
            number(
                f"arms/{arm}/{name}",
                fmean(float(one.get(name, 0)) for one in about),
                f"{name} of the store, mean over seeds",
                files,
                0,
            )
            for name in ("documents", "authored", "links")
        ]
        share = fmean(one["coverage"]["direct"] for one in about)
        cells.append(
            number(
                f"arms/{arm}/coverage", share, "share of originals an index links to, mean over seeds", files, 3, True
            )
        )
        cells.append(
            number(
                f"arms/{arm}/tokens",
                fmean(float(one.get("tokens", 0)) for one in about),
                "model tokens spent on building, mean over seeds",
                files,
                0,
            )
        )
        spent = (
            over_seeds(results, arm, lambda one: one.spent[max(one.spent)].actions) if arm in results.trainings else 0.0
        )
        cells.append(
            number(f"arms/{arm}/actions_spent", spent, "actions of all training passes, mean over seeds", files, 0)
        )
        cells += [
            mean_cell(results, f"arms/{arm}/f1", arm, POOLED, "f1"),
            mean_cell(results, f"arms/{arm}/em", arm, POOLED, "em"),
            mean_cell(results, f"arms/{arm}/actions", arm, POOLED, "actions", 2),
            mean_cell(results, f"arms/{arm}/characters", arm, POOLED, "characters", 0),
        ]
        lines.append(Line(results.label(arm), tuple(cells)))
    for arm, links in paper.LINKS.items() if results.kind == "people" else ():
        row: list[Cell | None] = [None, None, published(f"arms/{arm}/links", links, 0)]
        row += [published(f"arms/{arm}/coverage", paper.PER_POINT[arm][0], 3, True)]
        row += [published(f"arms/{arm}/tokens", paper.TOKENS.get(arm, 0), 0), None]
        row += [published(f"arms/{arm}/f1", paper.F1[arm][POOLED]), None]
        row += [published(f"arms/{arm}/actions", paper.ACTIONS[arm][POOLED], 2), None]
        lines.append(Line(f"paper: {results.label(arm)}", tuple(row), paper=True))
    heads = (
        "documents",
        "authored",
        "links",
        "coverage",
        "build tokens",
        "training actions",
        "F1",
        "EM",
        "actions",
        "characters",
    )
    best = max(
        (arm for arm in results.arms if arm != "oracle"),
        key=lambda arm: fmean(r.f1 or 0.0 for r, _ in flatten(results.pairs(arm, POOLED))),
    )
    least = min(
        (arm for arm in results.arms if arm not in ("oracle", "nostore")),
        key=lambda arm: fmean(r.actions for r, _ in flatten(results.pairs(arm, POOLED))),
    )
    sentence = f"Apart from the oracle, {results.label(best)} has the highest F1 and {results.label(least)} the fewest actions over all groups."
    note = f" {READS_INDEXES}" if {"graphrag", "raptor"} & set(results.arms) else ""
    return Table(
        "arms",
        "The arms: size, cost, result",
        heads,
        tuple(lines),
        f"{results.caption()} Pooled over all groups.{note}",
        sentence,
        "store",
    )


def _source(results: Results, number: int, arm: str) -> Source:
    seed = next(one for one in results.seeds if one.number == number)
    if arm in seed.trained:
        return Source(seed.trained[arm].trace, "the store at the end of the trace")
    return Source(
        str((seed.folder / "arms" / f"{arm}.json").relative_to(results.root)), "documents, authored, links, coverage"
    )


def readings(results: Results) -> Table:
    lines: list[Line] = []
    for arm in results.arms:
        files = [_source(results, seed.number, arm) for seed in results.seeds]
        cells: list[Cell | None] = []
        for name, formula in READINGS.items():
            found = [seed.arms[arm]["coverage"].get(name) for seed in results.seeds]
            value = fmean(float(one) for one in found) if all(one is not None for one in found) else None
            cells.append(number(f"readings/{arm}/{name}", value, f"{formula}, mean over seeds", files, 3, True))
        lines.append(Line(results.label(arm), tuple(cells)))
    for arm, values in paper.READINGS.items() if results.kind == "people" else ():
        row = tuple(
            published(f"readings/{arm}/{name}", value, 3, True) for name, value in zip(READINGS, values, strict=True)
        )
        lines.append(Line(f"paper: {results.label(arm)}", row, paper=True))
    parts = []
    for arm in results.trainings:
        line = next(line for line in lines if line.head == results.label(arm))
        parts.append(
            f"{results.label(arm)} covers {line.cells[0].text if line.cells[0] else '–'} of the originals directly."
        )
    return Table(
        "readings", "Coverage in four readings", ("direct", "two hops", "confirmed links", "questions in one read"),
        tuple(lines), results.caption(n=False), " ".join(parts), "store",
    )  # fmt: skip


READINGS = {
    "direct": "share of originals an index links to directly",
    "two_hops": "share of originals an index reaches in one or two links",
    "confirmed": "share of originals under a link that the world's facts confirm",
    "questions": "share of the world's questions whose whole support one index reaches",
}


def index_quality(results: Results, arm: str) -> Table | None:
    """Precision and recall of the links by kind of key, pooled over seeds; None where the world has no truth."""
    audits = [seed.trained[arm].health.audit for seed in results.seeds]
    if not all(audit.resolved for audit in audits):
        return None
    files = traces(results, arm, "authored documents of the last store, judged against the world's facts")
    lines: list[Line] = []
    total = None
    for group in (*GROUPS, "all"):
        inside = [
            index for audit in audits for index in audit.indexes if index.scored and group in (index.group, "all")
        ]
        found = quality(group, inside)
        theirs = paper.QUALITY[group]
        cells: list[Cell | None] = [None] * 4
        if found is not None:
            id = f"index-quality/{arm}/{group.replace(' ', '-')}"
            cells = [
                number(f"{id}/n", found.n / len(audits), "indexes of this kind of key, mean over seeds", files, 1),
                number(f"{id}/degree", found.degree, "mean links an index", files, 1),
                number(f"{id}/precision", found.precision, "right links over links, pooled", files, 3, True),
                number(f"{id}/recall", found.recall, "members led to over members, pooled", files, 3, True),
            ]
            total = found if group == "all" else total
        cells += [
            published(f"index-quality/{group}/{name}", value, digits, percent)
            for name, value, digits, percent in zip(
                ("n", "degree", "precision", "recall"), theirs, (0, 1, 2, 2), (False, False, True, True), strict=True
            )
        ]
        lines.append(Line(group, tuple(cells)))
    sentence = "There is no index to score."
    if total is not None:
        sentence = f"{total.n / len(audits):.0f} scored indexes a seed: {total.precision:.1%} of their links are right and they lead to {total.recall:.1%} of their keys' members (the paper: 94% and 91%)."
    heads = ("n", "links", "precision", "recall", "paper: n", "paper: links", "paper: precision", "paper: recall")
    return Table(
        f"index-quality-{arm}",
        f"Index quality by kind of key: {results.label(arm)}",
        heads,
        tuple(lines),
        f"{results.caption(n=False)} {paper.NOTE}",
        sentence,
        "key",
    )


def store_audit(results: Results) -> Table:
    """What the authored documents are, what the links join, what is broken; one column a training."""
    measures: list[tuple[str, Callable[[Trained], float], str]] = [
        ("authored", lambda t: t.health.ledger.authored, "authored documents alive"),
        *((shape, lambda t, shape=shape: t.health.audit.count(shape), f"authored documents that are {shape}") for shape in SHAPES),
        ("links", lambda t: t.health.ledger.links, "links"),
        *((ends, lambda t, ends=ends: t.health.links[ends], f"links {ends}") for ends in ("index to source", "index to index", "source to index", "source to source")),
        ("wrong links", lambda t: len(t.health.suspects), "links the world's facts call wrong (suspected, where it has none)"),
        ("incomplete indexes", lambda t: len(t.health.incomplete), "indexes missing a member"),
        ("duplicates", lambda t: t.health.duplicates, "documents that repeat another's text or key"),
        ("lost originals", lambda t: t.health.ledger.lost_origins, "originals no document carries"),
        ("orphans", lambda t: t.health.ledger.orphans, "authored documents without any link"),
        ("merges", lambda t: t.health.ledger.merged, "merges by the duplicate guard"),
        ("median out-degree", lambda t: t.trajectory.degrees.median, "median links of an authored document"),
        ("mean out-degree", lambda t: t.trajectory.degrees.mean, "mean links of an authored document"),
        ("largest out-degree", lambda t: t.trajectory.degrees.largest, "most links of an authored document"),
    ]  # fmt: skip
    lines = []
    for name, value, formula in measures:
        cells = [
            number(
                f"audit/{arm}/{name.replace(' ', '-')}",
                over_seeds(results, arm, value),
                f"{formula}, mean over seeds",
                traces(results, arm, "the last store"),
                1,
            )
            for arm in results.trainings
        ]
        theirs = paper.AUDIT.get(name) if results.kind == "people" else None
        lines.append(Line(name, (*cells, published(f"audit/{name.replace(' ', '-')}", theirs, 1))))
    parts = []
    for arm in results.trainings:
        stubs, authored, lost = (
            over_seeds(results, arm, v)
            for v in (
                lambda t: t.health.audit.count("stub"),
                lambda t: t.health.ledger.authored,
                lambda t: t.health.ledger.lost_origins,
            )
        )
        parts.append(
            f"{results.label(arm)}: {authored:.0f} authored documents a seed, {stubs:.1f} stubs, {lost:.1f} originals lost."
        )
    return Table(
        "audit",
        "What the store holds",
        (*(results.label(arm) for arm in results.trainings), "paper"),
        tuple(lines),
        f"{results.caption(n=False)} Means over seeds. {paper.NOTE}",
        " ".join(parts),
        "measure",
    )


def edits(results: Results, arm: str) -> Table:
    """What the backward passes did, epoch by epoch, means over seeds."""
    epochs = sorted({epoch.epoch for seed in results.seeds for epoch in seed.trained[arm].trajectory.epochs})
    files = traces(results, arm, "act events of backward passes")
    growth = {epoch: over_seeds(results, arm, lambda t, e=epoch: _growth(t, e)) for epoch in epochs}  # type: ignore[misc]
    share = {
        epoch: over_seeds(results, arm, lambda t, e=epoch: t.coverage_at(e * t.run.settings.questions))
        for epoch in epochs
    }  # type: ignore[misc]
    halves = _halves(results, arm)
    lines = []

    def line(
        name: str,
        values: Sequence[float],
        formula: str,
        theirs: Sequence[float | None],
        digits: int = 2,
        percent: bool = False,
    ) -> None:
        key = name.replace(" ", "-")
        cells: list[Cell | None] = [
            number(f"edits/{arm}/{key}/epoch{e}", v, f"{formula}, mean over seeds", files, digits, percent)
            for e, v in zip(epochs, values, strict=True)
        ]
        shown = [*theirs, *([None] * len(epochs))][: len(epochs)] if results.kind == "people" else [None] * len(epochs)
        cells += [published(f"edits/{key}/epoch{e}", v, digits, percent) for e, v in zip(epochs, shown, strict=True)]
        lines.append(Line(name, tuple(cells)))

    def of(value: Callable[[object], float]) -> list[float]:
        return [
            fmean(value(one) for seed in results.seeds for one in seed.trained[arm].trajectory.epochs if one.epoch == e)
            for e in epochs
        ]

    line("edits a pass", of(lambda e: e.edits_a_pass), "successful edits over backward passes", paper.EDITS_A_PASS)  # type: ignore[attr-defined]
    line("actions a pass", of(lambda e: e.actions / e.passes), "actions over backward passes", paper.ACTIONS_A_PASS)  # type: ignore[attr-defined]
    line("documents added a pass", list(growth.values()), "net documents added over passes", paper.GROWTH)
    line("coverage at the end", list(share.values()), "direct coverage at the epoch's end", paper.COVERAGE, 3, True)
    for name in EDITS:
        line(f"{name} calls", of(lambda e, name=name: e.edits[name]), f"successful {name} actions", (), 1)  # type: ignore[attr-defined,misc]
    line("candidates judged", of(lambda e: e.judged), "additions and edits the duplicate guard had to judge", (), 1)  # type: ignore[attr-defined]
    line("errors", of(lambda e: e.errors), "actions answered with an error", (), 1)  # type: ignore[attr-defined]
    first = of(lambda e: e.edits_a_pass)  # type: ignore[attr-defined]
    sentence = f"The curator makes {first[0]:.1f} edits a pass in epoch {epochs[0]}" + (
        f" and {first[-1]:.1f} in epoch {epochs[-1]}; coverage goes from {share[epochs[0]]:.1%} to {share[epochs[-1]]:.1%}."
        if len(epochs) > 1
        else "."
    )
    sentence += f" Forward F1 is {halves[0]:.2f} over the first half of epoch 1 and {halves[1]:.2f} over the second (the paper: {paper.FORWARD_HALVES[0]:.2f} and {paper.FORWARD_HALVES[1]:.2f})."
    heads = (*(f"epoch {e}" for e in epochs), *(f"paper: epoch {e}" for e in epochs))
    return Table(
        f"edits-{arm}",
        f"E1, what training did: {results.label(arm)}",
        heads,
        tuple(lines),
        f"{results.caption(n=False)} Means over seeds. {paper.NOTE}",
        sentence,
        "measure",
    )


def _growth(trained: Trained, epoch: int) -> float:
    points = trained.trajectory.points
    inside = [point for point in points if point.epoch == epoch]
    before = [point for point in points if point.epoch < epoch]
    passes = next(one.passes for one in trained.trajectory.epochs if one.epoch == epoch)
    return (inside[-1].documents - before[-1].documents) / passes


def _halves(results: Results, arm: str) -> tuple[float, float]:
    first, second = [], []
    for seed in results.seeds:
        found = [one.f1 for one in forward_passes(seed.trained[arm]) if one.epoch == 1]
        first += found[: len(found) // 2]
        second += found[len(found) // 2 :]
    return fmean(first), fmean(second)


def breaking_even(results: Results) -> Table:
    """After how many questions training has paid for itself, by group, in actions and in characters read."""
    lines, said = [], []
    groups = (*results.groups, POOLED)
    for arm in results.trainings:
        for unit in ("actions", "characters"):
            training = over_seeds(results, arm, lambda t, unit=unit: getattr(t.spent[max(t.spent)], unit))  # type: ignore[misc]
            cells: list[Cell | None] = [
                number(
                    f"break-even/{arm}/{unit}/training",
                    training,
                    f"{unit} of all training passes, mean over seeds",
                    traces(results, arm, "act events"),
                    0,
                )
            ]
            for group in groups:
                pairs = flatten(results.pairs(arm, group))
                flat, mine = fmean(getattr(b, unit) for _, b in pairs), fmean(getattr(a, unit) for a, _ in pairs)
                found = break_even(training, flat, mine)
                id = f"break-even/{arm}/{unit}/{group}"
                text = number(
                    id,
                    found,
                    f"training {unit} over {unit} saved a question ({flat:.1f} - {mine:.1f})",
                    results.sources(arm, group, unit, "flat"),
                    0,
                )
                cells.append(text if found is not None else Cell(id, "never", None, text.formula, text.sources))
                if unit == "actions" and group == results.groups[0]:
                    said.append(
                        f"{results.label(arm)} pays back its {training:,.0f} training actions after "
                        + (
                            f"{found:,.0f} questions of the {LABELS[group]} group."
                            if found
                            else "no number of questions."
                        )
                    )
            lines.append(Line(f"{results.label(arm)}, {unit}", tuple(cells)))
    if results.kind == "people":
        theirs: list[Cell | None] = [
            published("break-even/tokens/training", paper.BREAK_EVEN["training"], 0),
            published("break-even/tokens/trained", paper.BREAK_EVEN["questions"], 0),
        ]
        lines.append(Line("paper: trained, tokens", (*theirs, *([None] * (len(groups) - 1))), paper=True))
    heads = ("training spent", *(LABELS.get(group, group) for group in groups))
    return Table(
        "break-even",
        "Break-even: questions until training is paid for",
        heads,
        tuple(lines),
        f"{results.caption()} No tokens: no language model ran.",
        " ".join(said),
        "store and unit",
    )
