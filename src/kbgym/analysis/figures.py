"""Figures of the gradient and of a store's growth, as SVG; the viewer draws learning curves and maps.

Colours are the Okabe-Ito palette, which is colour-blind safe; groups also differ by marker.

Requires matplotlib (the `research` extra). Output is deterministic: the same numbers give the same bytes.
"""

from __future__ import annotations

import io
from typing import Any

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
OTHER_STYLE = (PURPLE, "v")  # a question set that is no group of the gradient
ARM_COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, "#8A7A00")


def plotting() -> Any:
    """Return pyplot with a non-interactive backend, configured once."""
    try:
        import matplotlib
    except ImportError:
        raise Missing("figures need matplotlib: install kbgym with its `research` extra.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "kbgym",
            "text.parse_math": False,  # do not parse a dollar sign in a name as mathematics
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
    """Return the figure with the legend of one of its axes above it."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=min(columns, len(labels)))
    figure.tight_layout()
    return as_svg(figure)


def gradient_dots(results: Results) -> str:
    """Draw rho and the F1 difference with intervals: one row per arm, one marker per group."""
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


def growth(results: Results, arm: str) -> str:
    """Draw documents and links by iteration (one line per seed) and the out-degrees of the final stores."""
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
