"""Intervals and tests: against scipy, against values worked out by hand, and against simulated proofs."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kbgym.analysis import statistics as stats
from kbgym.analysis.statistics import Sampled, difference, ratio, score_interval, t_tail
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
def test_students_t(freedom):
    near = {3: 1.3e-3, 4: 4e-4, 9: 7e-6, 10: 7e-6}.get(freedom, 2e-7)
    assert stats.t_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=near)
    for value in (-3.0, -0.4, 0.0, 0.7, 2.1, 6.0):
        assert t_tail(value, freedom) == pytest.approx(scipy.stats.t.sf(value, freedom), abs=1e-12)


counts = arrays(np.float64, st.integers(6, 30), elements=st.integers(1, 15).map(float))


@settings(max_examples=60, deadline=None)
@given(counts, st.integers(0, 9), st.sampled_from([0.5, 2.0, 4.0]))
def test_ratio_properties(base, seed, scale):
    treated = np.random.default_rng(seed).integers(1, 16, base.size).astype(float)
    rho = ratio([Sampled(treated, base)]).interval
    assert 0 < rho.low <= rho.value <= rho.high < math.inf
    scaled = ratio([Sampled(scale * treated, base)]).interval
    assert (scaled.low, scaled.high) == pytest.approx((scale * rho.low, scale * rho.high))
    turned = ratio([Sampled(base, treated)]).interval
    assert (turned.low, turned.high) == pytest.approx((1 / rho.high, 1 / rho.low))


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.5, 1.0])), st.integers(0, 9))
def test_score_properties(base, seed):
    treated = np.random.default_rng(seed).integers(0, 2, base.size).astype(float)
    found = difference([Sampled(treated, base)], scores=True).interval
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high, "a sample never proves two stores equal"
    turned = difference([Sampled(base, treated)], scores=True).interval
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


@settings(max_examples=80, deadline=None)
@given(st.floats(-1, 1), st.floats(0, 0.3), st.floats(6, 200))
def test_a_score_interval_ends_where_the_test_no_longer_rejects(value, error, effective):
    """Against the definition: the differences that the bounded t-test does not reject, on a grid."""
    low, high = score_interval(value, error, effective, 2.0)
    grid = np.linspace(-1, 1, 4001)
    bound = np.maximum(error, np.sqrt(np.abs(grid) * (1 - np.abs(grid)) / effective))
    kept = grid[np.abs(value - grid) <= 2.0 * bound]
    assert low == pytest.approx(min(kept.min(initial=value), value), abs=1e-3)
    assert high == pytest.approx(max(kept.max(initial=value), value), abs=1e-3)


def test_where_no_answer_changes_the_interval_is_wilsons():
    for n in (20, 100, 400):
        found = difference([Sampled([1.0] * n, [1.0] * n)], scores=True).interval
        t = scipy.stats.t.ppf(0.975, n - 1)
        assert (found.low, found.high) == pytest.approx((-(t**2) / (n + t**2), t**2 / (n + t**2)), rel=1e-5)


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
    chain = [("a", "b"), ("b", "c"), ("c", "d")]  # three pairs of a question with itself, two of neighbours, both ways
    assert difference([Sampled([1, 2, 4], [0, 0, 0], chain)]).effective == pytest.approx(9 / 7)
    three = [("a", "b", "c"), ("a", "b", "c"), ("d",)]
    assert difference([Sampled([1, 2, 4], [0, 0, 0], three)]).effective == pytest.approx(9 / 5)
    rng = np.random.default_rng(2)
    of_keys = np.repeat(rng.normal(size=20), 4)
    keys = [(at // 4,) for at in range(80)]
    alone, shared = (difference([Sampled(of_keys, [0] * 80, some)]).interval for some in ((), keys))
    assert 1.7 < (shared.high - shared.low) / (alone.high - alone.low) < 2.4, "four questions are one, told four times"


def test_the_error_is_the_sum_over_all_pairs_that_share_a_key():
    """Written out: every pair of questions with a common key, each pair once."""
    rng = np.random.default_rng(3)
    keys = [tuple(map(int, some)) for some in rng.integers(0, 60, (80, 2))]
    change = rng.normal(size=80) + rng.normal(size=60)[[one[0] for one in keys]]
    own = change - change.mean()
    share = np.array([[bool({*a} & {*b}) for a in keys] for b in keys])
    sharing = share.sum()
    worth, uneven = 80 * 80 / sharing, 80 * (share.sum(axis=1) ** 2).sum() / sharing**2
    variance = max((own @ own) * 80 / 79, own @ share @ own / (1 - (2 * uneven - 1) / worth))
    found = difference([Sampled(change, np.zeros(80), keys)])
    assert found.error == pytest.approx(math.sqrt(variance) / 80) and found.effective == pytest.approx(worth)
    assert found.freedom == math.floor(worth / uneven - 1) > 5


def test_fewer_than_six_keys_give_no_interval():
    def found(keys, **how):
        of = Sampled([0.5] * 30, [1.0] * 30, [(at % keys,) for at in range(30)])
        return difference([of], scores=True), ratio([of])

    for keys in (1, 5):
        gain, rho = found(keys)
        assert (gain.interval.low, gain.interval.high, gain.p) == (-1, 1, 1)
        assert (rho.interval.low, rho.interval.high, rho.p) == (0, math.inf, 1)
    gain, rho = found(6)
    assert gain.interval.high < 0 and rho.interval.high < 1


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


def test_equal_costs_prove_no_equality():
    costs = ratio([Sampled([7] * 34, [7] * 34)]).interval
    assert (costs.low, costs.high) == pytest.approx((0.9914, 1.0086), abs=2e-4)
    saved = difference([Sampled([7] * 34, [7] * 34) for _ in range(10)]).interval
    assert saved.low < -0.001 and saved.high > 0.001 and saved.value == 0


@pytest.mark.parametrize(
    ("measure", "wrong"),
    [
        (difference, []),
        (difference, [Sampled([], [])]),
        (difference, [Sampled([1.0], [1.0, 2.0])]),
        (difference, [Sampled([math.nan], [1.0])]),
        (lambda worlds: difference(worlds, scores=True), [Sampled([2.0], [1.0])]),
        (ratio, [Sampled([1.0], [0.0])]),
        (ratio, [Sampled([-1.0], [1.0])]),
    ],
)
def test_bad_numbers_are_rejected(measure, wrong):
    with pytest.raises(BadInput):
        measure(wrong)


def test_break_even():
    assert stats.break_even(18.8e6, 20_000, 14_000) == pytest.approx(3133.33, abs=0.01)
    assert stats.break_even(100, 5, 4.5) == 200
    assert stats.break_even(100, 5, 5) is None and stats.break_even(100, 5, 6) is None


def test_holm():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert stats.holm([0.9, 0.8]) == (1.0, 1.0)
    assert stats.holm([]) == ()


CELLS = [(keys, n, common) for keys in (5, 10, 40) for n in (20, 100) for common in (0.0, 0.9)]


@pytest.mark.parametrize(("keys", "n", "common"), CELLS)
def test_simulated_proofs_cover_the_truth_and_seldom_help_wrongly(simulated, keys, n, common):
    """A small version of benchmarks/intervals.py; 600 proofs a cell, so that 93% is 90% with hardly an exception."""
    for change in simulated.LOWER:
        cell = (keys, n, 1, common, change)
        assert simulated.mean(lambda one: simulated.covers_gain(one, -0.05), *cell, times=600) >= 0.91
    assert simulated.mean(simulated.helps, keys, n, 1, common, (0.10, 0.05), times=200) <= 0.05
    for change in simulated.EQUAL:
        cell = (keys, n, 1, common, change)
        assert simulated.mean(lambda one: simulated.covers_gain(one, 0.0), *cell, times=600) >= 0.91


def test_intervals_that_ignore_keys_or_rare_changes_would_fail(simulated):
    """The two mistakes the method avoids: independent questions, and a spread of zero where nothing changed."""
    held = {"keys": [], "bound": []}
    for drawn in simulated.draws(10, 50, 1, 0.9, (0.05, 0.0), 1000):
        means, errors = simulated.gains(drawn)
        t = stats.t_quantile(drawn.clusters.freedom)
        held["bound"].append(np.mean(np.abs(means + 0.05) <= t * errors))
        alone = drawn.change.std(axis=1, ddof=1) / np.sqrt(50)
        held["keys"].append(np.mean(np.abs(means + 0.05) <= 2 * np.maximum(alone, np.sqrt(0.05 * 0.95 / 50))))
    assert np.mean(held["bound"]) < 0.7 and np.mean(held["keys"]) < 0.9
