"""What a verb will have spent when it is over, learnt as it goes from the passes it has played itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

Unit = Literal["exam", "lesson"]  # a pass of an exam; a lesson with all its passes
# What a unit under way has cost on average, of all it will: every request sends the whole past, so the end is dearest.
UNDER_WAY = 1 / 3


class LearntForecast:
    """Tokens of everything that was confirmed.

    A kind of unit nobody has played yet is taken to differ from what is typical by as much as those that were played.
    """

    def __init__(self) -> None:
        self._typical: dict[Unit, float] = {}
        self._left: Counter[Unit] = Counter()
        self._played: dict[object, tuple[Unit, float, float]] = {}

    def plan(self, passes: Mapping[str, int], typical: Mapping[str, tuple[int, int, int]]) -> None:
        """So many passes of each kind are to be played, each of about so many tokens: prompt, of them cached, reply."""
        tokens: Counter[Unit] = Counter()
        units: Counter[Unit] = Counter()
        for kind, count in passes.items():
            unit: Unit = "exam" if kind == "exam" else "lesson"
            prompt, _, completion = typical[kind]
            tokens[unit] += count * (prompt + completion)
            units[unit] = units[unit] + count if unit == "exam" else max(units[unit], count)
        for unit, count in units.items():
            if count:
                self._typical[unit] = self._typical.get(unit, 0.0) + tokens[unit] / count
                self._left[unit] = max(self._left[unit], count)

    def played(self, step: object, unit: Unit, units: float, tokens: float) -> None:
        """A step of the verb has played so many units so far, at so many tokens in all."""
        self._played[step] = (unit, units, tokens)

    def rest(self) -> float | None:
        """Tokens still to come; None where nothing was planned or nothing was played."""
        tokens, units = dict.fromkeys(self._left, 0.0), dict.fromkeys(self._left, 0.0)
        for unit, count, used in self._played.values():
            if unit in units:
                units[unit] += count
                tokens[unit] += used
        usual = sum(count * self._typical[unit] for unit, count in units.items())
        if not usual:
            return None
        ratio = sum(tokens.values()) / usual
        return sum(
            max(0.0, left - units[unit]) * (tokens[unit] / units[unit] if units[unit] else self._typical[unit] * ratio)
            for unit, left in self._left.items()
        )
