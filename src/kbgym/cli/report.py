"""`kbgym report`: the tables and figures of an experiment or a run in one file, and the source of any number."""

from __future__ import annotations

from pathlib import Path

import click

from kbgym.analysis.cells import Cell, explain
from kbgym.analysis.report import write_report
from kbgym.canonical import read_value, refuse_links
from kbgym.cli.common import Printed, verb
from kbgym.cli.settings import place


@verb("report")
@place("EXPERIMENT_OR_RUN", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Output folder.  [default: its report/]")
@click.option("--explain", "cell", help="Print the source of a number by its id, such as gradient/hipporag/both/rho.")
def command(place: Path, out: Path | None, cell: str | None) -> Printed:
    """Write report.html (one file, no network), tables/*.csv and cells.json.

    Takes an experiment, or a run with exams such as `kbgym demo` leaves.

    \b
    Examples:
      kbgym report exp/paper
      kbgym report exp/paper --explain gradient/trained-paper/both/rho
    """
    folder = out or place / "report"
    known = folder / "cells.json"
    if cell is None or not known.exists():
        refuse_links(place)
        write_report(place, folder)
    if cell is not None:
        cells = read_value(known, dict[str, Cell])
        lines, found = explain(place, cells, cell), cells[cell]
        return {"cell": cell, "value": found.value, "formula": found.formula, "text": "\n".join(lines)}, lines
    numbers = len(read_value(known, dict[str, Cell]))
    page = folder / "report.html"
    result = {"report": str(page), "cells": numbers}
    text = f"{page}: {numbers:,} numbers, each with an id.\nWhere one came from: kbgym report {place} --explain ID"
    return result, text
