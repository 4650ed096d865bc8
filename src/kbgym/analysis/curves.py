"""Learning curves, the eval split by epoch, and retention (E3).

A point of a curve is one store, the mean of its seeds. Iteration 0 is the flat store. Retention compares the same
training questions in two epochs, read off the trace, and examined on the flat and on the final store, so that only the
store differs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec

from kbgym.analysis.cells import Cell, CellSource, Line, Table, number
from kbgym.analysis.results import LABELS, POOLED, Results, Seed
from kbgym.analysis.trajectory import Trained
from kbgym.experiments.experiment import EVAL, LESSONS
from kbgym.sanitize import number_in
from kbgym.trace.events import Acted, Began, Ended, Graded


class CurvePoint(msgspec.Struct, frozen=True):
    """Means over the questions of a group (or of all of them), then over seeds."""

    iteration: int
    spent: float
    coverage: float
    actions: dict[str, float]
    f1: dict[str, float]
    characters: dict[str, float]


def examined(seed: Seed, arm: str, groups: tuple[str, ...]) -> list[int]:
    """Return the iterations, except the last, for which every group has an exam."""
    pattern = re.compile(re.escape(arm) + r"@(\d+)-" + re.escape(groups[0]) + r"\.jsonl")
    found = (pattern.fullmatch(file.name) for file in seed.exams.glob(f"{arm}@*-{groups[0]}.jsonl"))
    steps = sorted(int(match[1]) for match in found if match)
    return [step for step in steps if all(seed.has(f"{arm}@{step}", group) for group in groups)]


def arm_at(results: Results, arm: str, iteration: int, last: int) -> str:
    """Return the arm whose rows describe the store after an iteration: flat at the start, the arm itself at the end."""
    return "flat" if iteration == 0 else arm if iteration == last else f"{arm}@{iteration}"


def curve(results: Results, arm: str) -> list[CurvePoint]:
    settings = results.seeds[0].trained[arm].settings
    last = settings.questions * settings.epochs
    steps = [0, *examined(results.seeds[0], arm, results.groups), last]
    return [_point(results, arm, step, arm_at(results, arm, step, last)) for step in dict.fromkeys(steps)]


def _point(results: Results, arm: str, iteration: int, name: str) -> CurvePoint:
    means: dict[str, dict[str, float]] = {"actions": {}, "f1": {}, "characters": {}}
    for group in (*results.groups, POOLED):
        names = results.groups if group == POOLED else (group,)
        for field in means:
            means[field][group] = fmean(
                fmean(float(getattr(row, field)) for one in names for row in seed.rows(name, one) if row.f1 is not None)
                for seed in results.seeds
            )
    trained = [seed.trained[arm] for seed in results.seeds]
    return CurvePoint(
        iteration=iteration,
        spent=fmean(one.spent[iteration].actions for one in trained),
        coverage=fmean(one.coverage_at(iteration) for one in trained),
        **means,
    )


def learning(results: Results, arm: str) -> Table:
    """Return the data of the learning figure."""
    points = curve(results, arm)
    groups = (*results.groups, POOLED)
    last = points[-1].iteration
    lines = []
    for point in points:
        name = arm_at(results, arm, point.iteration, last)
        what = f"the store after iteration {point.iteration}"
        traces = [CellSource(seed.trained[arm].trace, what) for seed in results.seeds]
        id = f"learning/{arm}/{point.iteration}"
        reached = "direct coverage after the iteration, mean over seeds"
        cells = [
            number(f"{id}/coverage", point.coverage, reached, traces, 3, True),
            number(f"{id}/spent", point.spent, "training actions up to the iteration, mean over seeds", traces, 0),
        ]
        for field, digits, shown in (("actions", 2, groups), ("f1", 3, groups), ("characters", 0, (POOLED,))):
            what, values = f"mean {field} a question, mean over seeds", getattr(point, field)
            for group in shown:
                sources = results.sources(name, group, field)
                cells.append(number(f"{id}/{group}/{field}", values[group], what, sources, digits))
        lines.append(Line(f"iteration {point.iteration}", cells))
    labels = [LABELS[group] for group in groups]
    each = [f"{what}, {label}" for what in ("actions", "F1") for label in labels]
    heads = ["coverage", "training actions", *each, "characters"]
    first, final = points[0], points[-1]
    sentence = (
        f"From the flat store to the last one, pooled actions go from {first.actions[POOLED]:.2f} to "
        f"{final.actions[POOLED]:.2f} and F1 from {first.f1[POOLED]:.3f} to {final.f1[POOLED]:.3f} while coverage "
        f"grows to {final.coverage:.1%}."
    )
    return results.table("learning", lines, sentence, heads, of=arm)


def eval_curve(results: Results, arm: str) -> Table | None:
    """Return F1 on the eval split before training and after each epoch, by trained and reserved templates."""
    settings = results.seeds[0].trained[arm].settings
    last = settings.questions * settings.epochs
    names = [arm_at(results, arm, epoch * settings.questions, last) for epoch in range(settings.epochs + 1)]
    if not all(seed.has(name, EVAL) for seed in results.seeds for name in names):
        return None
    trained = {question.template for seed in results.seeds for question in seed.world.split("train")}
    lines, found = [], dict[str, list[float]]()
    for epoch, name in enumerate(names):
        rows = [row for seed in results.seeds for row in seed.rows(name, EVAL) if row.f1 is not None]
        cells: list[Cell | None] = []
        for side in ("in", "out"):
            some = [row for row in rows if (row.template in trained) == (side == "in")]
            id, files = f"eval/{arm}/epoch{epoch}/{side}", results.sources(name, EVAL, "f1, actions")
            what = f"eval questions of {'trained' if side == 'in' else 'reserved'} templates, all seeds"
            f1, actions = (fmean(float(getattr(row, f)) for row in some) if some else None for f in ("f1", "actions"))
            found.setdefault(side, []).append(f1 or 0.0)
            cells += [
                number(f"{id}/n", len(some), what, files, 0),
                number(f"{id}/f1", f1, f"mean F1 of {what}", files),
                number(f"{id}/actions", actions, f"mean actions of {what}", files, 2),
            ]
        lines.append(Line(f"after epoch {epoch}" if epoch else "before training", cells))
    ways = (f"{side} of distribution {' to '.join(f'{value:.3f}' for value in found[side])}" for side in ("in", "out"))
    return results.table("eval", lines, f"F1 {', '.join(ways)}.", of=arm)


class Pass(msgspec.Struct, frozen=True):
    """One forward pass of training."""

    question: str
    epoch: int
    f1: float
    steps: int
    exhausted: bool


def forward_passes(trained: Trained) -> list[Pass]:
    """Return every graded forward pass in trace order; a pass whose agent failed was never graded."""
    epoch, steps, exhausted = dict[int, int](), dict[int, int](), dict[int, bool]()
    asked: dict[str, int] = {}  # a served question is graded in a later iteration than it was asked in
    found = []
    for event in trained.events:
        match event:
            case Began(iteration, "forward"):
                epoch[iteration], asked[event.question] = event.epoch, iteration
            case Acted(iteration, "forward", step):
                steps[iteration] = step
            case Ended(iteration, "forward", outcome):
                exhausted[iteration] = outcome == "out_of_budget"
            case Graded(iteration, question):
                at = iteration if iteration in epoch else asked.get(question)
                if at is not None:
                    found.append(Pass(question, epoch[at], event.f1, steps.get(at, 0), exhausted.get(at, False)))
    return found


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None


Asked = tuple[int, Pass]  # the seed number


def retention(results: Results, arm: str) -> Table | None:
    """Return forward F1 by class in each epoch, and exams of the same questions on the flat and the final store.

    Questions asked outside of training have no epoch. Return None if there are no others.
    """
    passes = [(seed.number, one) for seed in results.seeds for one in forward_passes(seed.trained[arm]) if one.epoch]
    if not passes:
        return None
    epochs = sorted({one.epoch for _, one in passes})[:2]
    class_of = {(seed.number, one.id): one.class_ for seed in results.seeds for one in seed.world.split("train")}
    classes = {class_of.get((seed, one.question), "") for seed, one in passes}
    spent = {(seed, one.question) for seed, one in passes if one.exhausted}
    counts = Counter((seed, one.question) for seed, one in passes if one.epoch in epochs)
    within = [(s, p) for s, p in passes if (s, p.question) not in spent and counts[s, p.question] == len(epochs)]
    controlled = all(seed.has(arm, LESSONS) and seed.has("flat", LESSONS) for seed in results.seeds)
    lines, f1 = [], dict[str, list[float | None]]()
    for name in (*sorted(classes, key=_class_order), "all"):
        inside = [(s, p) for s, p in passes if name in ("all", class_of.get((s, p.question), ""))]
        cells, f1[name] = _by_epoch(results, arm, name, inside, epochs, "f1")
        for store in ("flat", arm) if controlled else ():
            rows = [row for seed in results.seeds for row in seed.rows(store, LESSONS) if row.f1 is not None]
            mean = _mean(row.f1 or 0.0 for row in rows if name in ("all", row.class_))
            what = f"mean F1 of the same questions examined on the {'flat' if store == 'flat' else 'final'} store"
            files = results.sources(store, LESSONS, "f1, class")
            cells.append(number(f"retention/{arm}/{name}/exam_{store}", mean, what, files))
        lines.append(Line(name, cells))
    gap: list[Cell | None] = [None, None] if controlled else []
    for name, some, field in (
        ("steps", passes, "steps"),
        ("out of budget", passes, "exhausted"),
        ("within/f1", within, "f1"),
        ("within/steps", within, "steps"),
    ):
        cells, f1[name] = _by_epoch(results, arm, name, some, epochs, field)
        lines.append(Line(name.replace("within/", "within budget in both: "), [*cells, *gap]))
    heads = ["n", *(f"epoch {epoch}" for epoch in epochs), *(("F1 on flat", "F1 on final store") if controlled else ())]
    said = " to ".join(f"{value:.3f}" for value in f1["all"] if value is not None)
    steps = " to ".join(f"{value:.1f}" for value in f1["steps"] if value is not None)
    sentence = f"Forward F1 on the same questions, epoch by epoch: {said}; steps: {steps}."
    return results.table("retention", lines, sentence, heads, of=arm)


def _by_epoch(
    results: Results, arm: str, name: str, passes: Sequence[Asked], epochs: Sequence[int], field: str
) -> tuple[list[Cell | None], list[float | None]]:
    """Return n and the mean of a field in each epoch as cells, and the means."""
    ids = tuple(dict.fromkeys(one.question for _, one in passes))
    files = [CellSource(seed.trained[arm].trace, f"forward passes, {field}", ids) for seed in results.seeds]
    id = f"retention/{arm}/{name.replace(' ', '-')}"
    asked = sum(one.epoch == epochs[0] for _, one in passes)
    cells: list[Cell | None] = [number(f"{id}/n", asked, "training questions, all seeds", files, 0)]
    means = [_mean(float(getattr(one, field)) for _, one in passes if one.epoch == epoch) for epoch in epochs]
    for epoch, mean in zip(epochs, means, strict=True):
        what = f"mean {field} of forward passes in epoch {epoch}, from the trace"
        cells.append(number(f"{id}/epoch{epoch}", mean, what, files, 3 if field == "f1" else 2))
    return cells, means


def _class_order(name: str) -> tuple[int, str]:
    return number_in("".join(letter for letter in name if letter.isdigit())) or 0, name
