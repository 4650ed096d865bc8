"""The paper's figures and their counterparts in a report, each pair with a grade.

The paper used gpt-5-mini as reader and curator, one seed, 200 iterations, 34 questions a group. None was measured here.

    within the interval  our 95% interval holds the paper's figure, or both are equal as printed
    same direction       both lie on the same side of what they are compared with, our interval too if there is one
    by construction      the reference agents, which are rules, could not come out otherwise
    differs              none of these
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from kbgym.analysis.cells import Cell, Line, Table, shown

KIND = "people"
NOTE = "The paper's rows are gpt-5-mini's (reader and curator), one seed, n = 34 a group."
NAMES = {"flat": "B1 flat", "graphrag": "B2 GraphRAG", "hipporag": "B3 HippoRAG2", "trained-paper": "trained"}
ARM = "trained-paper"

RHO: dict[str, dict[str, float]] = {
    "graphrag": {"trained": 0.918, "both": 1.154, "one": 0.972, "neither": 1.047},
    "hipporag": {"pooled": 0.765},
    ARM: {"trained": 0.747, "both": 0.879, "one": 0.977, "neither": 1.016, "pooled": 0.908},
}
F1: dict[str, dict[str, float]] = {
    "flat": {"trained": 0.618, "both": 0.765, "one": 0.647, "neither": 0.794, "pooled": 0.706},
    "graphrag": {"trained": 0.618, "both": 0.676, "one": 0.706, "neither": 0.706},
    "hipporag": {"pooled": 0.919},
    ARM: {"trained": 0.912, "both": 0.941, "one": 0.706, "neither": 0.765, "pooled": 0.831},
}


class Published(NamedTuple):
    """A figure of the paper. `than` is the reference for its direction: a number, or a cell and the paper's figure."""

    where: str
    what: str
    cell: str
    value: float
    than: float | tuple[str, float] | None = None
    constructed: bool = False
    digits: int = 2


def _epochs(where: str, what: str, cell: str, first: float, second: float, digits: int = 2) -> list[Published]:
    """Return a figure of epoch 1, and that of epoch 2 with its direction relative to the first."""
    return [
        Published(where, f"{what}, epoch 1", f"{cell}/epoch1", first, digits=digits),
        Published(where, f"{what}, epoch 2", f"{cell}/epoch2", second, (f"{cell}/epoch1", first), digits=digits),
    ]


def _gradient() -> list[Published]:
    found = []
    for arm, of_arm in RHO.items():
        for group, rho in of_arm.items():
            found.append(
                Published("Table 4", f"rho, {NAMES[arm]}, {group}", f"gradient/{arm}/{group}/rho", rho, 1.0, digits=3)
            )
    for arm in (name for name in F1 if name != "flat"):
        for group, f1 in F1[arm].items():
            cell, gain = f"gradient/{arm}/{group}/difference", round(f1 - F1["flat"][group], 3)
            found.append(Published("Table 4", f"F1 minus flat's, {NAMES[arm]}, {group}", cell, gain, 0.0, digits=3))
    return found


def _training() -> list[Published]:
    edits, kept = f"edits/{ARM}", f"retention/{ARM}"
    found = [
        *_epochs("E1", "edits a pass", f"{edits}/edits-a-pass", 4.9, 1.6, 1),
        *_epochs("E1", "backward actions a pass", f"{edits}/actions-a-pass", 25.3, 14.7, 1),
        *_epochs("E1", "documents added a pass", f"{edits}/documents-added-a-pass", 2.4, 0.45),
        *_epochs("E1", "coverage at the end", f"{edits}/coverage-at-the-end", 0.248, 0.276, 3),
        *_epochs("E1", "links of an index at the end", f"{edits}/links-of-an-index-at-the-end", 6.79, 6.67),
        *_epochs("E1", "indexes without a link at the end", f"{edits}/indexes-without-a-link-at-the-end", 45, 43, 0),
    ]
    calls = {"add": 307, "edit": 3, "delete": 12, "link_many": 284, "unlink": 9, "merge": 8}
    for name, count in calls.items():
        found.append(
            Published("E1", f"{name} calls", f"{edits}/{name}-calls/all", count, constructed=count < 13, digits=0)
        )
    found.append(Published("E1", "candidates the judge saw", f"{edits}/candidates-judged/all", 45, digits=0))
    half = f"{edits}/forward-f1-half-1"
    found.append(
        Published("E1", "forward F1, second half of epoch 1", f"{edits}/forward-f1-half-2", 0.66, (half, 0.60))
    )
    for side, values in (("in", (0.75, 0.80)), ("out", (1.00, 0.90))):
        cell = f"eval/{ARM}/epoch0/{side}/f1"
        found.append(
            Published("E1", f"eval F1 at the end, {side}", f"eval/{ARM}/epoch2/{side}/f1", values[1], (cell, values[0]))
        )
    classes = {
        **dict.fromkeys(("QC1", "QC2", "QC3", "QC9"), (1.0, 1.0)),
        "QC4": (0.33, 1.0), "QC5": (0.0, 0.25), "QC6": (0.33, 0.92), "QC7": (0.67, 0.83), "QC8": (0.42, 0.58),
        "QC10": (0.20, 0.60), "all": (0.63, 0.82),
    }  # fmt: skip
    for name, (first, second) in classes.items():
        cell = f"{kept}/{name}/epoch"
        easy = first == second
        than = None if easy else (f"{cell}1", first)
        found.append(Published("E3", f"forward F1 in epoch 2, {name}", f"{cell}2", second, than, easy))
    return [
        *found,
        *_epochs("E3", "steps a question", f"{kept}/steps", 8.4, 7.4, 1),
        *_epochs("E3", "share out of budget", f"{kept}/out-of-budget", 0.15, 0.08),
        *_epochs("E3", "F1 within budget in both epochs", f"{kept}/within/f1", 0.759, 0.892, 3),
        *_epochs("E3", "steps within budget in both epochs", f"{kept}/within/steps", 7.16, 6.37),
    ]


def _stores() -> list[Published]:
    links = ("arms/hipporag/links", 196_112.0)
    found = [
        Published("Abstract", "links of the trained store", f"arms/{ARM}/links", 1_913, links, digits=0),
        Published("Abstract", "links of B3", *links, digits=0),
        Published("Table 3", "coverage", f"arms/{ARM}/coverage", 0.276, ("arms/hipporag/coverage", 1.0), digits=3),
    ]
    for arm, saved, gained in (("graphrag", -0.002, -0.0003), ("hipporag", 0.023, 0.0021), (ARM, 0.035, 0.0045)):
        for what, cell, value in (("actions saved", "actions_a_point", saved), ("F1 gained", "f1_a_point", gained)):
            said = f"{what} a point of coverage, {NAMES[arm]}"
            found.append(Published("Table 3", said, f"coverage/{arm}/{cell}", value, 0.0, digits=4))
    out = {"trained": (0.08, 0.77), "both": (0.12, 0.88), "one": (0.14, 0.50), "neither": (0.12, 0.25)}
    for group, (flat, trained) in out.items():
        cell = f"budget/{ARM}/at-its-budget's-end/{group}"
        what = f"F1 where flat ran out of budget, {group}"
        found.append(Published("E2", what, f"{cell}/f1", trained, (f"{cell}/f1_flat", flat)))
    for name, share in (("two_hops", 0.276), ("confirmed", 0.273), ("questions", 0.258)):
        found.append(Published("E2", f"coverage, {name.replace('_', ' ')}", f"readings/{ARM}/{name}", share, digits=3))
    audit: dict[str, float] = {"authored": 287, "genuine": 242, "stub": 43, "materialised": 2, "source to source": 17}
    audit |= {"median out-degree": 5, "mean out-degree": 6.7}
    for name, count in audit.items():
        rules = name in ("stub", "materialised", "source to source")
        cell = f"audit/{ARM}/{name.replace(' ', '-')}"
        found.append(Published("E4", name, cell, count, constructed=rules, digits=1))
    quality = {
        "city": (0.98, 0.95), "job or hobby": (0.98, 0.96), "person": (0.95, 0.90), "two-hop relation": (0.87, 0.55),
        "one-hop relation": (0.78, 0.73), "all": (0.94, 0.91),
    }  # fmt: skip
    for kind, (precision, recall) in quality.items():
        cell = f"index-quality/{ARM}/{kind.replace(' ', '-')}"
        found.append(Published("Table 5", f"precision, {kind}", f"{cell}/precision", precision, constructed=True))
        found.append(Published("Table 5", f"recall, {kind}", f"{cell}/recall", recall))
    return found


def figures() -> list[Published]:
    return [*_gradient(), *_training(), *_stores()]


def grade(figure: Published, cells: Mapping[str, Cell]) -> str:
    """Grade our counterpart of a figure; "not here" if the report has none."""
    ours = cells.get(figure.cell)
    if ours is None or not isinstance(ours.value, int | float):
        return "not here"
    if figure.constructed:
        return "by construction"
    low, high = (ours.value if end is None else end for end in (ours.low, ours.high))
    if low <= figure.value <= high or shown(ours.value, figure.digits) == shown(figure.value, figure.digits):
        return "within the interval"
    mine = theirs = figure.than
    if isinstance(figure.than, tuple):
        base = cells.get(figure.than[0])
        mine, theirs = base.value if base and not isinstance(base.value, str) else None, figure.than[1]
    if not isinstance(mine, int | float) or not isinstance(theirs, int | float) or low <= mine <= high:
        return "differs"
    return "same direction" if (ours.value - mine) * (figure.value - theirs) > 0 else "differs"


def beside(tables: list[Table], caption: str) -> Table:
    """Return the paper's figures beside ours as a table."""
    cells = {cell.id: cell for table in tables for cell in table.cells}
    lines, counts = [], dict[str, int]()
    for figure in figures():
        found = grade(figure, cells)
        counts[found] = counts.get(found, 0) + 1
        ours = cells.get(figure.cell)
        ours = ours and replace(ours, id=f"here/{ours.id}")  # ids are unique on a page
        theirs = Cell(f"beside/{figure.cell}", shown(figure.value, figure.digits), figure.value, "as published")
        graded = Cell(f"grade/{figure.cell}", found, found, "see the caption")
        lines.append(Line(f"{figure.where}: {figure.what}", [theirs, ours, graded]))
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda one: -one[1]))
    about = "By construction: rules could not come out otherwise. Same direction: from 1, 0, the flat store or epoch 1."
    title, sentence = "The paper's figures beside ours", f"{len(lines)} figures: {said}."
    return Table("paper", title, ("paper", "here", "grade"), lines, f"{caption} {about}", sentence, "figure")
