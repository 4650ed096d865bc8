"""Intervals over keys and seeds: against what is written out by hand, and against simulated experiments."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from kbgym.analysis.statistics import Sampled, difference, enough, ratio, t_tail
from kbgym.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def simulated():
    spec = importlib.util.spec_from_file_location("intervals", ROOT / "benchmarks" / "intervals.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["intervals"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 10, 33, 500])
def test_the_tail_of_students_t(freedom):
    for value in (-3.0, -0.4, 0.0, 0.7, 2.1, 6.0):
        assert t_tail(value, freedom) == pytest.approx(scipy.stats.t.sf(value, freedom), abs=1e-12)


def test_questions_without_common_keys_have_the_plain_t_interval():
    rng = np.random.default_rng(1)
    treated, base = rng.integers(3, 15, 40), rng.integers(3, 15, 40)
    found = difference([Sampled(treated, base)])
    change = treated - base
    low, high = scipy.stats.t.interval(0.95, 39, change.mean(), scipy.stats.sem(change))
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert found.effective == 40 and found.p == pytest.approx(scipy.stats.ttest_rel(treated, base).pvalue)


def test_questions_that_share_a_key_tell_less_and_two_keys_in_common_count_once():
    same = [("job", "city")] * 5
    assert difference([Sampled([1, 2, 3, 4, 5], [0] * 5, same)]).effective == 1
    assert difference([Sampled([1, 2, 3, 4, 5], [0] * 5, same)]).interval.high == math.inf
    chain = [("a", "b"), ("b", "c"), ("c", "d")]  # three pairs of a question with itself, two of neighbours, both ways
    assert difference([Sampled([1, 2, 4], [0, 0, 0], chain)]).effective == pytest.approx(9 / 7)
    three = [("a", "b", "c"), ("a", "b", "c"), ("d",)]
    assert difference([Sampled([1, 2, 4], [0, 0, 0], three)]).effective == pytest.approx(9 / 5)
    rng = np.random.default_rng(2)
    of_keys = np.repeat(rng.normal(size=20), 4)
    keys = [(at // 4,) for at in range(80)]
    alone, shared = (difference([Sampled(of_keys, [0] * 80, some)]).interval for some in ((), keys))
    assert 1.7 < (shared.high - shared.low) / (alone.high - alone.low) < 2.4, "four questions are one, told four times"


def test_a_key_of_another_world_is_another_key():
    keys = [("a",), ("b",)]
    worlds = [Sampled([1, 2], [0, 0], keys), Sampled([3, 5], [0, 0], keys)]
    assert difference(worlds).effective == 4
    assert difference(worlds, apart=False).effective == 2


def test_the_seed_is_the_unit():
    worlds = [Sampled([4.0, 4.0], [8.0, 8.0]), Sampled([9.0] * 2, [9.0] * 2), Sampled([5.0] * 2, [7.0] * 2)]
    found = difference(worlds)
    low, high = scipy.stats.t.interval(0.95, 2, -2, scipy.stats.sem([-4, 0, -2]))
    assert found.freedom == 2 and (found.interval.low, found.interval.high) == pytest.approx((low, high))


def test_seeds_that_all_tie_prove_no_equality():
    worlds = [Sampled([1.0] * 34, [1.0] * 34) for _ in range(10)]
    found = difference(worlds, scores=True).interval
    assert found.low < -0.003 and found.high > 0.003
    costs = ratio([Sampled([7] * 34, [7] * 34)]).interval
    assert (costs.low, costs.high) == pytest.approx((0.9914, 1.0086), abs=2e-4)
    saved = difference([Sampled([7] * 34, [7] * 34) for _ in range(10)]).interval
    assert saved.low < -0.001 and saved.high > 0.001 and saved.value == 0
    one = difference(worlds[:1], scores=True).interval
    assert (one.low, one.high) == pytest.approx((-0.0304, 0.0304), abs=0.002)


def test_a_ratio_turned_upside_down():
    rng = np.random.default_rng(3)
    treated, base = rng.integers(3, 15, 30), rng.integers(3, 15, 30)
    keys = [(int(key),) for key in rng.integers(0, 12, 30)]
    one, other = ratio([Sampled(treated, base, keys)]).interval, ratio([Sampled(base, treated, keys)]).interval
    assert (other.low, other.high) == pytest.approx((1 / one.high, 1 / one.low))
    assert ratio([Sampled([0, 0], [1, 2])]).interval.value == 0


def test_non_inferiority_needs_so_many_questions():
    def p(n: int) -> float:
        return difference([Sampled([1.0] * n, [1.0] * n)], scores=True).p_not_lower(0.03)

    least = next(n for n in range(34, 400) if p(n) <= 0.025)
    assert enough(0.03, least - 1) == pytest.approx(least, abs=2)
    assert 0.97**least < 0.025, "had 3% been lost, so many would hardly all have come out the same"
    keys = [(at // 2,) for at in range(200)]
    assert difference([Sampled([1.0] * 200, [1.0] * 200, keys)], scores=True).p_not_lower(0.03) > 0.025


def test_nothing_comes_of_nothing():
    for wrong in ([], [Sampled([], [])], [Sampled([1.0], [1.0, 2.0])]):
        with pytest.raises(BadInput):
            difference(wrong)
    with pytest.raises(BadInput, match="outside 0 to 1"):
        difference([Sampled([2.0], [1.0])], scores=True)
    with pytest.raises(BadInput, match="zero on every question"):
        ratio([Sampled([1.0], [0.0])])
    with pytest.raises(BadInput, match="not negative"):
        ratio([Sampled([-1.0], [1.0])])
    assert ratio([Sampled([6], [8])]).interval.high == math.inf


@pytest.mark.parametrize("name", ["rho", "F1 difference"])
def test_intervals_hold_the_truth_where_questions_share_keys(simulated, name):
    """A small version of benchmarks/intervals.py: 300 experiments, so that 95% is 91 to 98 with hardly an exception."""
    assert 0.91 <= simulated.coverage(name, 60, 1, 0.5, 300) <= 0.985


def test_without_the_keys_they_would_not(simulated):
    """What is mended: five questions a key, and intervals that take them for independent hold it too seldom."""
    rng = np.random.default_rng(5)
    held = {"with": 0, "without": 0}
    for _ in range(300):
        of_keys = np.repeat(rng.normal(size=30), 5) + 0.3 * rng.normal(size=150)
        keys = [(at // 5,) for at in range(150)]
        for name, some in (("with", keys), ("without", ())):
            found = difference([Sampled(of_keys, np.zeros(150), some)]).interval
            held[name] += found.low <= 0 <= found.high
    assert held["with"] / 300 >= 0.91 and held["without"] / 300 < 0.75


@pytest.mark.parametrize("name", ["rho is not 1", "F1 differs", "F1 not lower by 0.03, where it is"])
def test_tests_keep_their_level(simulated, name):
    level = simulated.TESTS[name][0]
    assert simulated.false_positives(name, 136, 1, 0.5, 300) <= level + 0.035
