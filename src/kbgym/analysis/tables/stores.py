"""Tables about stores: arms and their cost, coverage in four readings, index quality, audit.

Stores of trained arms come from their traces; unsupervised arms from the records of their builds.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from kbgym.analysis.audit import SHAPES, Quality, quality
from kbgym.analysis.cells import Cell, CellSource, Line, Table, number
from kbgym.analysis.results import POOLED, Results
from kbgym.analysis.tables.arms import mean_cell
from kbgym.analysis.trajectory import Trained
from kbgym.worlds.truth import GROUPS

READS_INDEXES = (
    "The GraphRAG and RAPTOR rows measure the reference reader as well as the structure: it opens only documents it "
    "recognises as an index of a key, and a summary of a community is none."
)
READINGS = {
    "direct": "share of originals an index links to directly",
    "two_hops": "share of originals an index reaches in one or two links",
    "confirmed": "share of originals under a link that the world's facts confirm",
    "questions": "share of the world's questions whose whole support one index reaches",
}
LAST = "the store at the end of the trace"
SIZES = ("documents", "authored", "links")
ARM_HEADS = (*SIZES, "coverage", "build tokens", "training actions", "F1", "EM", "actions", "characters")
ENDS = ("index to source", "index to index", "source to index", "source to source")


def over_seeds(results: Results, arm: str, value: Callable[[Trained], float]) -> float:
    return fmean(value(seed.trained[arm]) for seed in results.seeds)


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
        spent = [_actions_spent(seed.trained.get(arm)) for seed in results.seeds]
        measures: list[tuple[str, list[float], str, int, bool]] = [
            *((name, [one[name] for one in about], f"{name} of the store", 0, False) for name in SIZES),
            ("coverage", [one["coverage"]["direct"] for one in about], READINGS["direct"], 3, True),
            ("tokens", [one.get("tokens", 0) for one in about], "model tokens spent on building", 0, False),
            ("actions_spent", spent, "actions of all training passes", 0, False),
        ]
        files = store_sources(results, arm)
        cells = [
            number(f"arms/{arm}/{name}", fmean(values), f"{what}, mean over seeds", files, digits, percent)
            for name, values, what, digits, percent in measures
        ]
        for field, digits in (("f1", 3), ("em", 3), ("actions", 2), ("characters", 0)):
            cells.append(mean_cell(results, f"arms/{arm}/{field}", arm, POOLED, field, digits))
        lines.append(Line(results.label(arm), cells))
    sentence = f"{len(lines)} stores, the same questions on each; means over seeds."
    note = f" {READS_INDEXES}" if {"graphrag", "raptor"} & set(results.arms) else ""
    caption = f"{results.caption()} Pooled over all groups.{note}"
    return Table("arms", "The arms: size, cost, result", ARM_HEADS, lines, caption, sentence, "store")


def _actions_spent(trained: Trained | None) -> float:
    return float(trained.spent[max(trained.spent)].actions) if trained else 0.0


def readings(results: Results) -> Table:
    lines: list[Line] = []
    said = []
    for arm in results.arms:
        cells = []
        for name, formula in READINGS.items():
            found = [seed.arms[arm]["coverage"].get(name) for seed in results.seeds]
            value = fmean(float(one) for one in found) if all(one is not None for one in found) else None
            what = f"{formula}, mean over seeds"
            cells.append(number(f"readings/{arm}/{name}", value, what, store_sources(results, arm), 3, True))
        lines.append(Line(results.label(arm), cells))
        if arm in results.trainings:
            direct, two_hops, *_ = (cell.text for cell in cells)
            said.append(f"{results.label(arm)} covers {direct} of the originals directly, {two_hops} in two hops.")
    heads = ("direct", "two hops", "confirmed links", "questions in one read")
    caption = results.caption(n=False)
    return Table("readings", "Coverage in four readings", heads, lines, caption, " ".join(said), "store")


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
        id = f"index-quality/{arm}/{group.replace(' ', '-')}"
        values = (found.n / len(audits), found.degree, found.precision, found.recall)
        cells = [
            number(f"{id}/{name}", value, formula, files, 3 if percent else 1, percent)
            for (name, formula, percent), value in zip(QUALITIES, values, strict=True)
        ]
        lines.append(Line(group, cells))
    heads = ("n", "links", "precision", "recall")
    unscored = sum(audit.count("other") for audit in audits) / len(audits)
    sentence = _quality_sentence(quality("all", scored), len(audits), unscored)
    caption = results.caption(n=False)
    title = f"Index quality by kind of key: {results.label(arm)}"
    return Table(f"index-quality-{arm}", title, heads, lines, caption, sentence, "key")


# name, formula, True if it is a share
QUALITIES = (
    ("n", "indexes of this kind of key, mean over seeds", False),
    ("degree", "mean links an index", False),
    ("precision", "right links over links, pooled", True),
    ("recall", "members led to over members, pooled", True),
)


def _quality_sentence(total: Quality | None, seeds: int, unscored: float) -> str:
    if total is None:
        return "There is no index to score."
    sentence = (
        f"{total.n / seeds:,.0f} scored indexes a seed: {total.precision:.1%} of their links are right and they lead "
        f"to {total.recall:.1%} of their keys' members."
    )
    if unscored:
        sentence += f" {unscored:,.0f} more indexes a seed name no single key and are not scored."
    return sentence


MEASURES: list[tuple[str, Callable[[Trained], float], str]] = [
    ("authored", lambda t: t.health.ledger.authored, "authored documents alive"),
    *(
        (shape, lambda t, shape=shape: t.health.audit.count(shape), f"authored documents that are {shape}")
        for shape in SHAPES
    ),
    ("links", lambda t: t.health.ledger.links, "links"),
    *((ends, lambda t, ends=ends: t.health.links[ends], f"links {ends}") for ends in ENDS),
    ("wrong links", lambda t: len(t.health.suspects), "links the world's facts call wrong, or that look wrong"),
    ("incomplete indexes", lambda t: len(t.health.incomplete), "indexes missing a member"),
    ("duplicates", lambda t: t.health.duplicates, "documents that repeat another's text or key"),
    ("lost originals", lambda t: t.health.ledger.lost_origins, "originals no document carries"),
    ("orphans", lambda t: t.health.ledger.orphans, "authored documents without any link"),
    ("merges", lambda t: sum(one.edits["merge"] for one in t.trajectory.epochs), "merges by the duplicate guard"),
    ("median out-degree", lambda t: t.trajectory.degrees.median, "median links of an authored document"),
    ("mean out-degree", lambda t: t.trajectory.degrees.mean, "mean links of an authored document"),
    ("largest out-degree", lambda t: t.trajectory.degrees.largest, "most links of an authored document"),
]


ONLY_BY_FACTS = ("incomplete indexes",)  # without known members, nothing can be missing


def store_audit(results: Results) -> Table:
    """Return the kinds of authored documents, the kinds of links and the damage; one column per training."""
    lines: list[Line] = []
    means: dict[tuple[str, str], float] = {}
    known = all(seed.trained[arm].health.audit.resolved for arm in results.trainings for seed in results.seeds)
    for name, value, formula in MEASURES:
        if name in ONLY_BY_FACTS and not known:
            continue
        key = name.replace(" ", "-")
        cells: list[Cell | None] = []
        for arm in results.trainings:
            means[arm, name] = over_seeds(results, arm, value)
            files = traces(results, arm, LAST)
            cells.append(number(f"audit/{arm}/{key}", means[arm, name], f"{formula}, mean over seeds", files, 1))
        lines.append(Line(name, cells))
    sentence = " ".join(
        f"{results.label(arm)}: {means[arm, 'authored']:,.0f} authored documents a seed, {means[arm, 'stub']:.1f} of "
        f"them stubs, and {means[arm, 'lost originals']:.1f} originals lost."
        for arm in results.trainings
    )
    heads = tuple(results.label(arm) for arm in results.trainings)
    caption = f"{results.caption(n=False)} Means over seeds."
    return Table("audit", "What the store holds", heads, lines, caption, sentence, "measure")
