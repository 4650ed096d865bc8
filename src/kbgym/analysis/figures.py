"""The figures: the gradient with its intervals, learning, the store's growth, ablation curves; as SVG.

Colours are Okabe and Ito's, which people with any colour vision can tell apart; groups also differ by marker.

Needs matplotlib (the `report` extra). The same numbers give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from kbgym.analysis.curves import CurvePoint, curve
from kbgym.analysis.results import LABELS, POOLED, Results
from kbgym.analysis.tables.arms import gain_of, ratio_of
from kbgym.errors import Missing

BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
SKY, BLACK, GREY = "#56B4E9", "#222222", "#666666"
GROUP_STYLE = {
    "trained": (BLUE, "o"),
    "both": (GREEN, "s"),
    "one": (ORANGE, "^"),
    "neither": (RED, "D"),
    "unseen": (ORANGE, "^"),
    POOLED: (BLACK, "o"),
}
OTHER_STYLE = (PURPLE, "v")  # a set of questions that is no group of the gradient
ARM_COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, "#8A7A00")


def plotting() -> Any:
    """pyplot without a screen, set up once."""
    try:
        import matplotlib
    except ImportError:
        raise Missing("figures need matplotlib: install kbgym with its `report` extra.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "kbgym",
            "text.parse_math": False,  # a dollar in a name is a dollar
            "font.size": 9,
            "font.family": "DejaVu Sans",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#E3E3E3",
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "legend.frameon": False,
        }
    )
    return plt


def as_svg(figure: Any) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    plotting().close(figure)
    text = out.getvalue()
    return text[text.index("<svg") :]


def _with_legend(figure: Any, axis: Any, columns: int = 99) -> str:
    """The figure with the legend of one of its axes above it."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=min(columns, len(labels)))
    figure.tight_layout()
    return as_svg(figure)


def gradient_dots(results: Results) -> str:
    """rho and F1 difference with intervals, a row an arm, a marker a group."""
    plt = plotting()
    arms = [arm for arm in results.arms if arm not in ("flat", "nostore")]
    figure, axes = plt.subplots(1, 2, figsize=(11.0, 1.2 + 0.62 * len(arms)), sharey=True)
    step = 0.17
    for place, group in enumerate(results.groups):
        colour, marker = GROUP_STYLE.get(group, OTHER_STYLE)
        shift = (place - (len(results.groups) - 1) / 2) * step
        for axis, measure in zip(axes, (ratio_of, gain_of), strict=True):
            for row, arm in enumerate(arms):
                found = measure(results, results.pairs(arm, group)).interval
                label = LABELS[group] if row == 0 else None
                ends = [[found.value - found.low], [found.high - found.value]]
                axis.errorbar(
                    [found.value], [row + shift], xerr=ends, fmt=marker, ms=4.5, lw=1.3, color=colour, label=label
                )
    axes[0].set_yticks(range(len(arms)), [results.label(arm) for arm in arms])
    axes[0].set_ylim(len(arms) - 0.5, -0.5)
    axes[0].axvline(1, color=GREY, lw=0.9, ls="--")
    axes[1].axvline(0, color=GREY, lw=0.9, ls="--")
    axes[0].set_xlabel("ρ: actions over the flat store's (left is cheaper)")
    axes[1].set_xlabel("F1 minus the flat store's (right is better)")
    return _with_legend(figure, axes[0])


def learning_panels(results: Results, arm: str) -> str:
    """The paper's learning figure: (a, b) groups against iterations, (c, d) pooled against coverage."""
    plt = plotting()
    points = curve(results, arm)
    figure, axes = plt.subplots(2, 2, figsize=(10.4, 6.6))
    steps = [point.iteration for point in points]
    for place, group in enumerate(results.groups):
        colour, marker = GROUP_STYLE.get(group, OTHER_STYLE)
        for axis, (values, spread) in zip(axes[0], _lines(points, group), strict=True):
            # Later lines are thinner, so that lines on one another can all be seen.
            look = {"lw": 3.4 - 0.8 * place, "ms": 8.5 - 1.5 * place}
            axis.plot(steps, values, color=colour, marker=marker, label=LABELS[group], **look)
            _band(axis, steps, values, spread, colour)
    shares = [100 * point.coverage for point in points]
    for axis, (values, spread), colour in zip(axes[1], _lines(points, POOLED), (BLUE, RED), strict=True):
        axis.errorbar(shares, values, yerr=spread, color=colour, marker="o", ms=4.5, lw=1.4, elinewidth=0.8)
        axis.set_xlabel("coverage, % of the originals")
    questions = results.seeds[0].trained[arm].settings.questions
    for axis in axes[0]:
        axis.axvline(questions, color=GREY, lw=0.9, ls="--")
        axis.set_xlabel("training iteration (dashed: epoch 2 begins)")
    names = ("actions a question", "F1", "actions a question, pooled", "F1, pooled")
    for axis, letter, name in zip((*axes[0], *axes[1]), "abcd", names, strict=True):
        axis.set_ylabel(name)
        axis.set_title(f"({letter})", loc="left", fontsize=10)
    return _with_legend(figure, axes[0][0])


def _lines(points: Sequence[CurvePoint], group: str) -> list[tuple[list[float], list[float]]]:
    """Actions and F1 of a group along the training, each with its spread over seeds."""
    return [
        ([p.actions[group] for p in points], [p.spread_actions[group] for p in points]),
        ([p.f1[group] for p in points], [p.spread_f1[group] for p in points]),
    ]


def _band(axis: Any, x: Sequence[float], values: Sequence[float], spread: Sequence[float], colour: str) -> None:
    low = [value - sd for value, sd in zip(values, spread, strict=True)]
    high = [value + sd for value, sd in zip(values, spread, strict=True)]
    axis.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)


def growth(results: Results, arm: str) -> str:
    """(a, b) what the store accumulates by iteration, a line a seed; (c) out-degrees of the last stores together."""
    plt = plotting()
    figure, (documents, links, degrees) = plt.subplots(1, 3, figsize=(11.6, 3.5))
    for number, seed in enumerate(results.seeds):
        points = seed.trained[arm].trajectory.points
        steps = [point.iteration for point in points]
        names = ("index documents", "net documents added") if number == 0 else (None, None)
        documents.plot(steps, [p.authored for p in points], color=ORANGE, lw=3.2, alpha=0.7, label=names[0])
        added = [p.documents - points[0].documents for p in points]
        documents.plot(steps, added, color=BLUE, lw=1.2, ls="--", label=names[1])
        links.plot(steps, [p.links for p in points], color=GREEN, lw=1.5)
    for axis, name, letter in ((documents, "documents", "a"), (links, "links", "b")):
        axis.axvline(results.seeds[0].trained[arm].settings.questions, color=GREY, lw=0.9, ls="--")
        axis.set_xlabel("training iteration (dashed: epoch 2)")
        axis.set_ylabel(name)
        axis.set_title(f"({letter})", loc="left", fontsize=10)
    documents.legend(loc="lower right", fontsize=8)
    counts: dict[int, float] = {}
    for seed in results.seeds:
        for degree, count in seed.trained[arm].trajectory.degrees.histogram.items():
            counts[degree] = counts.get(degree, 0) + count / len(results.seeds)
    degrees.bar(list(counts), list(counts.values()), color=ORANGE, width=0.9)
    if 0 in counts:
        degrees.bar([0], [counts[0]], color=RED, width=0.9, label="empty")
        degrees.legend(fontsize=8)
    degrees.set_xlim(-1, max(counts, default=0) + 1)
    degrees.set_xlabel("links of an index document")
    degrees.set_ylabel("index documents a seed")
    degrees.set_title("(c)", loc="left", fontsize=10)
    figure.tight_layout()
    return as_svg(figure)


def ablation_curves(results: Results) -> str:
    """Coverage, F1, actions and characters against training actions spent, a line a training."""
    plt = plotting()
    figure, axes = plt.subplots(2, 2, figsize=(10.4, 6.8))
    panels: tuple[tuple[Any, str, Any], ...] = (
        (axes[0][0], "coverage, %", lambda p: 100 * p.coverage),
        (axes[0][1], "F1, pooled", lambda p: p.f1[POOLED]),
        (axes[1][0], "actions a question, pooled", lambda p: p.actions[POOLED]),
        (axes[1][1], "characters a question, pooled", lambda p: p.characters[POOLED]),
    )
    for place, arm in enumerate(results.trainings):
        points: list[CurvePoint] = curve(results, arm)
        colour, marker = ARM_COLOURS[place % len(ARM_COLOURS)], "os^Dvp*X"[place % 8]
        for axis, name, value in panels:
            spent = [point.spent for point in points]
            values = [value(p) for p in points]
            look = {"lw": max(1.0, 3.6 - 0.5 * place), "ms": max(4.0, 8.5 - 0.8 * place)}
            axis.plot(spent, values, color=colour, marker=marker, label=results.label(arm), **look)
            axis.set_ylabel(name)
            axis.set_xlabel("training actions spent")
    return _with_legend(figure, axes[0][0], 4)
