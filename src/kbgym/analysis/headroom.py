"""How much flat stores leave to gain: means by the size of a universe and by the kind of question, with intervals.

Chains that search alone can follow stand beside classes that need a relation as a whole. It knows exam rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from kbgym.analysis.statistics import Sampled, difference
from kbgym.training.exam import Row

CHAINS = ("QC1", "QC2", "QC3", "QC9")
MEASURES: dict[str, Callable[[Row], float]] = {"f1": lambda row: row.f1 or 0.0, "actions": lambda row: row.actions}

Keys = Mapping[str, Sequence[Hashable]]  # by the question's text
Examined = dict[str, list[tuple[list[Row], Keys]]]  # by size and kind, a world each


def add(found: Examined, size: int, rows: Sequence[Row], keys: Keys) -> None:
    """Take in the exam of one world."""
    for kind, chosen in (("chains", True), ("relations", False)):
        of_kind = [row for row in rows if row.f1 is not None and (row.class_ in CHAINS) == chosen]
        found.setdefault(f"{size}/{kind}", []).append((of_kind, keys))


def counted(found: Examined) -> dict[str, int]:
    """How many questions each mean is of."""
    return {name: sum(len(rows) for rows, _ in worlds) for name, worlds in found.items()}


def means(found: Examined) -> dict[str, dict[str, Any]]:
    """A report's cells, by id."""
    return {
        f"headroom/{name}/{field}": _mean(worlds, value, field == "f1")
        for name, worlds in found.items()
        for field, value in MEASURES.items()
    }


def _mean(examined: list[tuple[list[Row], Keys]], value: Callable[[Row], float], scores: bool) -> dict[str, Any]:
    """A mean with its interval, over seeds where there are several."""
    worlds = [
        Sampled([value(row) for row in rows], [0.0] * len(rows), [keys[row.question] for row in rows])
        for rows, keys in examined
    ]
    found = difference(worlds, scores=scores).interval
    text = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
    return {"text": text, "value": found.value, "low": found.low, "high": found.high}
