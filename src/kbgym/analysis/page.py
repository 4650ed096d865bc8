"""A report as a self-contained HTML file, and its tables, figures and cells as files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

import msgspec

from kbgym.analysis.cells import Cell, Line, Table, as_csv, cells_json
from kbgym.canonical import check_name, encode


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
STYLE = """
:root { color-scheme: light dark; --line: #d9d9d9; --soft: #f5f6f7; --ink: #1d1f21; --accent: #0072B2;
  --paper: #fff; --faint: #555; --note: #fff6e0; }
@media (prefers-color-scheme: dark) {
  :root { --line: #30363d; --soft: #1c2128; --ink: #e6edf3; --accent: #6cb6ff; --paper: #14181d; --faint: #a0a8b2;
    --note: #2b2415; }
  svg, img { background: #fff; border-radius: 6px; }
}
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink); background: var(--paper);
  margin: 0; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 20px 80px; }
h1 { font-size: 26px; margin: 0 0 8px; }
h2 { font-size: 20px; margin: 40px 0 8px; border-bottom: 2px solid var(--line); }
h3 { font-size: 16px; margin: 28px 0 6px; }
.statement { background: var(--note); border-left: 4px solid #E69F00; padding: 10px 14px; }
nav { font-size: 14px; columns: 3; margin: 14px 0; } nav a { display: block; }
a { color: var(--accent); }
.scroll { overflow-x: auto; border: 1px solid var(--line); }
table { border-collapse: collapse; font-size: 13px; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 9px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: inherit; }
thead th, thead th:first-child { background: var(--soft); vertical-align: bottom; }
tr { background: var(--paper); }
tr.block td { background: var(--soft); font-weight: 600; }
tr.paper { color: var(--faint); font-style: italic; }
td[title] { cursor: help; }
.sentence { font-weight: 600; margin: 8px 0 2px; } .caption { color: var(--faint); font-size: 13px; margin: 0 0 10px; }
figure { margin: 0; overflow-x: auto; } figure svg, figure img { max-width: 100%; height: auto; }
.missing { background: var(--soft); padding: 10px 14px; }
@media (max-width: 700px) { nav { columns: 1; } }
"""


def to_html(report: Report) -> str:
    links = "".join(f'<a href="#{escape(p.name)}">{escape(p.title)}</a>' for s in report.sections for p in s.parts)
    notes = "".join(f"<p>{_code(note)}</p>" for note in report.notes)
    body = "".join(
        f"<section><h2>{escape(section.title)}</h2>{''.join(_part(part) for part in section.parts)}</section>"
        for section in report.sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(report.title)}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{escape(report.title)}</h1><p class="statement">{escape(report.statement)}</p>{notes}'
        f"<nav>{links}</nav>{body}</main></body></html>\n"
    )


def _code(text: str) -> str:
    """Return escaped HTML with text between backticks as code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", escape(text))


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
    kind = ' class="paper"' if line.paper else ""
    return f"<tr{kind}><td>{escape(line.head.strip())}</td>{''.join(_cell(cell) for cell in line.cells)}</tr>"


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
