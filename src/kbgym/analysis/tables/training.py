"""Tables about training: edits by epoch, break-even, and model usage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

import msgspec

from kbgym.agents.llm.values import Usage
from kbgym.analysis import published as paper
from kbgym.analysis.cells import TABLES, Cell, CellSource, Line, Table, number
from kbgym.analysis.curves import forward_passes
from kbgym.analysis.results import LABELS, POOLED, Results
from kbgym.analysis.statistics import break_even
from kbgym.analysis.tables.arms import flatten
from kbgym.analysis.tables.stores import traces
from kbgym.analysis.trajectory import EDITS, Epoch, Trained, cost_of, tokens_of
from kbgym.sanitize import counted, safe_text
from kbgym.trace.events import Ended
from kbgym.training.exam import Row
from kbgym.worlds.world import SPLITS


def edits(results: Results, arm: str) -> Table | None:
    """Return the edits of backward passes by epoch, means over seeds; learning outside of epochs is excluded."""
    trained = [seed.trained[arm] for seed in results.seeds]
    found = [epoch for one in trained for epoch in one.trajectory.epochs if epoch.epoch]
    if not found:
        return None
    epochs = sorted({one.epoch for one in found})

    def mean(value: Callable[[Epoch], float]) -> list[float]:
        return [fmean(value(one) for one in found if one.epoch == epoch) for epoch in epochs]

    def calls(name: str) -> list[float]:
        return mean(lambda one: one.edits[name])

    growth = [fmean(_growth(one, epoch) for one in trained) for epoch in epochs]
    share = [fmean(one.coverage_at(epoch * one.settings.questions) for one in trained) for epoch in epochs]
    edits_a_pass = mean(lambda one: one.edits_a_pass)
    values = {
        "edits a pass": edits_a_pass,
        "actions a pass": mean(lambda one: one.actions / one.passes),
        "documents added a pass": growth,
        "coverage at the end": share,
        "links of an index at the end": mean(lambda one: one.degrees.mean),
        "indexes without a link at the end": mean(lambda one: one.degrees.empty),
        **{f"{name} calls": calls(name) for name in EDITS},
        "candidates judged": mean(lambda one: one.judged),
        "errors": mean(lambda one: one.errors),
    }
    lines = []
    files = traces(results, arm, "events of backward passes")
    for one in TABLES["edits"].measures:
        id, of_epochs = f"edits/{arm}/{one.name.replace(' ', '-')}", zip(epochs, values[one.name], strict=True)
        cells: list[Cell | None] = [one.cell(f"{id}/epoch{epoch}", value, files) for epoch, value in of_epochs]
        every = number(f"{id}/all", sum(values[one.name]), f"{one.formula}, all epochs", files, 0)
        lines.append(Line(one.name, [*cells, every if one.total else None]))
    if halves := _halves(results, arm):
        what = "mean forward F1 over a half of epoch 1"
        ours: list[Cell | None] = [
            number(f"edits/{arm}/forward-f1-half-{at}", f1, what, files) for at, f1 in enumerate(halves, 1)
        ]
        gap = [None] * (len(epochs) - 1)
        lines.append(Line("forward F1, first and second half of epoch 1", [*ours, *gap]))
    sentence = f"The curator makes {edits_a_pass[0]:.1f} edits a pass in epoch {epochs[0]}"
    if len(epochs) > 1:
        sentence += f" and {edits_a_pass[-1]:.1f} in epoch {epochs[-1]}; coverage goes from {share[0]:.1%}"
        sentence += f" to {share[-1]:.1%}"
    heads = (*(f"epoch {epoch}" for epoch in epochs), "all")
    return results.table("edits", lines, f"{sentence}.", heads, of=arm)


def _growth(trained: Trained, epoch: int) -> float:
    points = trained.trajectory.points
    inside = [point for point in points if point.epoch == epoch]
    if not inside:  # a first lesson that never finished
        return 0.0
    before = [point for point in points if point.iteration < inside[0].iteration]
    passes = next(one.passes for one in trained.trajectory.epochs if one.epoch == epoch)
    return (inside[-1].documents - before[-1].documents) / passes


def _halves(results: Results, arm: str) -> tuple[float, float] | None:
    """Return forward F1 over the two halves of epoch 1, before any question repeats; None if a half is empty."""
    first, second = [], []
    for seed in results.seeds:
        found = [one.f1 for one in forward_passes(seed.trained[arm]) if one.epoch == 1]
        first += found[: len(found) // 2]
        second += found[len(found) // 2 :]
    return (fmean(first), fmean(second)) if first and second else None


def breaking_even(results: Results) -> Table:
    """Return the number of questions that pay back training, by group, in actions and in characters read."""
    lines = []
    groups = (*results.groups, POOLED)
    # Tokens count if a model was the reader.
    by_model = any(map(tokens_of, results.seeds[0].rows("flat", results.groups[0])))
    for arm in results.trainings:
        for unit in ("actions", "characters", *(("tokens",) if by_model else ())):
            training = fmean(getattr(seed.trained[arm].total, unit) for seed in results.seeds)
            what = f"{unit} of all training passes, mean over seeds"
            files = traces(results, arm, "act events")
            spent = number(f"break-even/{arm}/{unit}/training", training, what, files, 0)
            for base in (one for one in ("flat", "hipporag") if one in results.arms):
                cells: list[Cell] = [_break_even(results, arm, unit, group, training, base) for group in groups]
                lines.append(Line(f"{results.label(arm)}, {unit}, against {results.label(base)}", [spent, *cells]))
    heads = ("training spent", *(LABELS[group] for group in groups))
    return results.table("break-even", lines, columns=heads)


def _break_even(results: Results, arm: str, unit: str, group: str, training: float, base: str) -> Cell:
    """Compute break-even; building the base took no questions or passes, so all of the training is paid back."""
    pairs = flatten(results.pairs(arm, group, base))
    flat, mine = fmean(cost_of(b, unit) for _, b in pairs), fmean(cost_of(a, unit) for a, _ in pairs)
    found = break_even(training, flat, mine)
    id = f"break-even/{arm}/{unit}/{group}" + ("" if base == "flat" else f"/{base}")
    formula = f"training {unit} over {unit} saved a question ({flat:.2f} - {mine:.2f})"
    files = results.sources(arm, group, "usage" if unit == "tokens" else unit, base)
    return number(id, found, formula, files, 0) if found else Cell(id, "never", None, formula, tuple(files))


def model_usage(results: Results) -> Table | None:
    """Return a line for the forward and backward passes of each training and for the exams of each arm."""
    lines: list[Line] = []
    for arm in results.trainings:
        ended = [e for seed in results.seeds for e in seed.trained[arm].place.events if isinstance(e, Ended)]
        for phase in ("forward", "backward"):
            passes = [event for event in ended if event.phase == phase]
            files = traces(results, arm, "usage of end events")
            lines += _usage_line(f"training {results.label(arm)}, {phase}", f"usage/{arm}/{phase}", passes, files)
    for arm in results.arms:
        rows = [row for seed in results.seeds for group in results.groups for row in seed.rows(arm, group)]
        files = results.sources(arm, POOLED, "usage")
        lines += _usage_line(f"exams of {results.label(arm)}", f"usage/{arm}/exam", rows, files)
    return results.table("usage", lines) if lines else None


def _usage_line(head: str, id: str, passes: Sequence[Ended | Row], files: list[CellSource]) -> list[Line]:
    """Return the total usage of passes as a line, or none if no model was asked."""
    usage = sum((msgspec.convert(one.usage or {}, Usage) for one in passes), Usage())
    if not usage.requests:
        return []
    values = {
        **{one.name: getattr(usage, one.name, None) for one in TABLES["usage"].measures},
        "malformed": usage.malformed_rate,
        "passes": len(passes),
        "failed": sum(one.outcome == "agent_failed" for one in passes),
    }
    return [Line(head, TABLES["usage"].cells(id, values, files))]


def worlds(results: Results) -> Table:
    """Return the worlds of training and exams: the paper's table of benchmarks."""
    lines = []
    for seed in results.seeds:
        world, id = seed.world, f"worlds/seed-{seed.number}"
        files = [CellSource(str((seed.folder / "world").relative_to(results.root)), "documents.jsonl, questions.jsonl")]
        counts = {"documents": len(world.documents), "questions": len(world.questions)}
        counts |= {name: len(world.split(name)) for name in SPLITS}
        cells = [number(f"{id}/{name}", count, f"number of {name}", files, 0) for name, count in counts.items()]
        asked = sum(len(seed.rows("flat", group)) for group in results.groups)
        probe = results.sources("flat", POOLED, "id", seeds=[seed])
        cells.append(number(f"{id}/probe", asked, "questions of all probe groups", probe, 0))
        lines.append(Line(f"seed {seed.number}", cells))
    made = results.kind == paper.KIND and results.plan is not None and results.plan.people
    kind = "generated worlds" if made else safe_text(results.world_kind.title)
    sentence = f"{counted(len(results.seeds), 'seed')} of {kind}."
    heads = ("documents", "questions", *SPLITS, "probe questions")
    return results.table("worlds", lines, sentence, heads)
