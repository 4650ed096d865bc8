"""Confidence intervals and tests for paired exams whose questions share keys and whose worlds come from seeds.

What a store does for a key it does for every question that names it, so questions that share a key are clustered. A
question with two keys belongs to two clusters, and two questions that share both keys count once (multi-way clustering
by inclusion and exclusion). The standard error is at least that of independent questions. If every seed has a world of
its own, the seed is the unit.

Intervals of ratios are computed on the logarithm. Intervals of score differences are of Wilson's type: a difference d
is rejected with a standard error of at least that of whole clusters lost at rate |d|. Without this bound an interval
is too narrow where few answers change, and a sample without any change would prove equality.

Fewer than six independent clusters give no interval: even if all clusters change in one direction, the sign test does
not reject at 5%. `benchmarks/intervals.py` measures coverage and false positives (see benchmarks/RESULTS.md).
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
FEWEST = 6  # clusters
MOST_KEYS = 4  # of a question that are used
EQUAL_COSTS = 0.02  # squared relative error added to costs that are equal everywhere: two questions, 10% off


class Interval(msgspec.Struct, frozen=True):
    """An estimate and its 95% interval; an unknown end is infinite."""

    value: float
    low: float
    high: float


class Sampled(msgspec.Struct, frozen=True):
    """The questions of one world: the values of two arms and the keys of each question.

    A question without keys shares none.
    """

    treated: Values
    base: Values
    keys: Sequence[Sequence[Hashable]] = ()


class Estimate(msgspec.Struct, frozen=True):
    """A ratio of means or a difference of means. `error` is the standard error (of a ratio, of its logarithm).

    `effective` is the number of independent questions with as much information if a key decided all its questions.
    `freedom` is 0 if there are too few clusters.
    """

    value: float
    error: float
    freedom: int
    n: int
    effective: float
    is_ratio: bool
    is_score: bool = False

    @property
    def interval(self) -> Interval:
        if not self.freedom:
            low = 0.0 if self.is_ratio else -1.0 if self.is_score else -math.inf
            return Interval(self.value, low, 1.0 if self.is_score else math.inf)
        t = t_quantile(self.freedom)
        if self.is_score:
            low, high = (float(end) for end in score_interval(self.value, self.error, self.effective, t))
            return Interval(self.value, low, high)
        half = t * self.error
        if self.is_ratio:
            return Interval(self.value, self.value * math.exp(-half), self.value * math.exp(min(half, 700.0)))
        return Interval(self.value, self.value - half, self.value + half)

    @property
    def p(self) -> float:
        """Return the two-sided p-value for no difference between the arms."""
        away = abs(math.log(self.value)) if self.is_ratio and self.value else abs(self.value)
        if not self.freedom or not away:
            return 1.0
        return 2 * t_tail(away / self.error, self.freedom) if self.error else 0.0


def score_interval(
    value: float | Floats, error: float | Floats, effective: float | Floats, t: float
) -> tuple[Floats, Floats]:
    """Return every difference that a t-test with the bounded standard error does not reject, as two ends."""
    mean, half = np.asarray(value, dtype=np.float64), t * np.asarray(error, dtype=np.float64)
    spread = t * t / np.asarray(effective, dtype=np.float64)
    # (mean - d)^2 = spread |d| (1 - |d|) has two solutions d of the mean's sign, and two of the other sign or none.
    size, ends = np.abs(mean), []
    root = np.sqrt(spread * (spread + 4 * size * (1 - size)))
    far, near = ((spread + 2 * size + part) / (2 * (1 + spread)) for part in (root, -root))
    inside = spread * (spread - 4 * size * (1 + size))
    across = np.where(inside >= 0, (spread - 2 * size + np.sqrt(np.maximum(inside, 0.0))) / (2 * (1 + spread)), -near)
    for sign in (1.0, -1.0):
        reached = np.where(sign * mean >= 0, far, across)
        ends.append(sign * np.minimum(1.0, np.maximum(sign * mean + half, reached)))
    return ends[1], ends[0]


def ratio(worlds: Sequence[Sampled], apart: bool = True) -> Estimate:
    """Return the mean of `treated` over the mean of `base`. `apart`: every sample has a world of its own."""
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
    return _estimate(above / below, parts, worlds, apart, EQUAL_COSTS, is_ratio=True)


def difference(worlds: Sequence[Sampled], apart: bool = True, scores: bool = False) -> Estimate:
    """Return the mean of `treated` minus the mean of `base`; with `scores`, both are between 0 and 1."""
    pairs = _checked(worlds)
    if scores and any(pair.min() < 0 or pair.max() > 1 for pair in pairs):
        raise BadInput("A score lies outside 0 to 1.")
    n = sum(pair.shape[1] for pair in pairs)
    value = sum(float((pair[0] - pair[1]).sum()) for pair in pairs) / n
    parts = [pair[0] - pair[1] - value for pair in pairs]
    tied = not scores and not value and not any(part.any() for part in parts)
    added = EQUAL_COSTS * (sum(float(pair[1].sum()) for pair in pairs) / n) ** 2 if tied else 0.0
    return _estimate(value, parts, worlds, apart, added, is_score=scores)


def _checked(worlds: Sequence[Sampled]) -> list[Floats]:
    """Return both arms of every world as two rows, or raise if they are empty, unpaired or not finite."""
    if not worlds:
        raise BadInput("There are no questions to take a mean over.")
    found = []
    for world in worlds:
        rows = [np.asarray(values, dtype=np.float64) for values in (world.treated, world.base)]
        if rows[0].ndim != 1 or rows[0].shape != rows[1].shape:
            raise BadInput(f"The arms are not paired: {rows[0].shape} and {rows[1].shape} values.")
        if not rows[0].size:
            raise BadInput("There are no questions to take a mean over.")
        if not np.isfinite(rows).all():
            raise BadInput("A value is infinite or not a number.")
        found.append(np.stack(rows))
    return found


def _estimate(
    value: float,
    parts: Sequence[Floats],
    worlds: Sequence[Sampled],
    apart: bool,
    added: float,
    is_ratio: bool = False,
    is_score: bool = False,
) -> Estimate:
    """Estimate the standard error from each question's contribution: over independent seeds, else over keys."""
    each = np.concatenate(parts)
    n, seeds = each.size, len(parts) if apart else 1
    clusters = clusters_of(
        tuple((place if apart else 0, *keys) for place, world in enumerate(worlds) for keys in _keys(world, place))
    )
    if seeds > 1:
        among = sum(float(part.sum()) ** 2 for part in parts)
        error, freedom = math.sqrt((among + added) * seeds / (seeds - 1)) / n, seeds - 1
    else:
        error, freedom = float(clusters.error(each, added)), clusters.freedom
    return Estimate(value, error, freedom, n, clusters.effective, is_ratio, is_score)


def _keys(world: Sampled, place: int) -> Sequence[Sequence[Hashable]]:
    alone = (((place, at),) for at in range(len(world.treated)))
    return [keys[:MOST_KEYS] or own for keys, own in zip(world.keys or [()] * len(world.treated), alone, strict=True)]


class Clusters(NamedTuple):
    """Questions that share keys: an entry for every question and subset of its keys, sorted by subset.

    A sum over pairs of questions with a common key is a signed sum of squares over subsets. `sharing` is the number of
    such pairs, `uneven` how much the clusters differ in size (1 if they do not).
    """

    question: NDArray[np.intp]
    starts: NDArray[np.intp]
    signs: Floats
    n: int
    sharing: float
    uneven: float

    @property
    def effective(self) -> float:
        return self.n * self.n / self.sharing

    @property
    def _left(self) -> float:
        """Return the share of the variance that remains after subtracting a mean estimated from the same clusters."""
        return 1 - (2 * self.uneven - 1) / self.effective

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom, or 0 if there are too few clusters for an interval."""
        if self.effective < FEWEST - 1e-9 or self._left <= 0:
            return 0
        return max(1, math.floor(self.effective / self.uneven - 1))

    def error(self, each: Floats, added: float = 0.0) -> Floats:
        """Return the standard error of the mean of contributions (one sample a row) that sum to zero."""
        if not self.freedom:
            return np.zeros(each.shape[:-1])
        sums = np.add.reduceat(each[..., self.question], self.starts, axis=-1)
        clustered = ((sums**2) @ self.signs + added) / self._left
        independent = ((each**2).sum(axis=-1) + added) * self.n / (self.n - 1)
        found: Floats = np.sqrt(np.maximum(independent, clustered)) / self.n
        return found


@lru_cache(maxsize=64)
def clusters_of(named: tuple[tuple[Hashable, ...], ...]) -> Clusters:
    """Return the clusters of questions, each given as its world followed by its keys."""
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
    sizes = np.bincount(which)
    others = np.bincount(question, (signs * sizes)[which])
    sharing, n = float(others.sum()), len(named)
    order = np.argsort(which, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return Clusters(np.array(question)[order], starts, signs, n, sharing, float(others @ others) * n / sharing**2)


def break_even(training_cost: float, cost_base: float, cost_treated: float) -> float | None:
    """Return the number of questions that pay back the training, or None if a question saves nothing."""
    saved = cost_base - cost_treated
    return training_cost / saved if saved > 0 else None


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values, in the order given."""
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = worst
    return tuple(adjusted)


def t_quantile(freedom: int) -> float:
    """Return Student's t at 97.5%: exact for one and two degrees of freedom, else the series around the normal.

    The series is 0.12% too small at three degrees of freedom and exact to five digits from ten.
    """
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


def t_tail(value: float, freedom: int) -> float:
    """Return the upper tail probability of Student's t, by its finite series for whole degrees of freedom."""
    angle = math.atan(value / math.sqrt(freedom))
    cosine, term, total = math.cos(angle), 1.0, 0.0
    if freedom % 2:
        term = cosine
    for step in range(freedom % 2, freedom - 1, 2):
        total += term
        term *= cosine**2 * (step + 1) / (step + 2)
    within = math.sin(angle) * total
    return (1 - (2 / math.pi * (angle + within) if freedom % 2 else within)) / 2
