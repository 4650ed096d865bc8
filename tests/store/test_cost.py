"""A change costs the same in a small store and in a large one: nothing is rebuilt."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "store.py"


@pytest.mark.slow
def test_the_cost_of_a_change_does_not_grow_with_the_store() -> None:
    spec = importlib.util.spec_from_file_location("benchmark_store", BENCHMARK)
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    small, large = benchmark.change_costs(6_000), benchmark.change_costs(300_000)
    # Fifty times the documents: a rebuild would show as a factor of fifty, a colder cache as less than three.
    assert {name: large[name] / small[name] for name in small if large[name] > 8 * small[name]} == {}
