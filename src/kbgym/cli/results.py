"""`kbgym audit`, `report` and `view`: the health of a store on one screen, and results as files or a page."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path
from typing import Any

import click

from kbgym.analysis.audit import SHAPES, Audit, Index
from kbgym.analysis.cells import Cell, explain
from kbgym.analysis.health import Health, advice, health
from kbgym.analysis.index_use import account_if_examined, accounts, advised, openings
from kbgym.analysis.report import write_report
from kbgym.api import open
from kbgym.canonical import read_value, refuse_links
from kbgym.cli.common import Printed, emit, verb
from kbgym.cli.main import VERBS
from kbgym.cli.serve import check_installed
from kbgym.cli.settings import place
from kbgym.errors import BadInput
from kbgym.trace.folder import imported
from kbgym.worlds.world import Document

SHOWN = 3
# Maximum incomplete indexes, and members of each, on the screen; `--json` lists all.
INCOMPLETE, MISSING = 12, 5


@verb("audit")
@place("STORE")
def audit_command(place: str, world: Path | None) -> Printed:
    """Report on a STORE: coverage, quality of its indexes, damage, next steps.

    Indexes are scored where the world knows its facts; elsewhere links are only suspected, and the text says so.

    \b
    Example:
      kbgym audit runs/first
      kbgym audit stores/b3 --world worlds-out/w0 --json
    """
    with open(place, world) as opened:
        # Originals as changed by imports; withdrawn ones are not lost.
        initial = [Document(origin, record.text) for record in opened.place.initial for origin in record.origins]
        upto = [one for one in opened.events if opened.at is None or getattr(one, "iteration", 0) <= opened.at]
        began = {id: document.text for id, document in imported(initial, upto).items()}
        if opened.world is not None:
            known = {document.id for document in opened.world.documents}
            ids = {document.id for document in initial}
            strangers = (origin for origin in began if origin not in known and (world or origin in ids))
            if (stranger := next(strangers, None)) is not None:
                folder = world or opened.folder
                raise BadInput(f"{folder} is not the world of {opened.name}: it has no document {stranger!r}.")
        found, used = health(opened.store, opened.world, tuple(began)), openings(opened.events)
        accounted = account_if_examined(opened.run.folder, opened.store) if opened.run is not None else None
    advices = [*advice(found, opened.name), *(advised(accounted, opened.name) if accounted else ())]
    said = ((one.sentence[0].upper() + one.sentence[1:], one) for one in advices)
    proposals = [f"{text}: kbgym {one.command}" if one.verb in VERBS else f"{text}." for text, one in said]
    screen = _screen(found, opened.name, began, proposals)
    asked = {"sets": accounted.sets, "n": accounted.n} if accounted else None
    result = {**as_values(found, proposals), "exams": asked, "indexes": accounts(found.audit, used, accounted)}
    return result, "\n".join(screen)


def as_values(found: Health, proposals: list[str]) -> dict[str, Any]:
    """Return the result for JSON; `precision` and `recall` are null if the world has no facts."""
    audit, total = found.audit, found.audit.total
    same = ("links", "duplicates", "same_texts", "same_keys", "lost", "incomplete", "biggest", "ledger")
    return {
        **{name: getattr(found, name) for name in same},
        "coverage": found.coverage.direct,
        "readings": found.coverage,
        "resolved": audit.resolved,
        **{"stubs" if shape == "stub" else shape: audit.count(shape) for shape in SHAPES},
        **{name: getattr(total, name, None) for name in ("precision", "recall")},
        "kinds": audit.table,
        "suspected_links": found.suspects,
        **{name: getattr(found.ledger, name) for name in ("orphans", "lost_origins")},
        "next": proposals,
    }


def _screen(found: Health, place: str, began: dict[str, str], proposals: list[str]) -> list[str]:
    counts, audit = found.ledger, found.audit
    lines = [
        f"{place}: {counts.documents:,} documents ({counts.authored:,} authored, {counts.edited:,} edited), "
        f"{counts.links:,} links, {counts.merged:,} merges",
        f"coverage       {_coverage(found)}",
        f"authored       {audit.count('genuine'):,} genuine indexes, {audit.count('stub'):,} stubs, "
        f"{audit.count('materialised'):,} materialised answers"
        + (f", {audit.count('other'):,} others (links, but no single key)" if audit.resolved else " (by their shape)"),
        f"links          {', '.join(f'{count:,} {ends}' for ends, count in found.links.items() if count) or 'none'}",
        f"broken         {counts.orphans:,} orphans, {found.duplicates:,} duplicates, "
        f"{counts.lost_origins:,} lost origins",
    ]
    lines += [f"  lost         {origin} {_short(began[origin])}" for origin in found.lost[:SHOWN]]
    for name, index in zip(("biggest", "", ""), found.biggest, strict=False):
        lines.append(f"{name:<14} {index.id} {_short(index.text)}, {index.degree} links")
    lines += ["", *_quality(audit)]
    lines.append(f"{'wrong' if audit.resolved else 'suspected'} links: {len(found.suspects):,}")
    for one in found.suspects[:SHOWN]:
        lines.append(f"  {one.index} {_short(one.index_text, 40)} -> {one.target} {_short(one.target_text)}")
    lines += _incomplete(found.incomplete, began)
    return [*lines, "", "What to do next:", *(f"- {line}" for line in proposals or ["Nothing: all is in order."])]


def _coverage(found: Health) -> str:
    share = found.coverage
    text = f"{share.direct:.1%} of {found.ledger.origins:,} originals, {share.two_hops:.1%} within two hops"
    if share.confirmed is not None:
        text += f", {share.confirmed:.1%} by right links"
    if share.questions is not None:
        text += f"; {share.questions:.1%} of the questions in one read"
    return text


def _quality(audit: Audit) -> list[str]:
    if not audit.resolved:
        return ["No facts to score the indexes against: what follows is suspected, not known."]
    if not audit.table:
        return ["No index to score."]
    lines = [f"{'index of a':<18} {'n':>5} {'links':>7} {'precision':>10} {'recall':>8}"]
    for row in audit.table:
        lines.append(f"{row.group:<18} {row.n:>5,} {row.degree:>7.1f} {row.precision:>10.1%} {row.recall:>8.1%}")
    return lines


def _incomplete(indexes: tuple[Index, ...], began: dict[str, str]) -> list[str]:
    """Return lines on each incomplete index with the documents it misses."""
    lines = [f"incomplete indexes: {len(indexes):,}"] if indexes else []
    for index in indexes[:INCOMPLETE]:
        missing = ", ".join(began.get(one, one) for one in index.missing[:MISSING])
        missing += f" and {more:,} more" if (more := len(index.missing) - MISSING) > 0 else ""
        lines.append(f"  {index.id} {_short(index.text, 40)} misses {len(index.missing)} of {index.members}: {missing}")
    if (more := len(indexes) - INCOMPLETE) > 0:
        lines.append(f"  and {more:,} more; --json names them all")
    return lines


def _short(text: str, most: int = 60) -> str:
    flat = " ".join(text.split())
    return f'"{flat if len(flat) <= most else flat[: most - 1] + "…"}"'


# -- report and view --------------------------------------------------------------------------------------------------


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
