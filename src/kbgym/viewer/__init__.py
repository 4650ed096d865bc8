"""The viewer: a local web page on runs, experiments and stores. It is read-only: no route changes a store or a run."""

from __future__ import annotations

from typing import Any

from kbgym.analysis.results import LABELS


def picked(value: object, *names: str) -> dict[str, Any]:
    """Return the named fields of a value."""
    return {name: getattr(value, name) for name in names}


def group_label(name: str) -> str:
    """Return the name of a question set as the page shows it."""
    return "new questions" if name == "test_in" else LABELS.get(name, name)
