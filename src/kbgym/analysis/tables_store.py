"""The tables about stores: arms and what they cost, coverage in four readings, index quality, audit.

Stores of trained arms come from their traces; unsupervised arms from what was noted when they were built.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from kbgym.analysis import published as paper
from kbgym.analysis.audit import SHAPES, quality
from kbgym.analysis.cells import Cell, Line, Source, Table, number, published
from kbgym.analysis.results import POOLED, Results, Trained
from kbgym.analysis.tables import flatten, mean_cell
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
    unscored = sum(audit.count("other") for audit in audits)
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
        sentence = f"{total.n / len(audits):,.0f} scored indexes a seed: {total.precision:.1%} of their links are right and they lead to {total.recall:.1%} of their keys' members (the paper: 94% and 91%)."
        if unscored:
            sentence += f" {unscored / len(audits):.0f} more indexes a seed name no single key and are not scored."
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
            f"{results.label(arm)}: {authored:,.0f} authored documents a seed, {stubs:.1f} stubs, {lost:.1f} originals lost."
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
