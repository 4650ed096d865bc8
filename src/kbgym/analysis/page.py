"""A report as a self-contained HTML file, and its tables, figures and cells as files.

Figures need matplotlib (the `report` extra). Output is deterministic: the same numbers give the same bytes.
"""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from kbgym.analysis.cells import Cell, Line, Table, as_csv, cells_json
from kbgym.analysis.results import LABELS, Results
from kbgym.analysis.tables.arms import gain_of, ratio_of
from kbgym.canonical import check_name, encode
from kbgym.errors import Missing


class Figure(msgspec.Struct, frozen=True):
    """A picture as SVG, or the reason why there is none."""

    name: str
    title: str
    caption: str
    sentence: str
    svg: str = ""
    missing: str = ""


class Section(msgspec.Struct, frozen=True):
    title: str
    parts: tuple[Table | Figure, ...]


class Report(msgspec.Struct, frozen=True):
    """A report; `statement` names the agents that produced the numbers and comes first, followed by `notes`."""

    title: str
    statement: str
    notes: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def tables(self) -> list[Table]:
        return [part for section in self.sections for part in section.parts if isinstance(part, Table)]

    @property
    def figures(self) -> list[Figure]:
        return [part for section in self.sections for part in section.parts if isinstance(part, Figure)]


# The page is self-contained and runs no scripts, whatever text it holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def to_html(report: Report) -> str:
    links = "".join(f'<a href="#{escape(p.name)}">{escape(p.title)}</a>' for s in report.sections for p in s.parts)
    escaped = (re.sub("`(.*?)`", r"<code>\1</code>", escape(note)) for note in report.notes)
    notes = "".join(f"<p>{note}</p>" for note in escaped)
    body = "".join(
        f"<section><h2>{escape(section.title)}</h2>{''.join(_part(part) for part in section.parts)}</section>"
        for section in report.sections
    )
    title, statement = escape(report.title), escape(report.statement)
    fields = {"title": title, "statement": statement, "notes": notes, "links": links, "body": body}
    return _kept("page.html").format(policy=POLICY, style=_kept("page.css"), **fields)


def _kept(name: str) -> str:
    return (files("kbgym.analysis") / name).read_text(encoding="utf-8")


def _part(part: Table | Figure) -> str:
    head = f'<h3 id="{escape(part.name)}">{escape(part.title)}</h3>'
    under = f'<p class="sentence">{escape(part.sentence)}</p><p class="caption">{escape(part.caption)}</p>'
    if isinstance(part, Table):
        return f'{head}<div class="scroll">{_table(part)}</div>{under}'
    if part.missing:
        return f'{head}<p class="missing">{escape(part.missing)}</p>'
    picture = part.svg.replace("<svg ", f'<svg role="img" aria-label="{escape(part.title)}" ', 1)
    return f"{head}<figure>{picture}</figure>{under}"


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in (table.head, *table.columns))
    body = "".join(_line(line, table) for line in table.lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _line(line: Line, table: Table) -> str:
    if not line.cells:
        return f'<tr class="block"><td colspan="{len(table.columns) + 1}">{escape(line.head)}</td></tr>'
    return f"<tr><td>{escape(line.head.strip())}</td>{''.join(_cell(cell) for cell in line.cells)}</tr>"


def _cell(cell: Cell | None) -> str:
    """Return a cell as HTML; the number carries the cell's id, so that it can be looked up and linked to."""
    if cell is None:
        return "<td></td>"
    about = escape(f"{cell.id}: {cell.formula}", quote=True)
    return f'<td id="{escape(cell.id, quote=True)}" title="{about}">{escape(cell.text)}</td>'


def write(report: Report, out: Path) -> Path:
    """Write report.html, cells.json, tables/*.csv and figures/*, replacing existing files."""
    for folder in (out, out / "tables", out / "figures"):
        folder.mkdir(parents=True, exist_ok=True)
    for name in (*(table.name for table in report.tables), *(figure.name for figure in report.figures)):
        check_name(out, name)
    for table in report.tables:
        (out / "tables" / f"{table.name}.csv").write_text(as_csv(table), encoding="utf-8")
    for figure in report.figures:
        if figure.svg:
            (out / "figures" / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
    (out / "cells.json").write_bytes(encode(cells_json(report.tables)) + b"\n")
    page = out / "report.html"
    page.write_text(to_html(report), encoding="utf-8")
    return page


def sections(*found: tuple[str, Sequence[Table | Figure | None]]) -> tuple[Section, ...]:
    """Return the sections that have content."""
    kept = ((title, tuple(part for part in parts if part is not None)) for title, parts in found)
    return tuple(Section(title, parts) for title, parts in kept if parts)


# -- figures ----------------------------------------------------------------------------------------------------------

# Colour and marker by group; `other` is a question set that is no group of the gradient.
GROUP_STYLE: dict[str, list[str]] = tomllib.loads(_kept("groups.toml"))


def plotting() -> Any:
    """Return pyplot with a non-interactive backend and the style of the report."""
    try:
        import matplotlib
    except ImportError:
        raise Missing("figures need matplotlib: install kbgym with its `research` extra.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.style.use(str(files("kbgym.analysis") / "page.mplstyle"))
    return plt


def as_svg(figure: Any) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    plotting().close(figure)
    text = out.getvalue()
    return text[text.index("<svg") :]


def gradient_dots(results: Results) -> str:
    """Draw rho and the F1 difference with intervals: one row per arm, one marker per group."""
    arms = [arm for arm in results.arms if arm not in ("flat", "nostore")]
    figure, axes = plotting().subplots(1, 2, figsize=(11.0, 1.2 + 0.62 * len(arms)), sharey=True)
    for place, group in enumerate(results.groups):
        colour, marker = GROUP_STYLE.get(group, GROUP_STYLE["other"])
        rows = [row + 0.17 * (place - (len(results.groups) - 1) / 2) for row in range(len(arms))]
        for axis, measure in zip(axes, (ratio_of, gain_of), strict=True):
            found = [measure(results, results.pairs(arm, group)).interval for arm in arms]
            ends = [[one.value - one.low for one in found], [one.high - one.value for one in found]]
            values, style = [one.value for one in found], {"fmt": marker, "ms": 4.5, "lw": 1.3, "color": colour}
            axis.errorbar(values, rows, xerr=ends, label=LABELS[group], **style)
    axes[0].set_yticks(range(len(arms)), [results.label(arm) for arm in arms])
    axes[0].set_ylim(len(arms) - 0.5, -0.5)
    for axis, even, label in (
        (axes[0], 1, "ρ: actions over the flat store's (left is cheaper)"),
        (axes[1], 0, "F1 minus the flat store's (right is better)"),
    ):
        axis.axvline(even, color="#666666", lw=0.9, ls="--")
        axis.set_xlabel(label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=max(1, len(labels)))
    figure.tight_layout()
    return as_svg(figure)
