"""Tables with traceable numbers: every cell records its formula and source rows.

A cell has an id, a value, an optional interval, a formula in words and the rows it was computed from. A table has cells
under columns, a caption, and one sentence that states its result. The module is independent of the measures.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from kbgym.analysis.statistics import Interval
from kbgym.canonical import read_lines
from kbgym.errors import BadInput
from kbgym.sanitize import safe_cell

SHOWN = 400  # rows printed for one cell


class CellSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """Lines of a file. `field` names the values that were used; an empty list of ids means all lines."""

    file: str
    field: str
    ids: tuple[str, ...] = ()


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One number. `text` is what a table shows."""

    id: str
    text: str
    value: float | str | None
    formula: str
    sources: tuple[CellSource, ...] = ()
    low: float | None = None
    high: float | None = None


class Line(msgspec.Struct, frozen=True):
    """A row of a table; without cells it is a heading."""

    head: str
    cells: Sequence[Cell | None] = ()


class Table(msgspec.Struct, frozen=True):
    """A table; `sentence` summarises the numbers and is computed from them. `columns` exclude the row headings."""

    name: str
    title: str
    columns: Sequence[str]
    lines: Sequence[Line]
    caption: str
    sentence: str
    head: str = ""

    @property
    def cells(self) -> list[Cell]:
        return [cell for line in self.lines for cell in line.cells if cell is not None]


class Measure(msgspec.Struct, frozen=True):
    """A kind of number; `total` marks a count that has a sum."""

    name: str
    formula: str
    digits: int = 0
    percent: bool = False
    total: bool = False

    def cell(self, id: str, value: float | None, sources: Sequence[CellSource]) -> Cell:
        return number(id, value, self.formula, sources, self.digits, self.percent)


class TableInfo(msgspec.Struct, frozen=True):
    """The entry of a table in `tables.toml`."""

    title: str
    columns: tuple[str, ...] = ()
    head: str = "store"
    note: str = ""
    sized: bool = True
    measures: tuple[Measure, ...] = ()

    def cells(self, id: str, values: Mapping[str, float | None], sources: Sequence[CellSource]) -> list[Cell]:
        """Return a cell for each measure."""
        return [one.cell(f"{id}/{one.name}", values[one.name], sources) for one in self.measures]


TABLES = msgspec.toml.decode((files("kbgym.analysis") / "tables.toml").read_bytes(), type=dict[str, TableInfo])


def number(
    id: str,
    value: float | None,
    formula: str,
    sources: Sequence[CellSource] = (),
    digits: int = 3,
    percent: bool = False,
) -> Cell:
    return Cell(id, shown(value, digits, percent), value, formula, tuple(sources))


def estimate(
    id: str,
    found: Interval,
    formula: str,
    sources: Sequence[CellSource] = (),
    digits: int = 3,
    mark: float | None = None,
) -> Cell:
    """Return a value with its interval as a cell, starred if the interval excludes `mark`."""
    star = "*" if mark is not None and not found.low <= mark <= found.high else ""
    low, high = shown(found.low, digits), shown(found.high, digits)
    text = f"{shown(found.value, digits)}{star} [{low}, {high}]"
    return Cell(id, text, found.value, formula, tuple(sources), _finite(found.low), _finite(found.high))


def shown(value: float | None, digits: int = 3, percent: bool = False) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if percent:
        return f"{value:.{max(0, digits - 2)}%}"
    text = f"{value:,.{digits}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.replace("-", "")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# -- files ------------------------------------------------------------------------------------------------------------


def as_csv(table: Table) -> str:
    """Return the unrounded numbers as CSV; each interval adds a column for either end."""
    columns = zip(*(line.cells for line in table.lines if line.cells), strict=True)
    wide = [any(cell is not None and cell.low is not None for cell in column) for column in columns]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ["block", table.head or "row"]
    for name, ends in zip(table.columns, wide or [False] * len(table.columns), strict=True):
        head += [name, f"{name} low", f"{name} high"] if ends else [name]
    writer.writerow(head)
    block = ""
    for line in table.lines:
        if not line.cells:
            block = line.head
            continue
        row: list[Any] = [safe_cell(block), safe_cell(line.head)]
        for cell, ends in zip(line.cells, wide, strict=True):
            value = "" if cell is None or cell.value is None else cell.value
            row.append(safe_cell(value) if isinstance(value, str) else value)
            if ends:
                row += ["", ""] if cell is None or cell.low is None else [cell.low, cell.high]
        writer.writerow(row)
    return out.getvalue()


def cells_json(tables: Iterable[Table]) -> dict[str, Cell]:
    """Return all cells by id. Raise `ValueError` if two different cells share an id."""
    found: dict[str, Cell] = {}
    for table in tables:
        for cell in table.cells:
            if cell.id in found and found[cell.id] != cell:
                raise ValueError(f"two different cells are called {cell.id}")
            found[cell.id] = cell
    return found


def explain(root: Path, cells: Mapping[str, Cell], id: str) -> list[str]:
    """Return lines that describe a cell and list the rows it was computed from."""
    if id not in cells:
        near = [name for name in cells if id.strip("/").split("/")[-1] in name][:3] or list(cells)[:3]
        raise BadInput(f"there is no cell {id!r}; there are {len(cells):,}, such as {', '.join(near)}.")
    cell = cells[id]
    lines = [f"{cell.id} = {cell.text}", f"value    {cell.value!r}"]
    if cell.low is not None or cell.high is not None:
        lines.append(f"interval {cell.low!r} to {cell.high!r}")
    lines.append(f"formula  {cell.formula}")
    for source in cell.sources:
        lines.append(f"from     {source.file}: {source.field}")
        lines += _rows(root / source.file, source)
    return lines


def _rows(file: Path, source: CellSource) -> list[str]:
    """Return the lines of an exam with the fields that were used; for other files only the ids."""
    if file.suffix != ".jsonl" or file.parent.name != "exams":
        return [f"           {id}" for id in source.ids[:SHOWN]]
    wanted, fields = set(source.ids), [name.strip() for name in source.field.split(",")]
    lines = []
    for row in read_lines(file, dict[str, Any]):
        if not wanted or row.get("id") in wanted:
            shown = [*(f"{name}={row.get(name)}" for name in fields), str(row.get("id"))]
            lines.append("           " + "  ".join(shown))
    return lines[:SHOWN]
