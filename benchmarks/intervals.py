"""Coverage of the intervals and false positives of the verdict, in simulated proofs with a known truth.

    python benchmarks/intervals.py [--times N]

A proof asks n questions about a few keys (or pages) on two stores. With correlation c, two questions of a key have the
same fate with probability c. Changes of answers are rare: the true F1 difference is -0.05 or 0. On the trained store
actions fall to about 0.66 of the flat store's, so that "helps" depends on accuracy alone. Questions of the last rows
name two keys, as in the people benchmark. Prints the smallest coverage (asked for: at least 93%) and the largest share
of false "helps" (asked for: at most 5%) over the shapes of change, for every cell. Intervals and words are those of
`kbgym.analysis`: the same functions, on many samples at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbgym.analysis.statistics import EQUAL_COSTS, Clusters, Estimate, clusters_of, score_interval, t_quantile
from kbgym.analysis.verdict import accuracy_of, word_of

Floats = NDArray[np.float64]
LOWER = ((0.05, 0.0), (0.06, 0.01), (0.10, 0.05), (0.20, 0.15))  # shares of answers lost and gained: -0.05 in all
EQUAL = ((0.0, 0.0), (0.02, 0.02), (0.10, 0.10), (0.30, 0.30))
KEYS, SIZES, CORRELATIONS = (5, 10, 20, 40), (20, 50, 100), (0.0, 0.3, 0.6, 0.9)
SAVED, LAYOUTS = 0.66, 10


class Sample(NamedTuple):
    """Many proofs of the same layout of questions: a row a proof, a column a question."""

    clusters: Clusters
    change: Floats  # of F1
    trained: Floats  # actions
    flat: Floats


def layout(rng: np.random.Generator, keys: int, n: int, named: int) -> NDArray[np.intp]:
    return rng.integers(keys, size=(n, named))


def fate(rng: np.random.Generator, of: NDArray[np.intp], keys: int, times: int, common: float) -> Floats:
    """Uniform numbers, a row a proof; with the square root of `common` a question has that of one of its keys."""
    n, named = of.shape
    by_key = rng.random((times, keys))[:, of[np.arange(n), rng.integers(named, size=n)]]
    found: Floats = np.where(rng.random((times, n)) < np.sqrt(common), by_key, rng.random((times, n)))
    return found


def sample(
    rng: np.random.Generator, keys: int, n: int, named: int, common: float, change: tuple[float, float], times: int
) -> Sample:
    of = layout(rng, keys, n, named)
    lost, gained = change
    drawn = fate(rng, of, keys, times, common)
    scores = np.where(drawn < lost, -1.0, np.where(drawn > 1 - gained, 1.0, 0.0))
    hard, eased = (fate(rng, of, keys, times, common) for _ in range(2))
    flat = np.round(4 + 10 * hard)
    trained = np.maximum(2.0, np.round(flat * SAVED * (0.7 + 0.6 * eased)))
    return Sample(clusters_of(tuple((0, *row) for row in of.tolist())), scores, trained, flat)


def gains(drawn: Sample) -> tuple[Floats, Floats]:
    means = drawn.change.mean(axis=1)
    return means, drawn.clusters.error(drawn.change - means[:, None])


def ratios(drawn: Sample) -> tuple[Floats, Floats]:
    above, below = drawn.trained.mean(axis=1), drawn.flat.mean(axis=1)
    return above / below, drawn.clusters.error(
        drawn.trained / above[:, None] - drawn.flat / below[:, None], EQUAL_COSTS
    )


def covers_gain(drawn: Sample, truth: float) -> float:
    """The share of intervals of the F1 difference that hold the truth."""
    clusters, (means, errors) = drawn.clusters, gains(drawn)
    if not clusters.freedom:
        return 1.0
    low, high = score_interval(means, errors, clusters.effective, t_quantile(clusters.freedom))
    return float(((low <= truth) & (truth <= high)).mean())


def covers_rho(drawn: Sample, truth: float) -> float:
    clusters, (found, errors) = drawn.clusters, ratios(drawn)
    if not clusters.freedom:
        return 1.0
    return float((np.abs(np.log(found / truth)) <= t_quantile(clusters.freedom) * errors).mean())


def helps(drawn: Sample) -> float:
    """The share of proofs whose verdict is "helps"."""
    clusters, n = drawn.clusters, drawn.change.shape[1]
    found = 0
    for mean, error, rho, spread in zip(*gains(drawn), *ratios(drawn), strict=True):
        gain = Estimate(mean, error, clusters.freedom, n, clusters.effective, False, True)
        actions = Estimate(rho, spread, clusters.freedom, n, clusters.effective, True)
        found += word_of(actions, gain, accuracy_of(gain)) == "helps"
    return found / len(drawn.change)


def true_rho(rng: np.random.Generator) -> float:
    drawn = sample(rng, 400_000, 400_000, 1, 0.0, (0.0, 0.0), 1)
    return float(drawn.trained.mean() / drawn.flat.mean())


def draws(keys: int, n: int, named: int, common: float, change: tuple[float, float], times: int) -> Iterator[Sample]:
    """Samples of several layouts, always the same ones for a cell."""
    rng = np.random.default_rng([keys, n, named, int(100 * common), int(100 * change[0]), int(100 * change[1])])
    for _ in range(LAYOUTS):
        yield sample(rng, keys, n, named, common, change, max(1, times // LAYOUTS))


def mean(of: Callable[[Sample], float], *cell: object, times: int) -> float:
    return float(np.mean([of(drawn) for drawn in draws(*cell, times)]))  # type: ignore[arg-type]


def table(title: str, worst: Callable[[int, int, int, float], float]) -> None:
    heads = [f"n {n}, c {common:g}" for n in SIZES for common in CORRELATIONS]
    print(f"\n{title}\n\n| keys | {' | '.join(heads)} |\n| --- |{' ---: |' * len(heads)}")
    for named in (1, 2):
        for keys in KEYS:
            cells = [f"{worst(keys, n, named, common):.1%}" for n in SIZES for common in CORRELATIONS]
            print(f"| {keys}{', two a question' if named > 1 else ''} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2000, help="Proofs a cell and shape of change.")
    times = parser.parse_args().times
    rho = true_rho(np.random.default_rng(0))
    print(
        f"{times:,} proofs a cell and shape of change; n questions, c the correlation of questions with a common key."
    )

    def lowest(truth: float, shapes: tuple[tuple[float, float], ...]) -> Callable[[int, int, int, float], float]:
        return lambda *cell: min(
            mean(lambda one: covers_gain(one, truth), *cell, shape, times=times) for shape in shapes
        )

    table("Coverage of the 95% interval of the F1 difference, true difference -0.05, the worst of four shapes",
          lowest(-0.05, LOWER))  # fmt: skip
    table("The same, true difference 0, the worst of four shapes", lowest(0.0, EQUAL))
    table(f"Coverage of the 95% interval of rho, true rho {rho:.2f}",
          lambda *cell: mean(lambda one: covers_rho(one, rho), *cell, EQUAL[0], times=times))  # fmt: skip
    few = max(100, times // 4)
    table(f'False "helps", true F1 difference -0.05, true rho {rho:.2f}, the worst of four shapes ({few:,} proofs)',
          lambda *cell: max(mean(helps, *cell, shape, times=few) for shape in LOWER))  # fmt: skip


if __name__ == "__main__":
    main()
