"""Paired intervals for the numbers of one exam whose questions are taken for independent; tests for several groups.

Everything is a function of numbers, one per question, the two arms in the same order. It knows nothing of exams,
stores or groups, nor of keys that questions share: for those, and for several seeds, see `clustered.py`. Every interval
is a 95% bootstrap interval over questions, the same draw of questions feeding both arms, deterministic by seed.

Which bootstrap was decided by measurement: 1,000 simulated exams at each of n = 34, 68 and 136, action counts skewed
over 3..15 with a spike at 15, F1 mostly 0 or 1. Share of intervals that held the true value, lowest to highest:

    rho            percentile 91.9 to 95.5%   BCa 92.0 to 95.4%   expanded percentile 93.4 to 95.9%
    F1 difference  percentile 91.8 to 95.5%   BCa 89.2 to 95.4%   expanded percentile 91.9 to 95.7%
    F1 difference when the arms disagree on under 6% of the questions: percentile and BCa 32 to 90%

So the interval is the percentile interval with its tails moved out as far as Student's t is wider than the normal (the
bootstrap's variance is too small by (n - 1)/n, and its tails are normal). It costs one line, and unlike BCa it does not
chase the lumps of 0/1 data. A score that hardly ever changes needs more: when all questions of a sample agree, the
bootstrap sees no variance at all and calls one exam proof. `score_difference` and `mean_score` therefore add two
made-up questions that cancel out (see there): 94.0 to 96.8% on the ordinary scores, 93.7 to 100% on the sparse, where
they err on the cautious side.
"""

from __future__ import annotations

import itertools
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

RESAMPLES = 10_000
TAIL = 0.025
_CELLS = 1_000_000  # drawn at a time: about 30 MB, whatever the number of questions
_EXACT = 16  # up to this many pairs that differ, every one of the 2**n sign patterns is tried


class Interval(msgspec.Struct, frozen=True):
    """An estimate and its 95% interval; an end nobody can know is infinite (one question has no spread)."""

    value: float
    low: float
    high: float


def ratio_of_means(treated: Values, base: Values, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """rho: mean of `treated` over mean of `base`, both resampled together.

    Both hold counts or costs, so nothing negative. A base that is zero throughout has no ratio and is refused; a
    resample whose base is all zero counts as an infinite ratio.
    """
    pair = paired(treated, base)
    if pair.min() < 0:
        raise BadInput("A ratio of means needs values that are not negative.")
    if not pair[1].any():
        raise BadInput("The base is zero on every question, so there is no ratio.")
    value = float(pair[0].mean() / pair[1].mean())
    if pair.shape[1] == 1:
        return Interval(value, 0.0, math.inf)
    return interval(value, divide(*resampled_means(pair, resamples, seed)), pair.shape[1])


def score_difference(treated: Values, base: Values, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Mean difference of scores between 0 and 1, honest when the arms nearly always agree.

    Two made-up questions join the draw, one half a point better and one half a point worse. 34 questions without any
    change then give about +-0.04, where the bare bootstrap would claim an interval of no width; at hundreds of
    questions they no longer matter. A whole point each way is over-cautious (96 to 98% at n = 34), none at all 89%.
    """
    pair = _scores(paired(treated, base))
    difference = pair[0] - pair[1]
    return _padded(difference, (-0.5, 0.5), resamples, seed)


def mean_score(values: Values, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Mean of scores between 0 and 1; one made-up right answer and one wrong answer join the draw."""
    return _padded(_scores(checked(values)), (0.0, 1.0), resamples, seed)


def excludes(interval: Interval, value: float) -> bool:
    """Whether the interval does not hold the value: rho != 1, a difference != 0."""
    return not interval.low <= value <= interval.high


def break_even(training_cost: float, cost_base: float, cost_treated: float) -> float | None:
    """After how many questions the training has paid for itself; None when a question saves nothing."""
    saved = cost_base - cost_treated
    return training_cost / saved if saved > 0 else None


def sign_flip(treated: Values, base: Values, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Two-sided p-value of the paired permutation test: were each pair's arms swapped at random, how often would the
    means differ this much? Exact up to 16 pairs that differ, else from `resamples` random swaps."""
    pair = paired(treated, base)
    difference = pair[0] - pair[1]
    difference = difference[difference != 0]
    # A hair of slack, so that the observed sum itself counts although it was added up in another order.
    observed = abs(difference.sum()) * (1 - 1e-9)
    if difference.size <= _EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=difference.size)))
        return float(np.mean(np.abs(signs @ difference) >= observed))
    rng = np.random.default_rng(seed)
    extreme = 0
    for count in _batches(resamples, difference.size):
        signs = rng.integers(0, 2, (count, difference.size)) * 2 - 1
        extreme += int(np.count_nonzero(np.abs(signs @ difference) >= observed))
    return (extreme + 1) / (resamples + 1)


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


def resampled_means(rows: Floats, resamples: int, seed: int | np.random.Generator) -> Floats:
    """Means of every row over the same redrawn columns: one line per row, one column per resample."""
    if resamples < 1:
        raise BadInput(f"At least one resample is needed, not {resamples}.")
    rng = np.random.default_rng(seed)
    size = rows.shape[1]
    means = np.empty((len(rows), resamples))
    done = 0
    for count in _batches(resamples, size):
        drawn = rng.integers(0, size, (count, size))
        for row, out in zip(rows, means, strict=True):
            out[done : done + count] = row.take(drawn).mean(axis=1)
        done += count
    return means


def interval(value: float, resampled: Floats, size: int) -> Interval:
    """The expanded percentile interval of `size` questions.

    Ends are resamples themselves, rounded outwards: no interpolation, so an infinite resample stays what it is.
    """
    freedom = size - 1
    tail = NormalDist().cdf(-math.sqrt(size / freedom) * t_quantile(freedom)) if freedom else 0.0
    low = float(np.quantile(resampled, tail, method="lower"))
    high = float(np.quantile(resampled, 1 - tail, method="higher"))
    return Interval(value, min(low, value), max(high, value))


def divide(above: Floats, below: Floats) -> Floats:
    """Element by element; over zero is infinite."""
    return np.divide(above, below, out=np.full_like(above, math.inf), where=below > 0)


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


def _padded(row: Floats, extra: tuple[float, ...], resamples: int, seed: int) -> Interval:
    """Means of scores and of made-up scores: no end can lie outside of what a score can be."""
    wider = np.append(row, extra)
    return interval(float(row.mean()), resampled_means(wider[None], resamples, seed)[0], wider.size)


def _scores(values: Floats) -> Floats:
    if values.min() < 0 or values.max() > 1:
        raise BadInput("A score lies outside 0 to 1.")
    return values


def _batches(resamples: int, size: int) -> list[int]:
    """How many resamples to draw at a time; depends on nothing but the two numbers, so neither does the result."""
    count = max(1, _CELLS // size)
    return [min(count, resamples - start) for start in range(0, resamples, count)]
