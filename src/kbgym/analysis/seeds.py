"""One result out of several seeds: the pooled estimate, and how far one seed's estimate strays from the next.

Two different questions hide in "over ten seeds". What is the effect in these ten universes? Only the questions are a
sample: they are redrawn inside each seed. What would the next seed show? The seeds are a sample too, of a few; their
spread alone gives the honest interval, by Student's t.

Measured on rho, 34 questions a seed, 500 simulated experiments each at 3, 5 and 10 seeds, the true effect varying
between seeds by 0, 3% and 8% (share of intervals that held the true mean effect):

    inside seeds          95 to 97% with no variation, 60% at 8%: it answers the first question only
    across seeds (t)      93.2 to 95.8% throughout
    two-level bootstrap   98.4 to 99.2%, 94.4 to 97.8%, 82.4 to 94.4%: counts the questions twice when seeds agree,
                          and cannot look past its own few seeds when they do not; so it is not offered

It knows nothing of what a seed is; any grouping of the questions serves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from kbgym.analysis.stats import (
    RESAMPLES,
    Floats,
    Interval,
    Values,
    divide,
    interval,
    paired,
    resampled_means,
    t_quantile,
)
from kbgym.errors import BadInput

Statistic = Literal["ratio", "difference"]


class OverSeeds(msgspec.Struct, frozen=True):
    """`pooled`: all questions together, redrawn inside their seed. `across`: the mean of the
    per-seed estimates with the t interval for further seeds. `sd` is None for one seed."""

    pooled: Interval
    across: Interval
    sd: float | None
    estimates: tuple[float, ...]


def pooled_over_seeds(
    per_seed: Sequence[tuple[Values, Values]],
    statistic: Statistic = "ratio",
    resamples: int = RESAMPLES,
) -> OverSeeds:
    """Pool (treated, base) of every seed."""
    if not per_seed:
        raise BadInput("There are no seeds to pool.")
    pairs = [paired(treated, base) for treated, base in per_seed]
    if statistic == "ratio" and any(pair.min() < 0 or not pair[1].any() for pair in pairs):
        raise BadInput("A ratio of means needs values that are not negative and a base that is not all zero.")
    rng = np.random.default_rng(0)
    size = sum(pair.shape[1] for pair in pairs)
    value = _estimate(np.concatenate(pairs, axis=1), statistic)
    estimates = tuple(_estimate(pair, statistic) for pair in pairs)
    if size == len(pairs):
        pooled = Interval(value, *_anything(statistic))
    else:
        pooled = interval(value, _estimates(_inside(pairs, resamples, rng), statistic), size, len(pairs))
    return OverSeeds(pooled, _across(estimates, statistic), _spread(estimates), estimates)


def _inside(pairs: Sequence[Floats], resamples: int, rng: np.random.Generator) -> Floats:
    """Means of both arms, every seed's questions redrawn among themselves."""
    sums = np.zeros((2, resamples))
    for pair in pairs:
        sums += pair.shape[1] * resampled_means(pair, resamples, rng)
    means: Floats = sums / sum(pair.shape[1] for pair in pairs)
    return means


def _estimates(arms: Floats, statistic: Statistic) -> Floats:
    if statistic == "ratio":
        return divide(arms[0], arms[1])
    difference: Floats = arms[0] - arms[1]
    return difference


def _estimate(pair: Floats, statistic: Statistic) -> float:
    return float(_estimates(pair.mean(axis=1, keepdims=True), statistic)[0])


def _across(estimates: tuple[float, ...], statistic: Statistic) -> Interval:
    value = float(np.mean(estimates))
    spread = _spread(estimates)
    if spread is None:
        return Interval(value, *_anything(statistic))
    half = t_quantile(len(estimates) - 1) * spread / math.sqrt(len(estimates))
    return Interval(value, value - half, value + half)


def _spread(estimates: tuple[float, ...]) -> float | None:
    return float(np.std(estimates, ddof=1)) if len(estimates) > 1 else None


def _anything(statistic: Statistic) -> tuple[float, float]:
    return (0.0 if statistic == "ratio" else -math.inf), math.inf
