"""The approximate index and its files: exact scores, few misses, shared by processes, made again when damaged."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from numpy.typing import NDArray

from kbgym.backends import hnsw as large
from kbgym.backends.hnsw import ApproximateIndex
from kbgym.errors import BadInput, Missing
from kbgym.search import factory
from kbgym.search.embed import CachedEmbedder, HashEmbedder
from kbgym.search.factory import engine_for
from kbgym.search.index import ExactIndex, Hit, VectorIndex

# Not importorskip: importing usearch before onnxruntime crashes the process.
pytestmark = pytest.mark.skipif(not large.installed(), reason="the scale extra is not installed")

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


def over_graph(rows: Rows) -> ApproximateIndex:
    graph = large.new_graph(rows.shape[1])
    graph.add(np.arange(len(rows), dtype=np.uint64), rows)
    return ApproximateIndex(rows.shape[1], graph, ((f"d{n}", n) for n in range(len(rows))))


class GraphEdits(RuleBasedStateMachine):
    """Edits over a graph: what is put is found, what is removed is not, scores are exact."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = unit_rows(400, 7, 8)
        self.index = over_graph(self.rows[:200])
        self.model = ExactIndex(8)
        self.model.put_many([f"d{n}" for n in range(200)], self.rows[:200])

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
        """Return the number of hits that score as high as an equal vector."""
        best = self.model.search(self.rows[row], 0, 1)[0][1]
        return sum(score == best for _, score in self.model.search(self.rows[row], 0, len(self.model)))


TestGraphEdits = GraphEdits.TestCase
TestGraphEdits.settings = settings(max_examples=20, stateful_step_count=20)


@pytest.fixture(scope="module")
def both() -> tuple[ApproximateIndex, ExactIndex]:
    rows, ids = unit_rows(4_000, 1), [f"d{number}" for number in range(4_000)]
    index, model = over_graph(rows), ExactIndex(32)
    model.put_many(ids, rows)
    for one in (index, model):
        for id in ids[::5]:
            one.remove(id)
        one.put_many(ids[::50], unit_rows(80, 2))
    return index, model


def test_graph_finds_nearly_everything(both: tuple[ApproximateIndex, ExactIndex]) -> None:
    index, model = both
    hits = wanted = 0
    for query in unit_rows(60, 3):
        found, truth = index.search(query, 0, 60), model.search(query, 0, 60)
        scores = dict(model.search(query, 0, 400))
        assert all(scores.get(id, score) == score for id, score in found)
        hits, wanted = hits + len(set(found) & set(truth)), wanted + 60
    assert hits >= 0.99 * wanted


def test_deep_pages_are_exact(both: tuple[ApproximateIndex, ExactIndex]) -> None:
    index, model = both
    query = unit_rows(1, 4)[0]
    for offset in (1_000, 2_000, len(model) - 3):
        assert index.search(query, offset, 10) == model.search(query, offset, 10)
    assert index.search(query, len(model), 5) == []
    assert index.search(query, 0, 60, exact=True) == model.search(query, 0, 60)


@pytest.mark.parametrize("wrong", ["nan", "inf", "wide", "few"])
def test_what_does_not_fit_is_refused_and_changes_nothing(wrong: str) -> None:
    index = ApproximateIndex(2)
    index.put_many(list("abc"), [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    vectors = {"nan": [[1.0, math.nan]], "inf": [[math.inf, 0.0]], "wide": [[1.0, 0.0, 0.0]], "few": [[1.0, 0.0]] * 2}
    with pytest.raises(BadInput):
        index.put_many(["a"], vectors[wrong])
    for offset, limit in ((-1, 5), (0, -5)):
        with pytest.raises(BadInput):
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
        ApproximateIndex(3)


def test_a_model_can_still_be_loaded_after_a_graph_was() -> None:
    """Loaded in the other order the two libraries crash the process."""
    code = "from kbgym.backends.hnsw import new_graph; new_graph(3); import onnxruntime; print('both')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr


# -- files -------------------------------------------------------------------------------------------------------------

TEXTS = [f"Person {number} of family {number % 97} lives in city {number % 41}." for number in range(1500)]
IDS = [f"d{number}" for number in range(len(TEXTS))]


class Counting(HashEmbedder):
    """Says how many texts it was asked for."""

    asked = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += len(texts)
        return super().embed(texts)


def opened(cache: Path, ids: list[str] = IDS, texts: list[str] = TEXTS) -> tuple[ApproximateIndex, int]:
    """An index as a fresh process would open it, and how many texts that embedded."""
    embedder = Counting()
    index = large.open_index(ids, texts, CachedEmbedder(embedder), cache=cache)
    return index, embedder.asked


def exact(ids: list[str], texts: list[str]) -> ExactIndex:
    index = ExactIndex()
    index.put_many(ids, HashEmbedder().embed(texts))
    return index


def same(index: ApproximateIndex, model: ExactIndex) -> None:
    """The whole order, which an exact pass answers, to the last bit."""
    query = HashEmbedder().embed(["Who lives in city 7?"])[0]
    assert index.search(query, 0, len(model) + 1) == model.search(query, 0, len(model) + 1)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    assert opened(cache)[1] == len(TEXTS)
    return cache


@pytest.fixture
def cache(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "cache"))


def the_set(cache: Path) -> Path:
    (folder,) = (cache / large.FOLDER).glob("*/*")
    return folder


def test_the_second_opening_embeds_nothing_and_finds_the_same(cache: Path) -> None:
    index, asked = opened(cache)
    assert asked == 0
    same(index, exact(IDS, TEXTS))
    assert index.search(HashEmbedder().embed([TEXTS[7]])[0], 0, 1)[0][0] == "d7"


def test_edits_lie_on_top_and_the_files_stay(cache: Path) -> None:
    before = the_set(cache)
    ids, texts = [*IDS[10:], "new", "copy"], [*TEXTS[10:], "A new sentence.", TEXTS[20]]
    texts[0] = "An edited sentence."
    index, asked = opened(cache, ids, texts)
    assert asked == 2 and the_set(cache) == before, "the copy has the vector of its twin"
    same(index, exact(ids, texts))
    index.remove("d20")
    found = [id for id, _ in index.search(HashEmbedder().embed([TEXTS[20]])[0], 0, 5)]
    assert found[0] == "copy" and "d20" not in found


def test_ids_and_their_order_do_not_matter_to_the_files(cache: Path) -> None:
    ids = [f"x{number}" for number in range(len(TEXTS))]
    index, asked = opened(cache, ids, TEXTS[::-1])
    assert asked == 0
    same(index, exact(ids, TEXTS[::-1]))


def test_many_new_texts_grow_new_files_from_the_old(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "FEW", 100)
    more = [*TEXTS, *(f"A new sentence with number {number}." for number in range(200)), TEXTS[3]]
    ids = [f"d{number}" for number in range(len(more))]
    index, asked = opened(cache, ids, more)
    assert asked == 200 and len(list((cache / large.FOLDER).glob("*/*"))) == 2
    same(index, exact(ids, more))
    index, asked = opened(cache, ids, more)
    assert asked == 0
    assert [id for id, _ in index.search(HashEmbedder().embed([TEXTS[3]])[0], 0, 2)] == ["d1700", "d3"]


def test_other_texts_get_other_files(cache: Path) -> None:
    texts = [f"Something else entirely, number {number}." for number in range(300)]
    assert opened(cache, IDS[:300], texts)[1] == 300
    assert opened(cache)[1] == 0 and opened(cache, IDS[:300], texts)[1] == 0


@pytest.mark.parametrize("name", [large.KEYS, large.GRAPH])
@pytest.mark.parametrize("damage", ["gone", "cut", "empty", "other"])
def test_damaged_files_are_made_again(cache: Path, name: str, damage: str) -> None:
    path = the_set(cache) / name
    data = path.read_bytes()
    changed = {"cut": data[: len(data) // 2], "empty": b"", "other": b"a graph of another version" * 100}
    path.unlink() if damage == "gone" else path.write_bytes(changed[damage])
    index, asked = opened(cache)
    assert asked == len(TEXTS)
    same(index, exact(IDS, TEXTS))
    assert opened(cache)[1] == 0


def test_nothing_to_index(tmp_path: Path) -> None:
    index, asked = opened(tmp_path, [], [])
    assert (len(index), asked, list(tmp_path.iterdir())) == (0, 0, [])
    index.put("a", np.eye(1, 256, dtype=np.float32)[0])
    assert index.search(np.eye(1, 256)[0], 0, 5) == [("a", 1.0)]


def test_a_crash_while_writing_leaves_nothing_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "write_bytes", crash)
        opened(tmp_path)
    (place,) = (tmp_path / large.FOLDER).iterdir()
    assert list(place.iterdir()) == []
    # A process that was killed leaves its scratch folder: it is never taken for a set.
    (place / ".half").mkdir()
    (place / ".half" / large.KEYS).write_bytes(b"half")
    assert opened(tmp_path)[1] == len(TEXTS) and opened(tmp_path)[1] == 0


def test_a_disk_that_takes_nothing_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="continuing in memory"):
        index, _ = opened(tmp_path / "file")
    same(index, exact(IDS, TEXTS))


_OTHER = """
import json, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_approximate_index import IDS, TEXTS, opened
from kbgym.search.embed import HashEmbedder
index, asked = opened(Path(sys.argv[1]))
index.remove("d7")
index.put("d8", HashEmbedder().embed(["Mine alone."])[0])
hits = [index.search(HashEmbedder().embed([text])[0], 0, 3) for text in (*TEXTS[5:12], "Mine alone.")]
print(json.dumps([asked, hits]))
"""


def test_processes_share_files_and_not_their_edits(cache: Path) -> None:
    command = [sys.executable, "-c", _OTHER, str(cache), str(Path(__file__).parent)]
    index, asked = opened(cache)
    others = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    answers = [json.loads(other.communicate()[0]) for other in others]
    assert asked == 0 and answers[0] == answers[1] and answers[0][0] == 0
    assert answers[0][1][-1][0][0] == "d8"
    same(index, exact(IDS, TEXTS))


def test_processes_that_write_the_same_files_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _OTHER, str(tmp_path), str(Path(__file__).parent)]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert all(json.loads(other.communicate()[0])[1][-1][0][0] == "d8" for other in others)
    assert opened(tmp_path)[1] == 0 and the_set(tmp_path)


def test_small_stores_are_exact_large_ones_approximate_and_either_can_be_forced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KBGYM_CACHE", str(tmp_path))
    monkeypatch.delenv("KBGYM_INDEX", raising=False)
    assert [factory.is_approximate(count, 10) for count in (1, 9, 10)] == [False, False, True]
    embedder = CachedEmbedder(HashEmbedder())
    pairs = list(zip(IDS, TEXTS, strict=True))
    assert isinstance(engine_for(pairs, embedder).index, ExactIndex) and not list(tmp_path.iterdir())
    monkeypatch.setenv("KBGYM_INDEX", "approximate")
    engine = engine_for(pairs, embedder)
    assert isinstance(engine.index, ApproximateIndex)
    engine.put("d3", "A sentence nobody wrote before.")
    assert engine.search("A sentence nobody wrote before.", 0, 1)[0][0] == "d3"
    monkeypatch.setenv("KBGYM_INDEX", "exact")
    assert not factory.is_approximate(10**9, 10)
    monkeypatch.setenv("KBGYM_INDEX", "fast")
    with pytest.raises(BadInput, match="KBGYM_INDEX"):
        factory.is_approximate(1, 10)


def test_who_searches_a_few_times_makes_no_graph_and_uses_one_that_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KBGYM_CACHE", str(tmp_path))
    monkeypatch.delenv("KBGYM_INDEX", raising=False)
    monkeypatch.setattr(factory, "THRESHOLD", 100)
    embedder, pairs = CachedEmbedder(HashEmbedder()), list(zip(IDS, TEXTS, strict=True))
    engine = engine_for(pairs, embedder, brief=True)
    assert isinstance(engine.index, ExactIndex) and not list(tmp_path.iterdir())
    assert isinstance(engine_for(pairs, embedder).index, ApproximateIndex)
    assert isinstance(engine_for(pairs, embedder, brief=True).index, ApproximateIndex)
    assert engine.search(TEXTS[7], 0, 1)[0][0] == "d7"


def test_without_the_extra_a_large_store_is_searched_exactly_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "installed", lambda: False)
    monkeypatch.setattr(factory, "THRESHOLD", 100)
    monkeypatch.delenv("KBGYM_INDEX", raising=False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        engine = engine_for(zip(IDS, TEXTS, strict=True), CachedEmbedder(HashEmbedder()))
    assert isinstance(engine.index, ExactIndex)
    assert [str(one.message) for one in told if "kbgym[scale]" in str(one.message)] and len(told) == 1
    monkeypatch.setenv("KBGYM_INDEX", "approximate")
    with pytest.raises(Missing, match=r"kbgym\[scale\]"):
        factory.approximate_plugin(1)


def test_a_small_store_never_loads_the_extra() -> None:
    code = (
        "import sys; from kbgym.search.factory import engine_for; from kbgym.store import Store, source\n"
        "from kbgym.search.embed import CachedEmbedder, HashEmbedder\n"
        "engine = engine_for(Store([source('d1', 'One sentence.')]), CachedEmbedder(HashEmbedder()))\n"
        "print(engine.search('sentence', 0, 5)[0][0], 'usearch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "d1 False\n"
