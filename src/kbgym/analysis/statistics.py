"""What every interval and test is made of: an interval, Holm's adjustment, Student's t, numbers that are checked.

It knows nothing of exams, stores, keys or seeds; the intervals themselves are in `clustered.py`.


Intervals and tests for questions that are not independent: they share keys, and seeds differ.

A question names keys, and what a store does for a key it does for every question that names it. So within one world the
spread is taken over all pairs of questions that share a key: a question with two keys counts towards both, and two
questions that share two keys count once (the variance of clustering in several ways at once, by inclusion and
exclusion). It is never taken to be smaller than that of independent questions. Where several seeds ran, each with its
own world, the seed is the unit: nothing inside a seed is taken for independent, and the interval is Student's t over
seeds, which answers what a further seed would show.

Ratios are worked out on the logarithm, so that swapping the arms turns the interval upside down. Scores that hardly
ever differ need more: when all agree there is no spread at all, and one exam would prove equality. A made-up question
half a point off joins the spread, so 34 equal questions give +-0.03. A ratio of costs that are all equal is kept from
proof by two that differ by a tenth: 34 equal questions give +-0.01; so is a difference of such.

How often these intervals hold the truth, and how often the tests cry wolf, is measured by `benchmarks/intervals.py`,
section intervals of benchmarks/RESULTS.md. It knows nothing of exams or of what a key is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

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


MADE_UP = 0.25  # of squared points: a question half a point off
MADE_UP_COST = 0.02  # of squared means: two questions, a tenth of the mean either way
MOST_KEYS = 4  # of a question that are looked at


class Sampled(msgspec.Struct, frozen=True):
    """The questions of one world: the numbers of two arms, and the keys of each question; none is a key of its own."""

    treated: Values
    base: Values
    keys: Sequence[Sequence[Hashable]] = ()


class Estimate(msgspec.Struct, frozen=True):
    """A ratio of means or a difference of means. `error` is the standard error (of a ratio, of its logarithm).

    `effective`: so many independent questions would tell as much, were what is true of a key true of all its questions.
    """

    value: float
    error: float
    freedom: int
    n: int
    effective: float
    is_ratio: bool
    limit: float = math.inf  # of a difference: of scores it is at most 1

    @property
    def interval(self) -> Interval:
        """The 95% interval; an end nobody can know is infinite."""
        if not self.freedom:
            return Interval(self.value, 0.0 if self.is_ratio else -math.inf, math.inf)
        half = t_quantile(self.freedom) * self.error
        if self.is_ratio:
            return Interval(self.value, self.value * math.exp(-half), self.value * math.exp(min(half, 700.0)))
        return Interval(self.value, max(-self.limit, self.value - half), min(self.limit, self.value + half))

    @property
    def p(self) -> float:
        """Two-sided: were the arms equal, how often would they differ this much?"""
        away = abs(math.log(self.value)) if self.is_ratio and self.value else abs(self.value)
        if not self.freedom or not away:
            return 1.0
        return 2 * t_tail(away / self.error, self.freedom) if self.error else 0.0

    def p_not_lower(self, margin: float) -> float:
        """One-sided: were scores lower by `margin`, how often would they look this good?

        A loss of so much spreads by itself, and whole keys may be lost at a time: the spread is taken to be at least
        that of answers lost a key at a time. Without it a sample in which nothing differs would prove too much.
        """
        if not self.freedom:
            return 1.0
        lost = math.sqrt(margin * (1 - margin) / self.effective)
        return t_tail((self.value + margin) / max(self.error, lost), self.freedom)


def enough(margin: float, freedom: int = 10_000) -> int:
    """How many independent questions that do not differ at all show that scores are not lower by `margin`."""
    return math.ceil((1 - margin) / margin * t_quantile(freedom) ** 2)


def ratio(worlds: Sequence[Sampled], apart: bool = True) -> Estimate:
    """Mean of `treated` over mean of `base`, all questions together. `apart`: each has a world of its own."""
    pairs = _checked(worlds)
    if any(pair.min() < 0 for pair in pairs):
        raise BadInput("A ratio of means needs values that are not negative.")
    n = sum(pair.shape[1] for pair in pairs)
    above, below = (sum(float(pair[row].sum()) for pair in pairs) / n for row in (0, 1))
    if not below:
        raise BadInput("The base is zero on every question, so there is no ratio.")
    if not above:
        return Estimate(0.0, 0.0, 0, n, float(n), True)
    parts = [pair[0] / above - pair[1] / below for pair in pairs]
    return _estimate(above / below, parts, worlds, apart, MADE_UP_COST, True)


def difference(worlds: Sequence[Sampled], apart: bool = True, scores: bool = False) -> Estimate:
    """Mean of `treated` minus mean of `base`, all questions together; for scores between 0 and 1 say so."""
    pairs = _checked(worlds)
    if scores and any(pair.min() < 0 or pair.max() > 1 for pair in pairs):
        raise BadInput("A score lies outside 0 to 1.")
    n = sum(pair.shape[1] for pair in pairs)
    value = sum(float((pair[0] - pair[1]).sum()) for pair in pairs) / n
    parts = [pair[0] - pair[1] - value for pair in pairs]
    tied = not value and not any(part.any() for part in parts)
    costs = MADE_UP_COST * (sum(float(pair[1].sum()) for pair in pairs) / n) ** 2 if tied else 0.0
    found = _estimate(value, parts, worlds, apart, MADE_UP if scores else costs, False)
    return msgspec.structs.replace(found, limit=1.0) if scores else found


def _checked(worlds: Sequence[Sampled]) -> list[Floats]:
    if not worlds:
        raise BadInput("There are no questions to take a mean over.")
    return [paired(one.treated, one.base) for one in worlds]


def _estimate(
    value: float, parts: Sequence[Floats], worlds: Sequence[Sampled], apart: bool, made_up: float, is_ratio: bool
) -> Estimate:
    """The spread of what every question adds to the estimate: over seeds that stand apart, else over keys."""
    each = np.concatenate(parts)
    n, seeds = each.size, len(parts) if apart else 1
    named = tuple((place if apart else 0, *keys) for place, world in enumerate(worlds) for keys in _keys(world, place))
    names = _names(named)
    effective = n * n / names.sharing
    if seeds > 1:
        among = sum(float(part.sum()) ** 2 for part in parts)
        return Estimate(
            value, math.sqrt((among + made_up) * seeds / (seeds - 1)) / n, seeds - 1, n, effective, is_ratio
        )
    # The mean is taken from the same questions, which makes the spread look smaller, most where few keys have many.
    uneven = names.squares * n / names.sharing**2
    left = 1 - (2 * uneven - 1) / effective
    if effective <= 1 or left <= 0:
        return Estimate(value, 0.0, 0, n, effective, is_ratio)
    sums = np.bincount(names.which, each[names.question])
    by_keys = (float(names.signs @ sums**2) + made_up) / left
    variance = max((float(each @ each) + made_up) * n / (n - 1), by_keys)
    return Estimate(value, math.sqrt(variance) / n, max(1, math.floor(effective / uneven - 1)), n, effective, is_ratio)


def _keys(world: Sampled, place: int) -> Sequence[Sequence[Hashable]]:
    """A question without keys shares none with any other."""
    alone = (((place, at),) for at in range(len(world.treated)))
    return [keys[:MOST_KEYS] or own for keys, own in zip(world.keys or [()] * len(world.treated), alone, strict=True)]


class _Names(NamedTuple):
    """Which question names which keys together: a line for every question and some of its keys.

    A sum over pairs that share a key is made of squared sums: those of single keys added, those of two together taken
    off again, and so on. `sharing` is how many pairs share one, `squares` the sum of the squares of how many each has.
    """

    question: NDArray[np.intp]
    which: NDArray[np.intp]
    signs: Floats
    sharing: float
    squares: float


@lru_cache(maxsize=64)
def _names(named: tuple[tuple[Hashable, ...], ...]) -> _Names:
    """The keys of every question, after the world they are keys of; many estimates are of the same questions."""
    single: dict[Hashable, int] = {}
    numbers: dict[tuple[int, ...], int] = {}
    question, which = [], []
    for at, (world, *keys) in enumerate(named):
        own = sorted({single.setdefault((world, key), len(single)) for key in keys})
        for size in range(1, len(own) + 1):
            for some in combinations(own, size):
                question.append(at)
                which.append(numbers.setdefault(some, len(numbers)))
    signs = np.array([1.0 if len(some) % 2 else -1.0 for some in numbers])
    counts = signs * np.bincount(which)
    others = np.bincount(question, counts[which])
    return _Names(np.array(question), np.array(which), signs, float(others.sum()), float(others @ others))


def t_tail(value: float, freedom: int) -> float:
    """The chance that Student's t is above a value, by its finite series for whole degrees of freedom."""
    angle = math.atan(value / math.sqrt(freedom))
    cosine, term, total = math.cos(angle), 1.0, 0.0
    if freedom % 2:
        term = cosine
        for step in range(1, freedom - 1, 2):
            total += term
            term *= cosine**2 * (step + 1) / (step + 2)
        within = 2 / math.pi * (angle + math.sin(angle) * total)
    else:
        for step in range(0, freedom - 1, 2):
            total += term
            term *= cosine**2 * (step + 1) / (step + 2)
        within = math.sin(angle) * total
    return (1 - within) / 2
