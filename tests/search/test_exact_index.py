"""The exact index equals brute force in float64, in every order of insertion, on every page."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from numpy.typing import NDArray

from kbgym.errors import BadInput
from kbgym.search.index import ExactIndex, Hit

Rows = NDArray[np.float32]


def unit(rows: NDArray[np.float64]) -> Rows:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def brute(ids: list[str], rows: Rows, query: Rows) -> list[str]:
    """Every id in order, by correctly rounded sums of exact products."""
    score = {
        id: math.fsum(float(a) * float(b) for a, b in zip(row, query, strict=True))
        for id, row in zip(ids, rows, strict=True)
    }
    return sorted(ids, key=lambda id: (-score[id], id))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[str], Rows, Rows]:
    """Few distinct coordinates, so that equal vectors and equal scores of unequal vectors are common."""
    dimensions = draw(st.integers(1, 6))
    coordinate = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
    row = st.lists(coordinate, min_size=dimensions, max_size=dimensions)
    rows = np.array(draw(st.lists(row, min_size=1, max_size=25)), dtype=np.float32)
    ids = draw(st.permutations([f"d{number}" for number in range(len(rows))]))
    return list(ids), rows, np.array(draw(row), dtype=np.float32)


def pages(index: ExactIndex, query: Rows, size: int) -> list[Hit]:
    found: list[Hit] = []
    while page := index.search(query, len(found), size):
        found.extend(page)
    return found


@given(worlds(), st.integers(1, 7), st.randoms(use_true_random=False))
def test_every_page_is_brute_force_for_any_insertion_order(
    world: tuple[list[str], Rows, Rows], size: int, source: random.Random
) -> None:
    ids, rows, query = world
    expected = brute(ids, rows, query)
    for _ in range(2):
        index = ExactIndex()
        for place in source.sample(range(len(ids)), len(ids)):
            index.put(ids[place], rows[place])
        assert [id for id, _ in pages(index, query, size)] == expected
        assert [id for id, _ in index.search(query, 0, len(ids) + 5)] == expected


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-8, 1e-7, 1e-6, 1e-3]), st.integers(0, 300))
def test_close_calls_are_decided_exactly(seed: int, noise: float, offset: int) -> None:
    """Rows that differ by less than float32 products can tell, copies among them, in the model's dimension."""
    source = np.random.default_rng(seed)
    base = source.standard_normal((1, 384))
    rows = unit(np.repeat(base, 300, axis=0) + noise * source.standard_normal((300, 384)))
    rows[source.integers(0, 300, 60)] = rows[source.integers(0, 300, 60)]
    ids = [f"d{number}" for number in source.permutation(300)]
    query = unit(base + 0.1 * source.standard_normal((1, 384)))[0]
    index = ExactIndex()
    index.put_many(ids, rows)
    # The index sums exact products pairwise: the last bit may differ from the correctly rounded sum, and nothing more.
    exact = {id: float((row.astype(np.float64) * query).sum()) for id, row in zip(ids, rows, strict=True)}
    expected = sorted(((id, exact[id]) for id in ids), key=lambda hit: (-hit[1], hit[0]))
    assert index.search(query, offset, 7) == expected[offset : offset + 7]
    rounded = {id: math.fsum((row.astype(np.float64) * query).tolist()) for id, row in zip(ids, rows, strict=True)}
    assert max(abs(rounded[id] - exact[id]) for id in ids) < 1e-15


def test_a_score_does_not_depend_on_where_its_row_lies() -> None:
    rows = unit(np.random.default_rng(1).standard_normal((500, 384)))
    query = rows[0] + rows[1]
    together = ExactIndex()
    together.put_many([str(number) for number in range(500)], rows)
    for id, score in together.search(query, 0, 500):
        alone = ExactIndex()
        alone.put(id, rows[int(id)])
        assert alone.search(query, 0, 1) == [(id, score)]


class Edits(RuleBasedStateMachine):
    """Any sequence of puts, replacements and removals: the index holds what a plain dictionary holds."""

    def __init__(self) -> None:
        super().__init__()
        self.index = ExactIndex()
        self.model: dict[str, Rows] = {}

    @rule(
        ids=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4),
        values=st.lists(st.integers(-2, 2), min_size=12),
    )
    def put(self, ids: list[str], values: list[int]) -> None:
        rows = np.array(values[: len(ids) * 3], dtype=np.float32).reshape(len(ids), 3)
        self.index.put_many(ids, rows)
        self.model.update(zip(ids, rows, strict=True))

    @rule(id=st.sampled_from("abcdefgh"))
    def remove(self, id: str) -> None:
        if id in self.model:
            self.index.remove(id)
            del self.model[id]
        else:
            with pytest.raises(KeyError):
                self.index.remove(id)

    @invariant()
    def same(self) -> None:
        assert len(self.index) == len(self.model)
        assert all((id in self.index) == (id in self.model) for id in "abcdefgh")
        if self.model:
            query = np.array([1, 0.5, -1], dtype=np.float32)
            found = [id for id, _ in pages(self.index, query, 3)]
            assert found == brute(list(self.model), np.array(list(self.model.values())), query)


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=40, stateful_step_count=30)


def test_pages_past_the_end_and_impossible_pages() -> None:
    index = ExactIndex()
    assert index.search([1.0, 0.0], 0, 5) == []
    index.put("a", [1.0, 0.0])
    assert index.search([1.0, 0.0], 0, 5) == [("a", 1.0)]
    assert index.search([1.0, 0.0], 1, 5) == index.search([1.0, 0.0], 10**9, 5) == index.search([1.0, 0.0], 0, 0) == []
    for offset, limit in ((-1, 5), (0, -5)):
        with pytest.raises(BadInput, match="no page"):
            index.search([1.0, 0.0], offset, limit)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda index: index.put("b", [1.0, 2.0, 3.0]),
        lambda index: index.put("b", [1.0, math.nan]),
        lambda index: index.put_many(["b", "c"], [[1.0, 0.0], [math.inf, 0.0]]),
        lambda index: index.put_many(["b", "c"], [[1.0, 0.0]]),
        lambda index: index.search([1.0, 2.0, 3.0], 0, 5),
        lambda index: index.search([math.nan, 0.0], 0, 5),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(attempt: Callable[[ExactIndex], object]) -> None:
    index = ExactIndex()
    index.put("a", [1.0, 0.0])
    with pytest.raises(BadInput):
        attempt(index)
    assert len(index) == 1
    assert index.search([1.0, 0.0], 0, 5) == [("a", 1.0)]


def test_an_edit_touches_a_few_rows_however_large_the_index() -> None:
    """No rebuild: what one put and one remove allocate does not grow with the index."""
    for count in (1_000, 50_000):
        index = ExactIndex()
        index.put_many([str(number) for number in range(count)], np.ones((count, 32), dtype=np.float32))
        index.put("first", np.ones(32))  # which may make room for more
        tracemalloc.start()
        index.put("new", np.ones(32))
        index.put("7", np.zeros(32))
        index.remove("3")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20_000


def test_an_array_given_away_is_not_copied_and_one_that_is_lent_never_changes() -> None:
    given, lent = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)
    for rows, own in ((given, True), (lent, False)):
        index = ExactIndex()
        index.put_many(["a", "b", "c"], rows, own=own)
        assert np.shares_memory(index._matrix, rows) is own
        index.put("d", [0.5, 0.5, 0.5])
        index.remove("a")
        index.put("b", [1.0, 1.0, 0.0])
        assert [id for id, _ in index.search([1.0, 0.5, 0.0], 0, 5)] == ["b", "d", "c"]
    assert lent.tobytes() == np.eye(3, dtype=np.float32).tobytes()
    twice = ExactIndex()
    twice.put_many(["a", "a"], np.eye(2, dtype=np.float32), own=True)
    assert twice.search([0.0, 1.0], 0, 5) == [("a", 1.0)]
