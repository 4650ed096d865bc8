"""Tables about stores: arms and their cost, coverage in four readings, index quality, audit.

Stores of trained arms come from their traces; unsupervised arms from the records of their builds.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import msgspec

from kbgym.analysis.audit import SHAPES, quality
from kbgym.analysis.cells import TABLES, Cell, CellSource, Line, Table, estimate, number
from kbgym.analysis.results import POOLED, Results
from kbgym.analysis.statistics import Interval, difference
from kbgym.analysis.tables.arms import gain_of, how, mean_cell
from kbgym.analysis.trajectory import Trained
from kbgym.analysis.verdict import TEXTS
from kbgym.worlds.truth import GROUPS

LAST = "the store at the end of the trace"


def traces(results: Results, arm: str, what: str) -> list[CellSource]:
    return [CellSource(seed.trained[arm].trace, what) for seed in results.seeds]


def store_sources(results: Results, arm: str) -> list[CellSource]:
    """Return the sources of an arm's store data."""
    if arm in results.trainings:
        return traces(results, arm, LAST)
    files = (seed.folder / "arms" / f"{arm}.json" for seed in results.seeds)
    return [CellSource(str(file.relative_to(results.root)), "documents, authored, links, coverage") for file in files]


def arms(results: Results) -> Table:
    lines: list[Line] = []
    for arm in results.arms:
        about: list[dict[str, Any]] = [seed.arms[arm] for seed in results.seeds]
        counted = ("documents", "authored", "links", "tokens")
        values: dict[str, float | None] = {name: fmean(one.get(name, 0) for one in about) for name in counted}
        values["coverage"] = fmean(one["coverage"]["direct"] for one in about)
        values["actions_spent"] = fmean(
            seed.trained[arm].total.actions if arm in seed.trained else 0 for seed in results.seeds
        )
        cells = TABLES["arms"].cells(f"arms/{arm}", values, store_sources(results, arm))
        for field, digits in (("f1", 3), ("em", 3), ("actions", 2), ("characters", 0)):
            cells.append(mean_cell(results, f"arms/{arm}/{field}", arm, POOLED, field, digits))
        lines.append(Line(results.label(arm), cells))
    return results.table("arms", lines, TEXTS["indexes"] if {"graphrag", "raptor"} & set(results.arms) else "")


def readings(results: Results) -> Table:
    lines = []
    for arm in results.arms:
        shares = [seed.arms[arm]["coverage"] for seed in results.seeds]
        values = {
            one.name: None if None in (found := [share.get(one.name) for share in shares]) else fmean(found)
            for one in TABLES["readings"].measures
        }
        cells = TABLES["readings"].cells(f"readings/{arm}", values, store_sources(results, arm))
        lines.append(Line(results.label(arm), cells))
    return results.table("readings", lines)


def per_point(results: Results) -> Table:
    """Return gains over flat, pooled over the groups, per point of coverage."""
    lines: list[Line] = []
    for arm in results.arms:
        share = fmean(seed.arms[arm]["coverage"]["direct"] for seed in results.seeds)
        cells: list[Cell | None] = [
            *TABLES["coverage"].cells(f"coverage/{arm}", {"direct": share}, store_sources(results, arm)),
            mean_cell(results, f"coverage/{arm}/actions", arm, POOLED, "actions", 2),
            mean_cell(results, f"coverage/{arm}/f1", arm, POOLED, "f1"),
        ]
        if share and arm != "flat":
            points = share * 100
            pairs = results.pairs(arm, POOLED)
            saved = difference(results.sampled(pairs, lambda row: -float(row.actions)), results.apart)
            found = {"actions saved": saved.interval, "f1 gained": gain_of(results, pairs).interval}
            for name, one in found.items():
                field = name.split()[0]
                each = Interval(one.value / points, one.low / points, one.high / points)
                formula = f"mean {name} against flat over {points:.2f} points of coverage; {how(results)}"
                sources = results.sources(arm, POOLED, field, "flat")
                cells.append(estimate(f"coverage/{arm}/{field}_a_point", each, formula, sources, 4, mark=0.0))
        else:
            cells += [None, None]
        lines.append(Line(results.label(arm), cells))
    return results.table("coverage", lines)


def index_quality(results: Results, arm: str) -> Table | None:
    """Return link precision and recall by kind of key, pooled over seeds; None if the world has no truth."""
    audits = [seed.trained[arm].health.audit for seed in results.seeds]
    if not all(audit.resolved for audit in audits):
        return None
    files = traces(results, arm, "authored documents of the last store, judged against the world's facts")
    scored = [index for audit in audits for index in audit.indexes if index.scored]
    lines: list[Line] = []
    for group in (*GROUPS, "all"):
        found = quality(group, [index for index in scored if group in (index.group, "all")])
        if found is None:
            continue
        values = {name: getattr(found, name) for name in ("degree", "precision", "recall")}
        id = f"index-quality/{arm}/{group.replace(' ', '-')}"
        cells = TABLES["index-quality"].cells(id, {"n": found.n / len(audits), **values}, files)
        lines.append(Line(group, cells))
    unscored = sum(audit.count("other") for audit in audits) / len(audits)
    sentence = f"{unscored:,.0f} more indexes a seed name no single key and are not scored."
    return results.table("index-quality", lines, sentence if unscored else "", of=arm)


def _held(trained: Trained) -> dict[str, float]:
    """Return the measures of the audit of one store."""
    found, degrees = trained.health, trained.trajectory.degrees
    return {
        **msgspec.structs.asdict(found.ledger),
        **{shape: found.audit.count(shape) for shape in SHAPES},
        **found.links,
        "links": found.ledger.links,
        "wrong links": len(found.suspects),
        "incomplete indexes": len(found.incomplete),
        "duplicates": found.duplicates,
        "lost originals": found.ledger.lost_origins,
        "merges": sum(one.edits["merge"] for one in trained.trajectory.epochs),
        "median out-degree": degrees.median,
        "mean out-degree": degrees.mean,
    }


ONLY_BY_FACTS = ("incomplete indexes",)  # without known members, nothing can be missing


def store_audit(results: Results) -> Table:
    """Return the kinds of authored documents, the kinds of links and the damage; one column per training."""
    held = {arm: [_held(seed.trained[arm]) for seed in results.seeds] for arm in results.trainings}
    means = {arm: {name: fmean(one[name] for one in several) for name in several[0]} for arm, several in held.items()}
    known = all(seed.trained[arm].health.audit.resolved for arm in results.trainings for seed in results.seeds)
    lines = []
    for one in TABLES["audit"].measures:
        if known or one.name not in ONLY_BY_FACTS:
            key, formula = one.name.replace(" ", "-"), f"{one.formula}, mean over seeds"
            cells = [
                number(f"audit/{arm}/{key}", of[one.name], formula, traces(results, arm, LAST), 1)
                for arm, of in means.items()
            ]
            lines.append(Line(one.name, cells))
    return results.table("audit", lines, columns=[results.label(arm) for arm in means])
