"""The figure of the gradient with its intervals, as SVG; the viewer draws learning curves and maps.

Colours are Okabe and Ito's, which people with any colour vision can tell apart; groups also differ by marker.

Needs matplotlib (the `research` extra). The same numbers give the same bytes.
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
OTHER_STYLE = (PURPLE, "v")  # a set of questions that is no group of the gradient
ARM_COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, "#8A7A00")


def plotting() -> Any:
    """pyplot without a screen, set up once."""
    try:
        import matplotlib
    except ImportError:
        raise Missing("figures need matplotlib: install kbgym with its `research` extra.") from None
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
