"""The paper's figures and their counterparts in a report, each pair with a grade.

The paper used gpt-5-mini as reader and curator, one seed, 200 iterations, 34 questions a group. None was measured here.

    within the interval  our 95% interval holds the paper's figure, or both are equal as printed
    same direction       both lie on the same side of what they are compared with, our interval too if there is one
    by construction      the reference agents, which are rules, could not come out otherwise
    differs              none of these
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import msgspec

from kbgym.analysis.cells import TABLES, Cell, Line, Table, shown

KIND = "people"
_KEPT: dict[str, Any] = tomllib.loads((files("kbgym.analysis") / "published.toml").read_text(encoding="utf-8"))


class Published(msgspec.Struct, frozen=True):
    """A figure of the paper. `than` is the reference for its direction: a number, or a cell and the paper's figure."""

    where: str
    what: str
    cell: str
    value: int | float
    than: float | tuple[str, float] | None = None
    constructed: bool = False
    digits: int = 2


def figures() -> list[Published]:
    kept = [{"where": where, **one} for where, several in _KEPT["figures"].items() for one in several]
    return msgspec.convert(kept, list[Published])


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
    lines, counts = [], Counter[str]()
    for figure in figures():
        found = grade(figure, cells)
        counts[found] += 1
        ours = cells.get(figure.cell)
        ours = ours and msgspec.structs.replace(ours, id=f"here/{ours.id}")  # ids are unique on a page
        theirs = Cell(f"beside/{figure.cell}", shown(figure.value, figure.digits), figure.value, "as published")
        graded = Cell(f"grade/{figure.cell}", found, found, "see the caption")
        lines.append(Line(f"{figure.where}: {figure.what}", [theirs, ours, graded]))
    said = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    info, sentence = TABLES["paper"], f"{len(lines)} figures: {said}."
    return Table("paper", info.title, info.columns, lines, f"{caption} {info.note}", sentence, info.head)
