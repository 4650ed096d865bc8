"""The tables about stores: arms and what they cost, coverage in four readings, index quality, audit.

Stores of trained arms come from their traces; unsupervised arms from what was noted when they were built.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from kbgym.analysis import published as paper
from kbgym.analysis.audit import SHAPES, Quality, quality
from kbgym.analysis.cells import Cell, CellSource, Line, Table, number, published
from kbgym.analysis.results import POOLED, Results
from kbgym.analysis.tables.arms import flatten, mean_cell
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
    """Where what is known of an arm's stores stands."""
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
    for arm, links in paper.LINKS.items() if results.beside_paper else ():
        theirs: dict[str, Cell | None] = {
            "links": published(f"arms/{arm}/links", links, 0),
            "coverage": published(f"arms/{arm}/coverage", paper.PER_POINT[arm][0], 3, True),
            "build tokens": published(f"arms/{arm}/tokens", paper.TOKENS.get(arm, 0), 0),
            "F1": published(f"arms/{arm}/f1", paper.F1[arm][POOLED]),
            "actions": published(f"arms/{arm}/actions", paper.ACTIONS[arm][POOLED], 2),
        }
        lines.append(Line(f"paper: {paper.NAMES[arm]}", [theirs.get(head) for head in ARM_HEADS], paper=True))
    note = f" {READS_INDEXES}" if {"graphrag", "raptor"} & set(results.arms) else ""
    caption = f"{results.caption()} Pooled over all groups.{note}"
    return Table("arms", "The arms: size, cost, result", ARM_HEADS, lines, caption, _best(results), "store")


def _actions_spent(trained: Trained | None) -> float:
    return float(trained.spent[max(trained.spent)].actions) if trained else 0.0


def _best(results: Results) -> str:
    scores, actions = {}, {}
    for arm in results.arms:
        if arm not in ("oracle", "nostore"):
            rows = [row for row, _ in flatten(results.pairs(arm, POOLED))]
            scores[arm] = fmean(row.f1 or 0.0 for row in rows)
            actions[arm] = fmean(row.actions for row in rows)
    top, least = max(scores.values()), min(actions.values())
    best = " and ".join(results.label(arm) for arm, score in scores.items() if score == top)
    cheapest = " and ".join(results.label(arm) for arm, count in actions.items() if count == least)
    begin = "Apart from the oracle, the" if "oracle" in results.arms else "The"
    return (
        f"{begin} highest F1 over all groups ({top:.3f}) is that of {best}, and the fewest actions ({least:.2f}) those "
        f"of {cheapest}."
    )


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
    for arm, values in paper.READINGS.items() if results.beside_paper else ():
        row = [published(f"readings/{arm}/{n}", value, 3, True) for n, value in zip(READINGS, values, strict=True)]
        lines.append(Line(f"paper: {paper.NAMES[arm]}", row, paper=True))
    heads = ("direct", "two hops", "confirmed links", "questions in one read")
    caption = results.caption(n=False)
    return Table("readings", "Coverage in four readings", heads, lines, caption, " ".join(said), "store")


def index_quality(results: Results, arm: str) -> Table | None:
    """Precision and recall of the links by kind of key, pooled over seeds; None where the world has no truth."""
    audits = [seed.trained[arm].health.audit for seed in results.seeds]
    if not all(audit.resolved for audit in audits):
        return None
    files = traces(results, arm, "authored documents of the last store, judged against the world's facts")
    scored = [index for audit in audits for index in audit.indexes if index.scored]
    lines: list[Line] = []
    for group in (*GROUPS, "all"):
        found = quality(group, [index for index in scored if group in (index.group, "all")])
        theirs = paper.QUALITY.get(group) if results.beside_paper else None
        if found is None and theirs is None:
            continue  # a kind of key that only another kind of world has
        cells: list[Cell | None] = [None] * len(QUALITIES)
        if found is not None:
            id = f"index-quality/{arm}/{group.replace(' ', '-')}"
            values = (found.n / len(audits), found.degree, found.precision, found.recall)
            cells = [
                number(f"{id}/{name}", value, formula, files, 3 if percent else 1, percent)
                for (name, formula, _, percent), value in zip(QUALITIES, values, strict=True)
            ]
        if theirs is not None:
            cells += [
                published(f"index-quality/{group}/{name}", value, digits, percent)
                for (name, _, digits, percent), value in zip(QUALITIES, theirs, strict=True)
            ]
        elif results.beside_paper:
            cells += [None] * len(QUALITIES)  # a kind of key the paper does not tell of
        lines.append(Line(group, cells))
    heads: tuple[str, ...] = ("n", "links", "precision", "recall")
    if results.beside_paper:
        heads += tuple(f"paper: {head}" for head in heads)
    unscored = sum(audit.count("other") for audit in audits) / len(audits)
    beside = " (the paper: 94% and 91%)" if results.beside_paper else ""
    sentence = _quality_sentence(quality("all", scored), len(audits), unscored, beside)
    caption = f"{results.caption(n=False)}{results.paper_note}"
    title = f"Index quality by kind of key: {results.label(arm)}"
    return Table(f"index-quality-{arm}", title, heads, lines, caption, sentence, "key")


# name, formula, digits of the paper's figure, whether it is a share
QUALITIES = (
    ("n", "indexes of this kind of key, mean over seeds", 0, False),
    ("degree", "mean links an index", 1, False),
    ("precision", "right links over links, pooled", 2, True),
    ("recall", "members led to over members, pooled", 2, True),
)


def _quality_sentence(total: Quality | None, seeds: int, unscored: float, beside: str) -> str:
    if total is None:
        return "There is no index to score."
    sentence = (
        f"{total.n / seeds:,.0f} scored indexes a seed: {total.precision:.1%} of their links are right and they lead "
        f"to {total.recall:.1%} of their keys' members{beside}."
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


ONLY_BY_FACTS = ("incomplete indexes",)  # where nothing says who is a member, nobody can be missing


def store_audit(results: Results) -> Table:
    """What the authored documents are, what the links join, what is broken; one column a training."""
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
        if results.beside_paper:
            cells.append(published(f"audit/{key}", paper.AUDIT.get(name), 1))
        lines.append(Line(name, cells))
    sentence = " ".join(
        f"{results.label(arm)}: {means[arm, 'authored']:,.0f} authored documents a seed, {means[arm, 'stub']:.1f} of "
        f"them stubs, and {means[arm, 'lost originals']:.1f} originals lost."
        for arm in results.trainings
    )
    heads = (*(results.label(arm) for arm in results.trainings), *(("paper",) if results.beside_paper else ()))
    caption = f"{results.caption(n=False)} Means over seeds.{results.paper_note}"
    return Table("audit", "What the store holds", heads, lines, caption, sentence, "measure")
