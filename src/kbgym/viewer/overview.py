"""The overview's data: what ran, flat against trained, the gradient, learning, retention, spend.

Every number with an interval is a cell of the report, from the same functions; none is estimated here. The agents that
produced the numbers come first, so that a reference agent's result is not mistaken for a model's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import msgspec

from kbgym.analysis.cells import Cell, Table
from kbgym.analysis.curves import Pass, curve, examined, forward_passes, retention
from kbgym.analysis.health import coverage
from kbgym.analysis.proof import dollars_of
from kbgym.analysis.results import POOLED, Results, is_reference, played_by
from kbgym.analysis.tables import arms, stores, training
from kbgym.analysis.tables.arms import in_short
from kbgym.analysis.trajectory import Trained
from kbgym.analysis.verdict import WORDS
from kbgym.errors import BadInput
from kbgym.store import ledger
from kbgym.trace.events import Committed, Ended
from kbgym.viewer import group_label, picked, thinned
from kbgym.viewer.places import ViewedPlace
from kbgym.worlds.kinds import kind_of

INTERVAL = ("value", "low", "high", "text")
TABLES: dict[str, Callable[[Results], Table | None]] = {
    "gradient": arms.gradient,
    "seeds": arms.by_seed,
    "arms": stores.arms,
    "audit": stores.store_audit,
    "coverage": stores.readings,
    "spend": training.breaking_even,
}
TABLES_OF_ARM: dict[str, Callable[[Results, str], Table | None]] = {
    "retention": retention,
    "edits": training.edits,
    "quality": stores.index_quality,
}


def about(place: ViewedPlace) -> dict[str, Any]:
    """Return the agents, worlds and seeds, for the head of the page and its pickers."""
    seeds = place.seeds
    seed = seeds[0] if seeds else 0
    results = place.results
    found: dict[str, Any] = {
        **picked(place, "name", "kind"),
        "folder": str(place.folder),
        "seeds": seeds,
        "arms": [{"arm": arm, "label": label} for arm, label in place.arms(seed).items()] if seeds else [],
        "trained": list(place.trained(seed)) if seeds else [],
        "examined": results is not None,
        "agent": results.agent if results else played_by(place.settings) if place.settings else "",
        "reference": place.settings is not None and is_reference(place.settings),
        "facts": facts(place, seed) if seeds else [],
    }
    if results is not None:
        found["groups"] = [{"group": group, "label": group_label(group)} for group in results.groups]
    return found


def facts(place: ViewedPlace, seed: int) -> list[dict[str, str]]:
    """Return the main numbers of the run, each with a label."""
    rows: list[tuple[str, str, str]] = []
    world, settings = place.world(seed), place.settings
    if world is not None:
        kind = kind_of(world).name or "your documents"
        rows.append(("World", kind, f"{len(world.documents):,} documents, {len(world.questions):,} questions"))
    if settings is not None:
        seeds = ", ".join(str(one) for one in place.seeds)
        epochs = f"{settings.epochs} epoch{'s' if settings.epochs != 1 else ''}"
        rows.append(("Training", f"{settings.questions} questions", f"{epochs}, seed {seeds}"))
    for trained in place.trained(seed).values():
        counts, share = ledger(trained.store), coverage(trained.store).direct
        cost = dollars_of(event.usage for event in trained.events if isinstance(event, Ended))
        money = "price unknown" if cost is None else f"${cost:,.2f}"
        money = "no model, no cost" if settings is not None and is_reference(settings) else money
        note = (
            f"{counts.links:,} links, {share:.1%} of the originals covered; {trained.total.actions:,} actions, {money}"
        )
        rows.append((trained.label, f"{counts.authored:,} indexes", note))
    if place.kind == "store":
        counts = ledger(place.viewed(seed).store)
        authored, orphans = f"{counts.authored:,} written on top of the originals", f"{counts.orphans:,} orphans"
        rows.append(("Store", f"{counts.documents:,} documents", authored))
        rows.append(("Links", f"{counts.links:,}", f"{orphans}, {counts.lost_origins:,} lost originals"))
    return [{"label": label, "value": value, "note": note} for label, value, note in rows]


# -- tables of the report ---------------------------------------------------------------------------------------------


def report_table(place: ViewedPlace, name: str) -> Table:
    """Return a table of the report by its name."""
    results = place.results
    if results is None:
        raise BadInput(f"{place.name} has no exams of the flat store to compare with yet.")

    def made() -> Table | None:
        kind, _, arm = name.partition(":")
        if arm and arm not in results.trainings:
            raise BadInput(f"{place.name} has no training {arm[:60]!r}.")
        if arm and kind in TABLES_OF_ARM:
            return TABLES_OF_ARM[kind](results, arm)
        if not arm and kind in TABLES:
            return TABLES[kind](results)
        raise BadInput(f"there is no table {name[:60]!r}.")

    table = place.keep(("table", name), made)
    if table is None:
        raise BadInput(f"{place.name} has nothing for that table.")
    return table


def table_values(table: Table) -> dict[str, Any]:
    """Return a table for the page, without the sources of its cells."""

    def cell(one: Cell | None) -> dict[str, Any] | None:
        return None if one is None else picked(one, "id", "text", "value", "low", "high", "formula")

    lines = [{"head": ln.head, "cells": [cell(one) for one in ln.cells]} for ln in table.lines]
    return {**picked(table, "name", "title", "columns", "caption", "sentence", "head"), "lines": lines}


def gradient(place: ViewedPlace) -> dict[str, Any]:
    """Return the main result: a point and an interval for every arm and group, and the whole table."""
    results = place.results
    table = report_table(place, "gradient")
    assert results is not None
    cells = {one.id: one for one in table.cells}
    arms = []
    for arm in results.arms:
        if arm in ("flat", "nostore"):
            continue
        groups = {}
        for group in (*results.groups, POOLED):
            at = f"gradient/{arm}/{group}"
            flat = f"gradient/flat/{group}"
            groups[group] = {
                "rho": picked(cells[f"{at}/rho"], *INTERVAL),
                "difference": picked(cells[f"{at}/difference"], *INTERVAL),
                **{name: [cells[f"{one}/{name}"].value for one in (flat, at)] for name in ("f1", "actions")},
                "n": sum(len(pairs) for pairs in results.pairs(arm, group)),
            }
        arms.append({"arm": arm, "label": results.label(arm), "trained": arm in results.trainings, "groups": groups})
    named = [{"group": group, "label": group_label(group)} for group in (*results.groups, POOLED)]
    about = {"groups": named, "headline": in_short(results), "words": WORDS}
    return {**about, "arms": arms, "table": table_values(table)}


# -- learning ---------------------------------------------------------------------------------------------------------


def learning(place: ViewedPlace, seed: int) -> dict[str, Any]:
    """Return the growth of the store and forward scores of every training, and exams of earlier stores, if any."""
    results = place.results
    found = []
    for arm, trained in place.trained(seed).items():
        points = trained.trajectory.points
        one: dict[str, Any] = {
            "arm": arm,
            "label": trained.label,
            "growth": [
                [point.iteration, point.authored, point.links, round(point.coverage, 5)] for point in thinned(points)
            ],
            "epochs": epoch_ends(trained),
            "forward": _rolling(forward_passes(trained)),
        }
        if results is not None and arm in results.arms and examined(results.seeds[0], arm, results.groups):
            one["exams"] = msgspec.to_builtins(curve(results, arm))
        found.append(one)
    return {"trainings": found, "seed": seed}


def epoch_ends(trained: Trained) -> list[int]:
    """Return the iterations at which epochs ended, except the last."""
    size = trained.settings.questions
    ends = {event.position: event.iteration for event in trained.events if isinstance(event, Committed)}
    return [ends[position] for position in range(size, max(ends, default=0), size) if position in ends]


def _rolling(passes: Sequence[Pass], width: int = 20) -> Sequence[list[float]]:
    """Return iteration, mean F1 and mean steps over a rolling window of forward passes."""
    windows = ((end, passes[end - width : end]) for end in range(width, len(passes) + 1))
    return thinned([[end, fmean(one.f1 for one in some), fmean(one.steps for one in some)] for end, some in windows])
