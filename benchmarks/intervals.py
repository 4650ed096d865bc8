"""Do the report's intervals hold the truth, and do its tests keep their level?
    python benchmarks/intervals.py [--times N]

Simulated experiments with a known truth: questions name two keys out of some hundreds, as in the people benchmark, what
a store does for a key it does in part for all its questions, most scores tie, and worlds differ from seed to seed.
Prints the share of intervals that hold the truth (asked for: 93 to 97%) and the share of false positives of every test
where there is nothing to find (asked for: at most the nominal level and one point).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kbgym.analysis.statistics import Estimate, Sampled, difference, excludes, holm, ratio

Floats = NDArray[np.float64]
MARGIN = 0.03
BUDGET = 15
_LARGE = 200_000  # questions that tell the truth
# Templates: where the two keys of a question come from. 300 people, 50 jobs, 40 hobbies, 20 cities.
_POOLS = {"person": (0, 300), "job": (300, 50), "hobby": (350, 40), "city": (390, 20)}
_TEMPLATES = (("job", "city"), ("job", "hobby"), ("person", "person"), ("person", "job"), ("person", "person"))
_KEYS = 410


class Drawn:
    """The questions of one world: their keys, and numbers that questions with a common key have in part in common."""

    def __init__(self, rng: np.random.Generator, n: int, common: float, seeds_differ: float = 0.0) -> None:
        self.rng, self.n, self.common, self.seeds_differ = rng, n, common, seeds_differ
        template = rng.integers(len(_TEMPLATES), size=n)
        pools = np.array([[_POOLS[kind] for kind in pair] for pair in _TEMPLATES])[template]
        self.keys = pools[:, :, 0] + (pools[:, :, 1] * rng.random((n, 2)) ** 1.2).astype(int)

    def normal(self) -> Floats:
        """Standard normal numbers; the share `common` of their variance comes from the two keys, half from each."""
        by_key = self.rng.normal(size=_KEYS)[self.keys].sum(axis=1) / np.sqrt(2)
        whole = self.seeds_differ * self.rng.normal()
        own = np.sqrt(1 - self.common) * self.rng.normal(size=self.n)
        found: Floats = np.sqrt(self.common) * by_key + own + whole
        return found


def actions(drawn: Drawn, gain: float, ties: float = 0.0) -> tuple[Floats, Floats]:
    """Actions on two stores, skewed, with a spike where the budget ends."""
    hard = 4 * np.exp(0.6 * drawn.normal())
    eased = hard * np.exp(np.log(gain) + 0.4 * drawn.normal())
    eased = np.where(drawn.rng.random(drawn.n) < ties, hard, eased)
    treated, base = (np.clip(np.round(3 + one), 3, BUDGET) for one in (eased, hard))
    if gain == 1.0:  # nothing to find: which store is which is chance, key by key
        swapped = drawn.normal() > 0
        treated, base = np.where(swapped, base, treated), np.where(swapped, treated, base)
    return treated, base


def scores(drawn: Drawn, right: float, gained: float, lost: float) -> tuple[Floats, Floats]:
    """0 or 1 on two stores; of the wrong ones a share is gained, of the right ones a share lost."""
    limit = NormalDist().inv_cdf
    base = drawn.normal() < limit(right)
    turn = drawn.normal()
    treated = np.where(base, turn >= (limit(lost) if lost else -np.inf), turn < (limit(gained) if gained else -np.inf))
    return treated.astype(float), base.astype(float)


Draw = Callable[[Drawn], tuple[Floats, Floats]]


def sampled(drawn: Drawn, draw: Draw) -> Sampled:
    treated, base = draw(drawn)
    return Sampled(treated, base, [tuple(pair) for pair in drawn.keys.tolist()])


def experiments(draw: Draw, n: int, seeds: int, common: float, times: int) -> list[list[Sampled]]:
    """Experiments of so many seeds; worlds of several seeds differ."""
    rng = np.random.default_rng(n + 1000 * seeds)
    differ = 0.3 if seeds > 1 else 0.0
    return [[sampled(Drawn(rng, n, common, differ), draw) for _ in range(seeds)] for _ in range(times)]


def truth(draw: Draw, common: float, seeds: int, measure: Callable[[Floats, Floats], float]) -> float:
    """Over very many worlds of few questions: what further worlds would show."""
    rng = np.random.default_rng(99)
    differ = 0.3 if seeds > 1 else 0.0
    arms = [draw(Drawn(rng, 200, common, differ)) for _ in range(_LARGE // 200)]
    return measure(*(np.concatenate(arm) for arm in zip(*arms, strict=True)))


def rho(one: list[Sampled]) -> Estimate:
    return ratio(one)


def f1(one: list[Sampled]) -> Estimate:
    return difference(one, scores=True)


RATIO = (rho, lambda treated, base: float(treated.mean() / base.mean()))
F1 = (f1, lambda treated, base: float(treated.mean() - base.mean()))
INTERVALS: dict[str, tuple[tuple, Draw]] = {
    "rho": (RATIO, lambda drawn: actions(drawn, 0.6)),
    "rho, half of the questions tie": (RATIO, lambda drawn: actions(drawn, 0.6, 0.5)),
    "F1 difference": (F1, lambda drawn: scores(drawn, 0.7, 0.6, 0.05)),
    "F1 difference, four of five questions tie": (F1, lambda drawn: scores(drawn, 0.7, 0.4, 0.1)),
}
SHAPES = ((34, 1), (136, 1), (136, 3), (34, 10))  # questions, seeds


def coverage(name: str, n: int, seeds: int, common: float, times: int) -> float:
    """The share of experiments whose interval holds the truth."""
    (estimate, measure), draw = INTERVALS[name]
    wanted = truth(draw, common, seeds, measure)
    found = (estimate(one).interval for one in experiments(draw, n, seeds, common, times))
    return sum(not excludes(one, wanted) for one in found) / times


def false_positives(name: str, n: int, seeds: int, common: float, times: int) -> float:
    """The share of experiments in which a test finds what is not there."""
    draw, is_found = TESTS[name][1:]
    return sum(map(is_found, experiments(draw, n, seeds, common, times))) / times


def _any_of_five(one: list[Sampled]) -> bool:
    """Five tests of as many groups, Holm-adjusted; the groups share worlds and keys."""
    parts = [[Sampled(s.treated[g::5], s.base[g::5], s.keys[g::5]) for s in one] for g in range(5)]
    return min(holm([rho(part).p for part in parts])) <= 0.05


# level, what is drawn, whether something was found
TESTS: dict[str, tuple[float, Draw, Callable[[list[Sampled]], bool]]] = {
    "rho is not 1": (0.05, lambda drawn: actions(drawn, 1.0), lambda one: rho(one).p <= 0.05),
    "any of five rho is not 1, Holm": (0.05, lambda drawn: actions(drawn, 1.0), _any_of_five),
    "F1 differs": (0.05, lambda drawn: scores(drawn, 0.8, 0.2, 0.05), lambda one: f1(one).p <= 0.05),
    "F1 differs, 98 of 100 questions tie": (
        0.05, lambda drawn: scores(drawn, 0.9, 0.1, 0.1 / 9), lambda one: f1(one).p <= 0.05,
    ),
    "F1 not lower by 0.03, where it is": (
        0.025, lambda drawn: scores(drawn, 1 - 1e-12, 0.0, MARGIN), lambda one: f1(one).p_not_lower(MARGIN) <= 0.025,
    ),
    "the same, where some are gained": (
        0.025, lambda drawn: scores(drawn, 0.8, 0.1, 0.0625), lambda one: f1(one).p_not_lower(MARGIN) <= 0.025,
    ),
}  # fmt: skip
COMMON = (0.0, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=4000)
    times = parser.parse_args().times
    for title, names, measure in (
        ("share of 95% intervals that hold the truth", list(INTERVALS), coverage),
        ("share of false positives", list(TESTS), false_positives),
    ):
        heads = [f"n = {n}" if seeds == 1 else f"{seeds} seeds of {n}" for n, seeds in SHAPES]
        print(f"\n{times:,} experiments a cell, {title}; in common: share of the variance that keys explain.")
        print(f"Chance alone moves a share near 5% by {1.96 * (0.05 * 0.95 / times) ** 0.5:.1%} either way.\n")
        print(f"| | in common | {' | '.join(heads)} |\n| --- | ---: |{' ---: |' * len(heads)}")
        for name in names:
            level = f", nominal {TESTS[name][0]:.1%}" if name in TESTS else ""
            for common in COMMON:
                shares = [f"{measure(name, n, seeds, common, times):.1%}" for n, seeds in SHAPES]
                print(f"| {name}{level} | {common:.1f} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
