"""Tables about the training itself: what the backward passes did in each epoch, and when it has paid for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from kbgym.analysis import published as paper
from kbgym.analysis.cells import Cell, Line, Table, number, published
from kbgym.analysis.results import LABELS, POOLED, Results, Trained
from kbgym.analysis.retention import forward_passes
from kbgym.analysis.stats import break_even
from kbgym.analysis.tables import flatten
from kbgym.analysis.tables_store import over_seeds, traces
from kbgym.analysis.trajectory import EDITS, Epoch


def edits(results: Results, arm: str) -> Table:
    """What the backward passes did, epoch by epoch, means over seeds."""
    epochs = sorted({epoch.epoch for seed in results.seeds for epoch in seed.trained[arm].trajectory.epochs})
    files = traces(results, arm, "act events of backward passes")
    growth = {epoch: over_seeds(results, arm, lambda t, e=epoch: _growth(t, e)) for epoch in epochs}  # type: ignore[misc]
    share = {
        epoch: over_seeds(results, arm, lambda t, e=epoch: t.coverage_at(e * t.run.settings.questions))
        for epoch in epochs
    }  # type: ignore[misc]
    halves = _halves(results, arm)
    lines = []

    def line(
        name: str,
        values: Sequence[float],
        formula: str,
        theirs: Sequence[float | None],
        digits: int = 2,
        percent: bool = False,
    ) -> None:
        key = name.replace(" ", "-")
        cells: list[Cell | None] = [
            number(f"edits/{arm}/{key}/epoch{e}", v, f"{formula}, mean over seeds", files, digits, percent)
            for e, v in zip(epochs, values, strict=True)
        ]
        shown = [*theirs, *([None] * len(epochs))][: len(epochs)] if results.kind == "people" else [None] * len(epochs)
        cells += [published(f"edits/{key}/epoch{e}", v, digits, percent) for e, v in zip(epochs, shown, strict=True)]
        lines.append(Line(name, tuple(cells)))

    def of(value: Callable[[Epoch], float]) -> list[float]:
        return [
            fmean(value(one) for seed in results.seeds for one in seed.trained[arm].trajectory.epochs if one.epoch == e)
            for e in epochs
        ]

    line("edits a pass", of(lambda e: e.edits_a_pass), "successful edits over backward passes", paper.EDITS_A_PASS)  # type: ignore[attr-defined]
    line("actions a pass", of(lambda e: e.actions / e.passes), "actions over backward passes", paper.ACTIONS_A_PASS)  # type: ignore[attr-defined]
    line("documents added a pass", list(growth.values()), "net documents added over passes", paper.GROWTH)
    line("coverage at the end", list(share.values()), "direct coverage at the epoch's end", paper.COVERAGE, 3, True)
    for name in EDITS:
        line(f"{name} calls", of(lambda e, name=name: e.edits[name]), f"successful {name} actions", (), 1)  # type: ignore[attr-defined,misc]
    line("candidates judged", of(lambda e: e.judged), "additions and edits the duplicate guard had to judge", (), 1)  # type: ignore[attr-defined]
    line("errors", of(lambda e: e.errors), "actions answered with an error", (), 1)  # type: ignore[attr-defined]
    first = of(lambda e: e.edits_a_pass)  # type: ignore[attr-defined]
    sentence = f"The curator makes {first[0]:.1f} edits a pass in epoch {epochs[0]}" + (
        f" and {first[-1]:.1f} in epoch {epochs[-1]}; coverage goes from {share[epochs[0]]:.1%} to {share[epochs[-1]]:.1%}."
        if len(epochs) > 1
        else "."
    )
    sentence += f" Forward F1 is {halves[0]:.2f} over the first half of epoch 1 and {halves[1]:.2f} over the second (the paper: {paper.FORWARD_HALVES[0]:.2f} and {paper.FORWARD_HALVES[1]:.2f})."
    heads = (*(f"epoch {e}" for e in epochs), *(f"paper: epoch {e}" for e in epochs))
    return Table(
        f"edits-{arm}",
        f"E1, what training did: {results.label(arm)}",
        heads,
        tuple(lines),
        f"{results.caption(n=False)} Means over seeds. {paper.NOTE}",
        sentence,
        "measure",
    )


def _growth(trained: Trained, epoch: int) -> float:
    points = trained.trajectory.points
    inside = [point for point in points if point.epoch == epoch]
    before = [point for point in points if point.epoch < epoch]
    passes = next(one.passes for one in trained.trajectory.epochs if one.epoch == epoch)
    return (inside[-1].documents - before[-1].documents) / passes


def _halves(results: Results, arm: str) -> tuple[float, float]:
    first, second = [], []
    for seed in results.seeds:
        found = [one.f1 for one in forward_passes(seed.trained[arm]) if one.epoch == 1]
        first += found[: len(found) // 2]
        second += found[len(found) // 2 :]
    return fmean(first), fmean(second)


def breaking_even(results: Results) -> Table:
    """After how many questions training has paid for itself, by group, in actions and in characters read."""
    lines, said = [], []
    groups = (*results.groups, POOLED)
    for arm in results.trainings:
        for unit in ("actions", "characters"):
            training = over_seeds(results, arm, lambda t, unit=unit: getattr(t.spent[max(t.spent)], unit))  # type: ignore[misc]
            cells: list[Cell | None] = [
                number(
                    f"break-even/{arm}/{unit}/training",
                    training,
                    f"{unit} of all training passes, mean over seeds",
                    traces(results, arm, "act events"),
                    0,
                )
            ]
            for group in groups:
                pairs = flatten(results.pairs(arm, group))
                flat, mine = fmean(getattr(b, unit) for _, b in pairs), fmean(getattr(a, unit) for a, _ in pairs)
                found = break_even(training, flat, mine)
                id = f"break-even/{arm}/{unit}/{group}"
                text = number(
                    id,
                    found,
                    f"training {unit} over {unit} saved a question ({flat:.1f} - {mine:.1f})",
                    results.sources(arm, group, unit, "flat"),
                    0,
                )
                cells.append(text if found is not None else Cell(id, "never", None, text.formula, text.sources))
                if unit == "actions" and group == results.groups[0]:
                    said.append(
                        f"{results.label(arm)} pays back its {training:,.0f} training actions after "
                        + (
                            f"{found:,.0f} questions of the {LABELS[group]} group."
                            if found
                            else "no number of questions."
                        )
                    )
            lines.append(Line(f"{results.label(arm)}, {unit}", tuple(cells)))
    if results.kind == "people":
        theirs: list[Cell | None] = [
            published("break-even/tokens/training", paper.BREAK_EVEN["training"], 0),
            published("break-even/tokens/trained", paper.BREAK_EVEN["questions"], 0),
        ]
        lines.append(Line("paper: trained, tokens", (*theirs, *([None] * (len(groups) - 1))), paper=True))
    heads = ("training spent", *(LABELS.get(group, group) for group in groups))
    return Table(
        "break-even",
        "Break-even: questions until training is paid for",
        heads,
        tuple(lines),
        f"{results.caption()} No tokens: no language model ran.",
        " ".join(said),
        "store and unit",
    )
