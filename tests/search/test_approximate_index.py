"""The approximate index: every page is the exact index's where it answers exactly, and close to it where graphs do."""

from __future__ import annotations

import math
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from numpy.typing import NDArray

from kbgym.backends.hnsw import approximate, graph
from kbgym.errors import BadInput, Missing
from kbgym.search.index import ExactIndex, Hit, VectorIndex

# Not importorskip: importing usearch before onnxruntime crashes the process.
pytestmark = pytest.mark.skipif(not graph.installed(), reason="the scale extra is not installed")

Rows = NDArray[np.float32]


def unit_rows(count: int, seed: int, dimensions: int = 32) -> Rows:
    """Rows around a few hundred centres, as sentences lie around their subjects."""
    source = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((200, dimensions))
    rows = centres[source.integers(0, 200, count)] + 0.7 * source.standard_normal((count, dimensions))
    unit: Rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def pages(index: VectorIndex, query: Rows, size: int) -> list[Hit]:
    found: list[Hit] = []
    while page := index.search(query, len(found), size):
        found.extend(page)
    return found


class Edits(RuleBasedStateMachine):
    """Any sequence of puts, replacements and removals, with so few fresh rows that most are in a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.index = approximate.ApproximateIndex(3, fresh=2)
        self.model = ExactIndex(3)

    @rule(
        ids=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4),
        values=st.lists(st.integers(-2, 2), min_size=12),
    )
    def put(self, ids: list[str], values: list[int]) -> None:
        rows = np.array(values[: len(ids) * 3], dtype=np.float32).reshape(len(ids), 3)
        self.index.put_many(ids, rows)
        self.model.put_many(ids, rows)

    @rule(id=st.sampled_from("abcdefgh"))
    def remove(self, id: str) -> None:
        if id in self.model:
            self.index.remove(id)
            self.model.remove(id)
        else:
            with pytest.raises(KeyError):
                self.index.remove(id)

    @rule(size=st.integers(1, 5), values=st.lists(st.integers(-2, 2), min_size=3, max_size=3))
    def search(self, size: int, values: list[int]) -> None:
        query = np.array(values, dtype=np.float32)
        assert pages(self.index, query, size) == pages(self.model, query, size)

    @invariant()
    def same(self) -> None:
        assert len(self.index) == len(self.model)
        for id in "abcdefgh":
            assert (id in self.index) == (id in self.model)
            if id in self.model:
                assert self.index.vector(id).tobytes() == self.model.vector(id).tobytes()


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=40, stateful_step_count=30)


class GraphEdits(RuleBasedStateMachine):
    """The same on graphs narrower than the index: what is put is found, what is removed is not, scores are exact."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = unit_rows(400, 7, 8)
        self.index = approximate.ApproximateIndex(8, fresh=16, width=32)
        self.model = ExactIndex(8)
        for index in (self.index, self.model):
            index.put_many([f"d{n}" for n in range(200)], self.rows[:200])

    @rule(number=st.integers(0, 250), row=st.integers(0, 399))
    def put(self, number: int, row: int) -> None:
        for index in (self.index, self.model):
            index.put(f"d{number}", self.rows[row])
        found = self.index.search(self.rows[row], 0, 400)[: self._as_near(row)]
        assert f"d{number}" in [id for id, _ in found]

    @rule(first=st.integers(0, 250), count=st.integers(1, 60))
    def remove(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            if f"d{number}" in self.model:
                self.index.remove(f"d{number}")
                self.model.remove(f"d{number}")

    @rule(row=st.integers(0, 399), size=st.integers(1, 9))
    def search(self, row: int, size: int) -> None:
        query = self.rows[row]
        truth = dict(self.model.search(query, 0, len(self.model)))
        for offset in (0, size, 3 * size):
            found = self.index.search(query, offset, size)
            assert len(found) == max(0, min(size, len(self.model) - offset))
            assert all(truth[id] == score for id, score in found)
            assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))
        together = self.index.search(query, 0, 4 * size)
        assert len({id for id, _ in together}) == len(together)

    def _as_near(self, row: int) -> int:
        """How many score as high as an equal vector does."""
        best = self.model.search(self.rows[row], 0, 1)[0][1]
        return sum(score == best for _, score in self.model.search(self.rows[row], 0, len(self.model)))


TestGraphEdits = GraphEdits.TestCase
TestGraphEdits.settings = settings(max_examples=20, stateful_step_count=20)


@pytest.fixture(scope="module")
def both() -> tuple[approximate.ApproximateIndex, ExactIndex]:
    rows, ids = unit_rows(12_000, 1), [f"d{number}" for number in range(12_000)]
    index, model = approximate.ApproximateIndex(32, fresh=500), ExactIndex(32)
    for one in (index, model):
        one.put_many(ids, rows)
        for id in ids[::5]:
            one.remove(id)
        one.put_many(ids[::50], unit_rows(240, 2))
    return index, model


def test_graphs_are_asked_and_find_nearly_everything(
    both: tuple[approximate.ApproximateIndex, ExactIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, model = both
    monkeypatch.setattr(index, "_passed", lambda *_: pytest.fail("a first page needs no pass over all rows"))
    hits = wanted = 0
    for query in unit_rows(100, 3):
        found, truth = index.search(query, 0, 60), model.search(query, 0, 60)
        scores = dict(model.search(query, 0, 400))
        assert all(scores.get(id, score) == score for id, score in found)
        hits, wanted = hits + len(set(found) & set(truth)), wanted + 60
    assert hits >= 0.99 * wanted


def test_deep_pages_are_exact_disjoint_and_complete(both: tuple[approximate.ApproximateIndex, ExactIndex]) -> None:
    index, model = both
    query = unit_rows(1, 4)[0]
    for offset in (995, 1_000, 5_000, len(model) - 3):
        assert index.search(query, offset, 10) == model.search(query, offset, 10)
    assert pages(index, query, 1_500) == model.search(query, 0, len(model))
    assert index.search(query, len(model), 5) == []
    assert index.exact(query, 0, 60) == model.search(query, 0, 60)


def test_more_equal_scores_than_a_graph_is_asked_for_are_still_in_the_order_of_their_ids() -> None:
    rows = unit_rows(3_000, 5)
    rows[1_000:2_000] = rows[1_000]
    ids = [f"d{number:04}" for number in random.Random(6).sample(range(3_000), 3_000)]
    index, model = approximate.ApproximateIndex(32, fresh=10), ExactIndex(32)
    for one in (index, model):
        one.put_many(ids, rows)
    for offset in (0, 5, 500, 998):
        assert index.search(rows[1_000], offset, 5) == model.search(rows[1_000], offset, 5)


def test_an_edit_is_found_by_the_next_search_and_what_it_replaced_never_again() -> None:
    rows = unit_rows(3_000, 8)
    index = approximate.ApproximateIndex(32, fresh=100)
    index.put_many([f"d{number}" for number in range(3_000)], rows)
    for number, row in enumerate(unit_rows(300, 9)):
        old = index.vector(f"d{number}")
        index.put(f"d{number}", row)
        assert index.search(row, 0, 1) == [(f"d{number}", pytest.approx(1.0))]
        assert f"d{number}" not in [id for id, score in index.search(old, 0, 5) if score > 0.999]


def test_the_same_few_edited_for_ever_take_no_more_room() -> None:
    rows = unit_rows(600, 10)
    index = approximate.ApproximateIndex(32, fresh=20)
    for _ in range(10):
        for number in range(60):
            index.put(f"d{number}", rows[number])
    assert len(index) == 60 and index._memory <= 130
    assert [id for id, _ in index.search(rows[7], 0, 1)] == ["d7"]


@given(st.integers(1, 4), st.sampled_from(["nan", "inf", "wide", "few"]))
def test_what_does_not_fit_is_refused_and_changes_nothing(fresh: int, wrong: str) -> None:
    index = approximate.ApproximateIndex(2, fresh=fresh)
    index.put_many(list("abc"), [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    vectors = {"nan": [[1.0, math.nan]], "inf": [[math.inf, 0.0]], "wide": [[1.0, 0.0, 0.0]], "few": [[1.0, 0.0]] * 2}
    with pytest.raises(BadInput):
        index.put_many(["a"], vectors[wrong])
    for offset, limit in ((-1, 5), (0, -5)):
        with pytest.raises(BadInput, match="no page"):
            index.search([1.0, 0.0], offset, limit)
    with pytest.raises(BadInput):
        index.search([1.0], 0, 5)
    assert [id for id, _ in index.search([1.0, 0.0], 0, 5)] == ["a", "c", "b"]
    index.put_many([], np.empty((0, 2)))
    assert index.search([1.0, 0.0], 0, 0) == [] and len(index) == 3


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(Missing, match=r"kbgym\[scale\]"):
        approximate.ApproximateIndex(3)


def test_a_model_can_still_be_loaded_after_a_graph_was() -> None:
    """Loaded in the other order the two libraries crash the process."""
    code = "from kbgym.backends.hnsw.graph import Graph; Graph(3); import onnxruntime; print('both')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr
