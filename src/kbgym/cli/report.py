"""`kbgym report` and `kbgym view`: the results of experiments and runs, as files or as a local page."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path

import click

from kbgym.analysis.cells import Cell, explain
from kbgym.analysis.report import write_report
from kbgym.canonical import read_value, refuse_links
from kbgym.cli.common import Printed, emit, verb
from kbgym.cli.serve import check_installed
from kbgym.cli.settings import place
from kbgym.errors import BadInput


@verb("report")
@place("EXPERIMENT_OR_RUN", type=click.Path(path_type=Path))
def report_command(place: Path, out: Path | None, cell: str | None) -> Printed:
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


@verb("view")
@place("RUN...", name="folders", nargs=-1, required=True, type=click.Path(path_type=Path))
def view_command(folders: tuple[Path, ...], port: int, open_browser: bool, world: Path | None) -> None:
    """Serve a local page on a RUN: gains, the store, its map, every question, and live progress.

    RUN is a run, an experiment or a store; several may be given. The page is served to this machine only, needs no
    network and changes nothing. Press Ctrl-C to stop.

    \b
    Examples:
      kbgym view runs/demo
      kbgym view runs/demo runs/other stores/b3 --open
    """
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} is no folder.")
    check_installed()
    from kbgym.serving.server import listen, serve
    from kbgym.viewer.app import guarded, make_viewer, warm
    from kbgym.viewer.places import ViewedPlaces

    places = ViewedPlaces(folders, world)
    app = guarded(make_viewer(places))
    listening, address = listen("127.0.0.1", port, 128)
    url = f"{address}/"
    emit({"url": url}, f"Look at {url} (Ctrl-C ends it).")
    warm(places)
    if open_browser:
        webbrowser.open(url)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the normal way to stop
        serve(app, listening)
