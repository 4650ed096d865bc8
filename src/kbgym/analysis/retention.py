"""E3, retention: the same training questions the first and the second time, by class, and where only the store differs.

Epoch against epoch is read off the trace, where the store changes under the questions. The controlled columns examine
the same questions on the flat store and on the final store, so that nothing but the store differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

import msgspec

from kbgym.analysis import published as paper
from kbgym.analysis.cells import Cell, CellSource, Line, Table, number, published
from kbgym.analysis.results import Results
from kbgym.analysis.trajectory import Trained
from kbgym.experiments.experiment import LESSONS
from kbgym.sanitize import number_in
from kbgym.trace.events import Acted, Began, Ended, Graded


class Pass(msgspec.Struct, frozen=True):
    """One forward pass of training."""

    question: str
    epoch: int
    f1: float
    steps: int
    exhausted: bool


def forward_passes(trained: Trained) -> list[Pass]:
    """Every graded forward pass, in the order of the trace; a pass whose agent failed was never graded."""
    epoch, steps, exhausted = dict[int, int](), dict[int, int](), dict[int, bool]()
    asked: dict[str, int] = {}  # a question that was served is graded in a later iteration than it was asked in
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


def retention(results: Results, arm: str) -> Table | None:
    """Forward F1 by class in each epoch, and the exams of the same questions on the flat and the final store.

    What was asked outside of a training has no epoch and is no part of it; None where that is all there is.
    """
    passes = [(seed, one) for seed in results.seeds for one in forward_passes(seed.trained[arm]) if one.epoch]
    if not passes:
        return None
    class_of = {
        (seed.number, question.id): question.class_ for seed in results.seeds for question in seed.world.split("train")
    }
    epochs = sorted({one.epoch for _, one in passes})[:2]
    controlled = all(seed.has(arm, LESSONS) and seed.has("flat", LESSONS) for seed in results.seeds)
    classes = sorted({class_of[seed.number, one.question] for seed, one in passes}, key=_class_order)
    lines: list[Line] = []
    moved: list[tuple[float, str]] = []
    for name in (*classes, "all"):
        inside = [(s, p) for s, p in passes if name in ("all", class_of[s.number, p.question])]
        ids = tuple(dict.fromkeys(p.question for _, p in inside))
        files = [CellSource(s.trained[arm].trace, "grade events, f1", ids) for s in results.seeds]
        id = f"retention/{arm}/{name}"
        asked = [p for _, p in inside if p.epoch == epochs[0]]
        n = number(f"{id}/n", len(asked), "training questions of the class, all seeds", files, 0)
        cells: list[Cell | None] = [n]
        means = []
        for epoch in epochs:
            mean = _mean(p.f1 for _, p in inside if p.epoch == epoch)
            means.append(mean or 0.0)
            cells.append(number(f"{id}/epoch{epoch}", mean, f"mean forward F1 in epoch {epoch}, from the trace", files))
        if name != "all" and len(means) == 2:
            moved.append((means[1] - means[0], name))
        for store in ("flat", arm) if controlled else ():
            rows = [row for seed in results.seeds for row in seed.rows(store, LESSONS)]
            mean = _mean(row.f1 for row in rows if row.f1 is not None and name in ("all", row.class_))
            exams = results.sources(store, LESSONS, "f1, class")
            what = "the flat store" if store == "flat" else "the final store"
            cells.append(number(f"{id}/exam_{store}", mean, f"mean F1 of the same questions examined on {what}", exams))
        lines.append(Line(name, [*cells, *_theirs(results, name, paper.RETENTION.get(name), len(epochs), 2)]))
    heads = (
        "n",
        *(f"F1 epoch {epoch}" for epoch in epochs),
        *(("F1 on flat", "F1 on final store") if controlled else ()),
        *(f"paper: epoch {place + 1}" for place in range(len(epochs) if results.beside_paper else 0)),
    )
    cost, sentence = _cost(results, arm, [p for _, p in passes], epochs, len(heads))
    within, said = _within(results, arm, [(seed.number, p) for seed, p in passes], epochs, len(heads))
    lines += [*cost, *within]
    sentence += said
    if moved:
        best = max(moved)
        rest = [name for change, name in moved if abs(change) < 1e-9]
        sentence += (
            f" The largest movement is in {best[1]} ({best[0]:+.2f})"
            f"{'; ' + ', '.join(rest) + ' do not move' if rest else ''}."
        )
    title = f"E3, retention by class: {results.label(arm)}"
    mixes = "Epoch against epoch mixes store and order; the exam columns do not."
    caption = f"{results.caption(n=False)} {mixes}{results.paper_note}"
    return Table(f"retention-{arm}", title, heads, lines, caption, sentence, "class")


def _theirs(
    results: Results, name: str, figures: tuple[float, float] | None, epochs: int, digits: int
) -> list[Cell | None]:
    """The paper's figures by epoch; empty cells where it has none."""
    known = figures if results.beside_paper else None
    return [
        published(f"retention/{name}/epoch{place + 1}", float(known[place]) if known else None, digits)
        for place in range(epochs if results.beside_paper else 0)
    ]


def _cost(results: Results, arm: str, passes: list[Pass], epochs: list[int], width: int) -> tuple[list[Line], str]:
    """Steps and exhausted passes in each epoch."""
    files = [CellSource(seed.trained[arm].trace, "act and end events of forward passes") for seed in results.seeds]
    by_epoch = [[one for one in passes if one.epoch == epoch] for epoch in epochs]
    # A question of one seed is another question than that of the next, so seeds are kept apart by their order.
    whole = len(epochs) == 2 and len(by_epoch[0]) == len(by_epoch[1])
    first = [_mean(p.f1 for p in found) or 0.0 for found in by_epoch]
    steps = [_mean(p.steps for p in found) or 0.0 for found in by_epoch]
    spent = [100 * (_mean(float(p.exhausted) for p in found) or 0.0) for found in by_epoch]
    lines = []
    for name, values, theirs in (
        ("steps a question", steps, paper.RETENTION_STEPS),
        ("out of budget, of 100", spent, paper.RETENTION_EXHAUSTED),
    ):
        id = f"retention/{arm}/{name.replace(' ', '-')}"
        cells: list[Cell | None] = [None]
        for epoch, value in zip(epochs, values, strict=True):
            cells.append(number(f"{id}/epoch{epoch}", value, f"{name} in epoch {epoch}, from the trace", files, 2))
        beside = _theirs(results, name, theirs, len(epochs), 1)
        cells += [None] * (width - len(cells) - len(beside))
        lines.append(Line(name, [*cells, *beside]))
    if not whole:
        return lines, f"One epoch was trained: forward F1 {first[0]:.3f} at {steps[0]:.1f} steps."
    return lines, (
        f"Forward F1 on the same questions goes from {first[0]:.3f} to {first[1]:.3f} and steps from {steps[0]:.1f} to "
        f"{steps[1]:.1f} between the epochs."
    )


def _within(
    results: Results, arm: str, passes: list[tuple[int, Pass]], epochs: list[int], width: int
) -> tuple[list[Line], str]:
    """F1 and steps of the questions that were finished within budget in both epochs: no question just ended sooner."""
    if len(epochs) < 2:
        return [], ""
    by_epoch = [{(seed, p.question): p for seed, p in passes if p.epoch == epoch} for epoch in epochs]
    both = [key for key in by_epoch[0] if all(key in one and not one[key].exhausted for one in by_epoch)]
    if not both:
        return [], ""
    files = [CellSource(seed.trained[arm].trace, "grade, act and end events") for seed in results.seeds]
    lines, said = [], []
    for name, theirs in (("f1", paper.RETENTION_WITHIN[1]), ("steps", paper.RETENTION_WITHIN[2])):
        id, formula = f"retention/{arm}/within/{name}", f"mean {name} of questions within budget in both epochs"
        values = [fmean(getattr(one[key], name) for key in both) for one in by_epoch]
        digits = 3 if name == "f1" else 2
        cells: list[Cell | None] = [number(f"{id}/n", len(both), "questions within budget in both epochs", files, 0)]
        cells += [number(f"{id}/epoch{e}", v, formula, files, digits) for e, v in zip(epochs, values, strict=True)]
        beside = _theirs(results, f"within/{name}", theirs, len(epochs), digits)
        cells += [None] * (width - len(cells) - len(beside))
        lines.append(Line(f"within budget in both: {'F1' if name == 'f1' else name}", [*cells, *beside]))
        said.append(f"{'F1' if name == 'f1' else name} from {values[0]:.{digits}f} to {values[1]:.{digits}f}")
    return lines, f" On the {len(both)} finished within budget in both, {' and '.join(said)}."


def _class_order(name: str) -> tuple[int, str]:
    return number_in("".join(letter for letter in name if letter.isdigit())) or 0, name
