"""What intervals and tests are made of, against scipy and against closed forms; the intervals: test_clustered.py."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kbgym.analysis import statistics as stats
from kbgym.analysis.statistics import Interval, Sampled, difference, ratio
from kbgym.errors import BadInput


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 20, 33, 135, 4999])
def test_students_t(freedom):
    near = {3: 1.3e-3, 4: 4e-4, 5: 2e-4, 9: 7e-6}.get(freedom, 2e-7)
    assert stats.t_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=near)


def test_the_series_for_students_t_is_the_published_one():
    """Five terms, which agree with nothing else to this many digits."""
    assert stats.t_quantile(3) == pytest.approx(3.178616995054061, rel=1e-12)


def test_excludes_counts_the_ends_as_inside():
    rho = Interval(0.8, 0.7, 1.0)
    assert [stats.excludes(rho, value) for value in (0.69, 0.7, 0.9, 1.0, 1.01)] == [True, False, False, False, True]


def test_numbers_are_checked():
    for treated, base in [([], []), ([1.0, 0.5], [1.0]), ([math.nan], [1.0]), ([[1.0]], [[1.0]])]:
        with pytest.raises(BadInput):
            stats.paired(treated, base)
    assert stats.paired([1, 2], [3, 4]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


counts = arrays(np.float64, st.integers(2, 30), elements=st.integers(1, 15).map(float))


@settings(max_examples=60, deadline=None)
@given(counts, st.integers(0, 9), st.sampled_from([0.5, 2.0, 4.0]))
def test_ratio_properties(base, seed, scale):
    treated = np.random.default_rng(seed).integers(1, 16, base.size).astype(float)
    rho = ratio([Sampled(treated, base)]).interval
    assert 0 < rho.low <= rho.value <= rho.high < math.inf
    scaled = ratio([Sampled(scale * treated, base)]).interval
    assert (scaled.low, scaled.high) == pytest.approx((scale * rho.low, scale * rho.high))


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.5, 1.0])), st.integers(0, 9))
def test_score_properties(base, seed):
    treated = np.random.default_rng(seed).integers(0, 2, base.size).astype(float)
    found = difference([Sampled(treated, base)], scores=True).interval
    assert found.low <= found.value <= found.high and (base.size == 1 or -1 <= found.low <= found.high <= 1)
    assert found.low < found.high, "a sample never proves two stores equal"


def test_break_even():
    assert stats.break_even(18.8e6, 20_000, 14_000) == pytest.approx(3133.33, abs=0.01)
    assert stats.break_even(100, 5, 4.5) == 200
    assert stats.break_even(100, 5, 5) is None
    assert stats.break_even(100, 5, 6) is None


def test_holm():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert stats.holm([0.9, 0.8]) == (1.0, 1.0)
    assert stats.holm([]) == ()
