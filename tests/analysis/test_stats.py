"""The statistics against scipy, against closed forms, and against simulated exams whose true answer is known."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kbgym.analysis import stats
from kbgym.analysis.stats import Interval
from kbgym.errors import BadInput

FEW = 999


def exam(seed: int, n: int, gain: float = 0.75) -> tuple[np.ndarray, np.ndarray]:
    """Action counts of n questions on two stores: skewed, 3 to 15, with a spike where the budget ends."""
    rng = np.random.default_rng(seed)
    hardness = rng.gamma(2.0, 3.0, n)
    base = np.clip(np.round(3 + hardness + rng.normal(0, 1, n)), 3, 15)
    treated = np.clip(np.round(3 + gain * hardness + rng.normal(0, 1.5, n)), 3, 15)
    return treated, base


def scores(seed: int, n: int, right: float, gain: float, loss: float, partial: float) -> tuple[np.ndarray, np.ndarray]:
    """F1 of n questions on two stores: mostly 0 or 1, the treated store turning some right and some wrong."""
    rng = np.random.default_rng(seed)
    base = (rng.random(n) < right).astype(float)
    turn = rng.random(n)
    treated = np.where(base == 0, turn < gain, turn >= loss).astype(float)
    for arm in (treated, base):
        some = rng.random(n) < partial
        arm[some] = rng.choice([0.4, 0.5, 2 / 3, 0.8], some.sum())
    return treated, base


def ratio(treated: np.ndarray, base: np.ndarray, axis: int = -1) -> np.ndarray:
    return treated.mean(axis=axis) / base.mean(axis=axis)


def difference(treated: np.ndarray, base: np.ndarray, axis: int = -1) -> np.ndarray:
    return treated.mean(axis=axis) - base.mean(axis=axis)


@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_close_to_scipy_on_a_large_sample(method):
    treated, base = exam(1, 400)
    found = stats.ratio_of_means(treated, base)
    expected = scipy.stats.bootstrap(
        (treated, base), ratio, paired=True, method=method, n_resamples=10_000, random_state=np.random.default_rng(5)
    ).confidence_interval
    width = expected.high - expected.low
    assert found.value == pytest.approx(ratio(treated, base))
    assert found.low == pytest.approx(expected.low, abs=0.05 * width)
    assert found.high == pytest.approx(expected.high, abs=0.05 * width)


@pytest.mark.parametrize("size", [2, 3, 5, 12, 34, 5000])
def test_the_tails_move_out_by_t_and_by_the_missing_degree_of_freedom(size):
    """On resamples that are 0 to 1 in even steps, the ends of the interval are the tails themselves."""
    steps = 1_000_000
    found = stats.interval(0.5, np.arange(steps + 1) / steps, size)
    free = size - 1
    tail = scipy.stats.norm.cdf(-math.sqrt(size / free) * scipy.stats.t.ppf(0.975, free))
    assert found.low == pytest.approx(tail, rel=0.02, abs=2 / steps)
    assert found.high == pytest.approx(1 - found.low, abs=2 / steps), "both ends are rounded outwards"


def test_an_interval_ends_at_resamples_and_holds_its_value():
    few = np.array([1.0, 2.0, 3.0, math.inf])
    assert stats.interval(2.5, few, 30) == Interval(2.5, 1.0, math.inf)
    assert stats.interval(0.5, few[:3], 30) == Interval(0.5, 0.5, 3.0)
    assert stats.interval(4.0, few[:3], 30) == Interval(4.0, 1.0, 4.0)
    assert stats.interval(2.0, few[:3], 1) == Interval(2.0, 1.0, 3.0), "no freedom left: the whole range"


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 20, 33, 135, 4999])
def test_students_t(freedom):
    near = {3: 1.3e-3, 4: 4e-4, 5: 2e-4, 9: 7e-6}.get(freedom, 2e-7)
    assert stats.t_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=near)


def test_a_ratio_resamples_its_base_too():
    """Where the arms rise and fall together the ratio hardly moves; a fixed denominator would hide that."""
    _, base = exam(4, 60)
    assert stats.ratio_of_means(0.5 * base, base) == Interval(0.5, pytest.approx(0.5), pytest.approx(0.5))
    shuffled = np.random.default_rng(0).permutation(base)
    paired = stats.ratio_of_means(0.9 * base + 0.1 * shuffled, base)
    unpaired = stats.ratio_of_means(shuffled, base)
    assert paired.high - paired.low < 0.3 * (unpaired.high - unpaired.low)


def held(kind, population, n: int, simulations: int = 1000) -> float:
    """The share of simulated samples whose interval holds the population's value."""
    treated, base = population
    measure, truth = kind
    rng = np.random.default_rng(11)
    draws = (rng.integers(0, treated.size, n) for _ in range(simulations))
    found = (measure(treated[draw], base[draw], FEW, seed) for seed, draw in enumerate(draws))
    return sum(each.low <= truth(treated, base) <= each.high for each in found) / simulations


RHO = (stats.ratio_of_means, ratio)
F1 = (stats.score_difference, difference)
MEAN = (
    lambda treated, _, resamples, seed: stats.mean_score(treated, resamples, seed),
    lambda treated, _: treated.mean(),
)


@pytest.mark.slow
@pytest.mark.parametrize("n", [34, 68, 136])
@pytest.mark.parametrize(
    "kind, population",
    [
        pytest.param(RHO, exam(0, 20_000), id="rho"),
        pytest.param(RHO, exam(1, 20_000, gain=1.0), id="rho about 1"),
        pytest.param(RHO, exam(2, 20_000, gain=0.4), id="rho far below 1"),
        pytest.param(F1, scores(0, 20_000, 0.62, 0.8, 0.02, 0.05), id="F1 rises"),
        pytest.param(F1, scores(1, 20_000, 0.75, 0.3, 0.1, 0.05), id="F1 stays"),
        pytest.param(F1, scores(2, 20_000, 0.8, 0.1, 0.15, 0.05), id="F1 falls"),
        pytest.param(MEAN, scores(3, 20_000, 0.7, 0.0, 0.0, 0.05), id="mean F1"),
    ],
)
def test_95_in_100_intervals_hold_the_truth(kind, population, n):
    assert 0.93 <= held(kind, population, n) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("n", [34, 136])
def test_arms_that_hardly_ever_disagree_are_not_called_equal_too_soon(n):
    rare = scores(4, 20_000, 0.97, 0.3, 0.01, 0.0)
    assert held(F1, rare, n) >= 0.95


def test_excludes_counts_the_ends_as_inside():
    rho = Interval(0.8, 0.7, 1.0)
    assert [stats.excludes(rho, value) for value in (0.69, 0.7, 0.9, 1.0, 1.01)] == [True, False, False, False, True]


@pytest.mark.parametrize("measure", [stats.ratio_of_means, stats.score_difference])
def test_nothing_comes_of_nothing(measure):
    for treated, base in [([], []), ([1.0, 0.5], [1.0]), ([math.nan], [1.0]), ([[1.0]], [[1.0]])]:
        with pytest.raises(BadInput):
            measure(treated, base)
    with pytest.raises(BadInput):
        measure([1.0, 1.0], [1.0, 0.5], resamples=0)


def test_degenerate_samples():
    assert stats.ratio_of_means([6], [8]) == Interval(0.75, 0.0, math.inf)
    assert stats.ratio_of_means([3] * 9, [4] * 9) == Interval(0.75, 0.75, 0.75)
    one = stats.mean_score([1.0])
    assert one.value == one.high == 1.0 and one.low == 0.0
    swing = stats.score_difference([1.0], [0.0])
    assert -1.0 <= swing.low < 0.5 and swing.value == swing.high == 1.0
    with pytest.raises(BadInput, match="zero on every question"):
        stats.ratio_of_means([1, 2], [0, 0])
    with pytest.raises(BadInput, match="not negative"):
        stats.ratio_of_means([1, -2], [1, 2])
    for outside in ([1, 1.001], [-0.001, 1]):
        with pytest.raises(BadInput, match="outside 0 to 1"):
            stats.score_difference(outside, [1, 1])
        with pytest.raises(BadInput, match="outside 0 to 1"):
            stats.mean_score(outside)
    assert stats.ratio_of_means([1, 1], [0, 1]).high == math.inf, "half of the resamples have no base"


def test_the_same_seed_gives_the_same_bytes_and_batches_do_not_matter(monkeypatch):
    treated, base = exam(6, 50)
    first = stats.ratio_of_means(treated, base, seed=7)
    assert first == stats.ratio_of_means(treated, base, seed=7)
    assert first != stats.ratio_of_means(treated, base, seed=8)
    for cells in (1_234, 1):
        monkeypatch.setattr(stats, "_CELLS", cells)
        assert first == stats.ratio_of_means(treated, base, seed=7)


def test_whoever_gives_no_seed_gets_the_first_and_one_resample_is_enough():
    treated, base = scores(3, 80, 0.6, 0.4, 0.2, 0.2)
    for measure in (stats.ratio_of_means, stats.score_difference, stats.sign_flip):
        assert measure(treated, base) == measure(treated, base, seed=0) != measure(treated, base, seed=1)
        measure(treated, base, resamples=1)
    assert stats.mean_score(treated) == stats.mean_score(treated, seed=0) != stats.mean_score(treated, seed=1)


def test_anything_over_zero_is_infinite():
    assert list(stats.divide(np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 2.0]))) == [math.inf, math.inf, 0.5]


def test_memory_is_bounded():
    treated, base = exam(7, 5_000)
    tracemalloc.start()
    stats.ratio_of_means(treated, base, resamples=400)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6, "one draw of all resamples at once would take 10,000 x 5,000 x 8 bytes and more"


counts = arrays(np.float64, st.integers(2, 30), elements=st.integers(1, 15).map(float))


@settings(max_examples=60, deadline=None)
@given(counts, st.integers(0, 9), st.sampled_from([0.5, 2.0, 4.0]))
def test_ratio_properties(base, seed, scale):
    treated = np.random.default_rng(seed).integers(1, 16, base.size).astype(float)
    rho = stats.ratio_of_means(treated, base, 200, seed)
    assert 0 < rho.low <= rho.value <= rho.high < math.inf
    scaled = stats.ratio_of_means(scale * treated, base, 200, seed)
    assert scaled == Interval(scale * rho.value, scale * rho.low, scale * rho.high)
    swapped = stats.ratio_of_means(base, treated, 200, seed)
    assert (swapped.value, swapped.low, swapped.high) == pytest.approx((1 / rho.value, 1 / rho.high, 1 / rho.low))


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.5, 1.0])), st.integers(0, 9))
def test_score_properties(base, seed):
    treated = np.random.default_rng(seed).integers(0, 2, base.size).astype(float)
    for found in (stats.score_difference(treated, base, 200, seed), stats.mean_score(base, 200, seed)):
        assert -1 <= found.low <= found.value <= found.high <= 1
    found = stats.mean_score(base, 200, seed)
    assert found.low >= 0 and found.low < found.high, "a sample never proves a score certain"


def test_break_even():
    assert stats.break_even(18.8e6, 20_000, 14_000) == pytest.approx(3133.33, abs=0.01)
    assert stats.break_even(100, 5, 4.5) == 200
    assert stats.break_even(100, 5, 5) is None
    assert stats.break_even(100, 5, 6) is None


def test_sign_flip_against_scipy():
    treated, base = exam(10, 12, gain=0.6)
    ours = stats.sign_flip(treated, base)
    theirs = scipy.stats.permutation_test(
        (treated, base), difference, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    assert ours == pytest.approx(theirs.pvalue)
    wins = stats.sign_flip([1] * 9 + [0], [0] * 9 + [1])
    assert wins == pytest.approx(scipy.stats.binomtest(9, 10).pvalue), "on wins and losses it is the sign test"
    many = stats.sign_flip([1] * 20 + [0] * 8 + [1] * 9, [0] * 20 + [1] * 8 + [1] * 9)
    assert many == pytest.approx(scipy.stats.binomtest(20, 28).pvalue, abs=0.01)
    assert stats.sign_flip([1, 2], [1, 2]) == stats.sign_flip([1, 0, 1], [0, 1, 1]) == 1.0


@pytest.mark.parametrize("resamples", [99, 999])
def test_a_sampled_p_value_counts_the_observed_swap_itself(resamples):
    """Forty questions that all went one way: no random swap comes near, and the p-value still is not zero."""
    assert stats.sign_flip([2.0] * 40, [1.0] * 40, resamples) == 1 / (resamples + 1)
    assert stats.sign_flip([1.0, 0.0] * 20, [0.0, 1.0] * 20, resamples) == 1.0, (
        "every swap is at least as far from none"
    )


def test_a_few_pairs_are_swapped_in_every_way():
    assert stats.sign_flip([2.0] * 16, [1.0] * 16, 1) == 2 / 2**16
    assert stats.sign_flip([2.0] * 3 + [5.0] * 9, [1.0] * 3 + [5.0] * 9, 1) == 2 / 2**3, "equal pairs do not count"
    assert stats.sign_flip([2.0] * 17, [1.0] * 17, 1) in (0.5, 1.0), "above sixteen they are drawn"


def test_holm():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert stats.holm([0.9, 0.8]) == (1.0, 1.0)
    assert stats.holm([]) == ()
