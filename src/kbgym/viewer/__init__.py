"""The viewer: a local web page on runs, experiments and stores. It is read-only: no route changes a store or a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kbgym.analysis.results import LABELS

MOST_POINTS = 400  # of a line: more are indistinguishable


def picked(value: object, *names: str) -> dict[str, Any]:
    """Return the named fields of a value."""
    return {name: getattr(value, name) for name in names}


def group_label(name: str) -> str:
    """Return the name of a question set as the page shows it."""
    return "new questions" if name == "test_in" else LABELS.get(name, name)


def thinned(points: Sequence[Any]) -> Sequence[Any]:
    """Return at most MOST_POINTS points, the last among them."""
    every = -(-len(points) // MOST_POINTS)
    return points if every <= 1 else [*points[:-1:every], points[-1]]
