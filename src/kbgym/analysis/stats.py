"""What every interval and test is made of: an interval, Holm's adjustment, Student's t, numbers that are checked.

It knows nothing of exams, stores, keys or seeds; the intervals themselves are in `clustered.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from kbgym.errors import BadInput

Values: TypeAlias = Sequence[float] | NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]

TAIL = 0.025


class Interval(msgspec.Struct, frozen=True):
    """An estimate and its 95% interval; an end nobody can know is infinite (one question has no spread)."""

    value: float
    low: float
    high: float


def excludes(interval: Interval, value: float) -> bool:
    """Whether the interval does not hold the value: rho != 1, a difference != 0."""
    return not interval.low <= value <= interval.high


def break_even(training_cost: float, cost_base: float, cost_treated: float) -> float | None:
    """After how many questions the training has paid for itself; None when a question saves nothing."""
    saved = cost_base - cost_treated
    return training_cost / saved if saved > 0 else None


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given: comparing them with 0.05 keeps the chance of any false alarm
    among all of them at 5%."""
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = worst
    return tuple(adjusted)


def checked(values: Values) -> Floats:
    """The values as floats, refused when there are none or one is not a number."""
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1:
        raise BadInput(f"One number per question is needed, not an array of shape {row.shape}.")
    if not row.size:
        raise BadInput("There are no questions to take a mean over.")
    if not np.isfinite(row).all():
        raise BadInput("A value is infinite or not a number.")
    return row


def paired(treated: Values, base: Values) -> Floats:
    """Both arms as two rows, refused unless they hold the same questions."""
    left, right = checked(treated), checked(base)
    if left.size != right.size:
        raise BadInput(f"The arms are not paired: {left.size} and {right.size} questions.")
    return np.stack([left, right])


def t_quantile(freedom: int) -> float:
    """Student's t at 97.5%: closed forms for one and two degrees of freedom, else the series around the normal
    (0.12% too small at three degrees, right to five digits from ten)."""
    probability = 1 - TAIL
    if freedom == 1:
        return math.tan(math.pi * (probability - 0.5))
    if freedom == 2:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / freedom**power for power, term in enumerate(terms)))
