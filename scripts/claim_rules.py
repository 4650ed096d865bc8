"""How a claim is judged: rules over the cells of a report. Read by `scripts/paper_claims.py`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, Protocol

ARM = "trained-paper"
GROUPS = ("trained", "both", "one", "neither")


class Asked(Protocol):
    def __call__(self, id: str) -> str: ...
    def value(self, id: str, field: str = "value") -> float | None: ...


class Claim(NamedTuple):
    """`holds` gives True, False, or None where the experiment cannot tell; `partly` turns a False into "partly"."""

    where: str
    says: str
    ours: Callable[[Asked], str]
    see: str = ""
    holds: Callable[[Asked], bool | None] = lambda cells: True
    why: str = ""
    partly: bool = False

    def judge(self, cells: Asked) -> tuple[str, str]:
        found = self.holds(cells)
        if found is None:
            return "not tried", self.why
        return ("yes", "") if found else ("partly" if self.partly else "no", self.why)


def listed(*ids: str) -> Callable[[Asked], str]:
    return lambda cells: ", ".join(cells(id) for id in ids)


def by_group(what: str, arm: str = ARM, groups: tuple[str, ...] = GROUPS) -> tuple[str, ...]:
    return tuple(f"gradient/{arm}/{group}/{what}" for group in groups)


def said(values: dict[str, float], sign: str = "") -> str:
    return " / ".join(f"{values[group]:{sign}.3f}" for group in GROUPS if group in values)


def values(cells: Asked, ids: tuple[str, ...]) -> list[float] | None:
    found = [cells.value(id) for id in ids]
    return None if any(one is None for one in found) else [one for one in found if one is not None]


def rising(*ids: str) -> Callable[[Asked], bool | None]:
    def holds(cells: Asked) -> bool | None:
        found = values(cells, ids)
        return None if found is None else all(one < other for one, other in pairwise(found))

    return holds


def falling(*ids: str) -> Callable[[Asked], bool | None]:
    return rising(*reversed(ids))


def within(id: str, low: float, high: float) -> Callable[[Asked], bool | None]:
    def holds(cells: Asked) -> bool | None:
        found = cells.value(id)
        return None if found is None else low <= found <= high

    return holds


def below(id: str, limit: float) -> Callable[[Asked], bool | None]:
    """Whether the whole interval lies below."""

    def holds(cells: Asked) -> bool | None:
        found = cells.value(id, "high")
        return None if found is None else found < limit

    return holds


def not_below(id: str, limit: float) -> Callable[[Asked], bool | None]:
    def holds(cells: Asked) -> bool | None:
        found = below(id, limit)(cells)
        return None if found is None else not found

    return holds


def each(pattern: str, *names: object) -> tuple[str, ...]:
    """Ids that differ in one place, marked `?`."""
    return tuple(pattern.replace("?", str(name)) for name in names)


def moves(ids: tuple[str, ...], low: float, high: float) -> Callable[[Asked], bool | None]:
    """Whether the last is the first and so much more."""

    def holds(cells: Asked) -> bool | None:
        found = values(cells, ids)
        return None if found is None else low <= found[-1] - found[0] <= high

    return holds


def above(id: str, limit: float) -> Callable[[Asked], bool | None]:
    """Whether the whole interval lies above."""

    def holds(cells: Asked) -> bool | None:
        found = cells.value(id, "low")
        return None if found is None else found > limit

    return holds


def every(*rules: Callable[[Asked], bool | None]) -> Callable[[Asked], bool | None]:
    """Whether all hold; where one cannot be told, none can."""

    def holds(cells: Asked) -> bool | None:
        found = [rule(cells) for rule in rules]
        return None if None in found else all(found)

    return holds


def alike(ids: tuple[str, ...], width: float) -> Callable[[Asked], bool | None]:
    def holds(cells: Asked) -> bool | None:
        found = values(cells, ids)
        return None if found is None else max(found) - min(found) <= width

    return holds


def nothing(text: str) -> Callable[[Asked], str]:
    return lambda cells: text
