"""The report on an experiment or a run: the tables and figures of the paper's evaluation, beside the paper's figures.

Parts that are unavailable (no snapshots, no truth, no second arm, no matplotlib) are omitted or listed with the reason.
Building a report replays traces and runs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kbgym.analysis.cells import Table
from kbgym.analysis.curves import eval_curve, examined, learning, retention
from kbgym.analysis.page import Figure, Report, Section, gradient_dots, sections, write
from kbgym.analysis.published import beside
from kbgym.analysis.results import Results, Seed, how_to_compare, open_results
from kbgym.analysis.tables import arms, readers, stores, training
from kbgym.analysis.verdict import TEXTS, WORDS
from kbgym.canonical import read_lines
from kbgym.errors import BadInput, Missing
from kbgym.sanitize import counted
from kbgym.training.exam import NO_STORE, Row, is_public, no_store_file


def make_report(place: Path) -> Report:
    results = open_results(place, compared=False)
    if results.plan is not None and "flat" not in results.arms:
        raise BadInput(f"{place} has no whole exams of the flat store for every seed yet; run the experiment first.")
    if results.plan is not None and results.plan.kind == "ablation":
        parts = [stores.arms(results), arms.gradient(results), *(learning(results, arm) for arm in results.trainings)]
        return _report(results, sections((f"Ablation: {results.plan.vary}", parts)))
    return _report(results, _sections(results))


def write_report(place: Path, out: Path | None = None) -> Path:
    """Make a report and write it, into the folder itself by default; return the path of the page."""
    return write(make_report(place), out or place / "report")


def _sections(results: Results) -> tuple[Section, ...]:
    compared, trained = results.groups != (), results.trainings
    snapshots = [arm for arm in trained if compared and examined(results.seeds[0], arm, results.groups)]
    parts: list[tuple[str, list[Table | Figure | None]]] = [
        ("The experiment" if results.plan else "The run", [training.worlds(results)]),
        ("E1: training dynamics", [training.edits(results, arm) for arm in trained]),
    ]
    if compared:
        parts[0][1].append(stores.arms(results))
        parts[1][1].extend(learning(results, arm) for arm in snapshots)
        parts[1][1].extend(eval_curve(results, arm) for arm in trained)
        compared_by = (arms.gradient, _dots, arms.by_seed, arms.controls, arms.budget_split, readers.within)
        heading = "E2: the key-coverage gradient" if results.gradient else "Flat against trained"
        parts += [
            (heading, [*(one(results) for one in compared_by), readers.answers(results)]),
            ("Every reader", [readers.by_reader(results, group) for group in readers.SETS]),
            ("Evidence: what was found, whoever reads", [readers.evidence(results)]),
            ("What coverage buys", [stores.per_point(results), stores.readings(results)]),
        ]
    quality = [stores.index_quality(results, arm) for arm in trained]
    costs = [training.breaking_even(results) if compared else None, training.model_usage(results)]
    parts += [
        ("E3: retention by class", [retention(results, arm) for arm in trained]),
        ("E4: what was built", [stores.store_audit(results), *quality, *costs]),
    ]
    if results.beside_paper:
        tables = [part for _, some in parts for part in some if isinstance(part, Table)]
        parts.append(("The paper", [beside(tables, results.caption())]))
    return sections(*parts)


def _report(results: Results, found: tuple[Section, ...]) -> Report:
    settings = results.settings
    statement = f"Every number of ours here was produced by {results.agent}. " + (
        "None of them is a language model's. " if results.reference else ""
    )
    if results.beside_paper:
        statement += "The paper's figures, where they stand beside ours, are gpt-5-mini's, one seed: compare shapes, "
        statement += "not levels."
    said = arms.in_short(results)
    notes = [f"In short. {said}", WORDS, TEXTS["tables"]] if said else []
    times = {1: "once", 2: "twice"}.get(settings.epochs, f"{settings.epochs} times")
    notes += [
        f"{counted(len(results.seeds), 'seed')}, {counted(settings.questions, 'training question')}, "
        f"each asked {times}; at most {settings.forward_budget} actions to answer and "
        f"{settings.backward_budget} to edit after it; embedding {settings.embedder}. Intervals are 95%.",
        "Every number has an id (hover over it): `kbgym report FOLDER --explain ID` prints its formula and its rows.",
    ]
    if results.groups:
        notes += _no_store_note(results)
    else:
        how = how_to_compare(results.root)
        notes.append(f"What is missing: an exam of both stores. {how[:1].upper()}{how[1:]}.")
    kept = results.seeds[0].kept
    if kept is not None and kept.left_out:
        who = ", ".join(sorted({exam.header.agent for exam in kept.left_out}))
        notes.append(f"Not compared here: {counted(len(kept.left_out), 'exam')} under other conditions (by {who}).")
    if results.missing:
        known, unasked = results.seeds[0].arms, {"skipped": "not examined on every group and seed"}
        why = {arm: str((unasked | known.get(arm, {}))["skipped"]).rstrip(".") for arm in results.missing}
        notes.append(f"Not here: {'; '.join(f'{arm} ({said})' for arm, said in why.items())}.")
    kind = "an experiment" if results.plan else "a run"
    return Report(f"kbgym: report of {kind}", statement.strip(), tuple(notes), found)


def _dots(results: Results) -> Figure:
    about = ("gradient-dots", "The gradient with its intervals", results.caption(), arms.in_order(results))
    try:
        return Figure(*about, svg=gradient_dots(results))
    except Missing as reason:
        return Figure(*about, missing=f"Left out: {reason}")


def _no_store_note(results: Results) -> list[str]:
    """Report the same reader's score without a store if the world's text is public."""
    if not any(is_public(seed.world) for seed in results.seeds):
        return []
    rows = [_no_store_rows(seed, group) for seed in results.seeds for group in results.groups]
    known = "The text of this world is public and models may know it"
    if not all(rows):
        return [f"{known}; its score without a store is missing: examine the flat store or the arm {NO_STORE}."]
    flat = [seed.rows("flat", group) for seed in results.seeds for group in results.groups]
    return [
        f"{known}: without a store the same reader scores F1 {_f1(rows):.3f} on the same {sum(map(len, rows))} "
        f"questions, with the untrained store {_f1(flat):.3f}. Only what lies above the first number is the store's."
    ]


def _f1(several: Sequence[Sequence[Row]]) -> float:
    scored = [row.f1 for rows in several for row in rows if row.f1 is not None]
    return sum(scored) / len(scored) if scored else 0.0


def _no_store_rows(seed: Seed, group: str) -> Sequence[Row]:
    if seed.has(NO_STORE, group):
        return seed.rows(NO_STORE, group)
    beside = no_store_file(seed.file("flat", group))
    return tuple(read_lines(beside, Row)) if beside.exists() else ()
