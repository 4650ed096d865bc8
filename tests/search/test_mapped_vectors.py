"""Vectors in files: whole or not there, found by what they hold, shared by processes, made again when damaged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kbgym.backends.hnsw import graph
from kbgym.backends.hnsw import index_files as large
from kbgym.backends.hnsw import mmap_vectors as mapped
from kbgym.backends.hnsw.approximate import ApproximateIndex
from kbgym.backends.hnsw.index_files import described, recall
from kbgym.errors import BadInput, Missing
from kbgym.search import factory
from kbgym.search.embed import CachedEmbedder, HashEmbedder
from kbgym.search.factory import engine_for
from kbgym.search.index import ExactIndex

# Not importorskip: importing usearch before onnxruntime crashes the process.
pytestmark = pytest.mark.skipif(not graph.installed(), reason="the scale extra is not installed")

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
    (folder,) = (cache / mapped.FOLDER).iterdir()
    return folder


def test_the_second_opening_embeds_nothing_and_finds_the_same(cache: Path) -> None:
    index, asked = opened(cache)
    assert asked == 0
    same(index, exact(IDS, TEXTS))
    assert index.search(HashEmbedder().embed([TEXTS[7]])[0], 0, 1)[0][0] == "d7"
    assert recall(index, IDS)[5] >= 0.95


def test_edits_lie_on_top_and_the_files_stay(cache: Path) -> None:
    before = the_set(cache)
    ids, texts = [*IDS[10:], "new", "copy"], [*TEXTS[10:], "A new sentence.", TEXTS[20]]
    texts[0] = "An edited sentence."
    index, asked = opened(cache, ids, texts)
    assert asked == 3 and the_set(cache) == before
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
    monkeypatch.setattr(large, "FRESH", 100)
    more = [*TEXTS, *(f"A new sentence with number {number}." for number in range(200)), TEXTS[3]]
    ids = [f"d{number}" for number in range(len(more))]
    index, asked = opened(cache, ids, more)
    assert asked == 201 and len(list((cache / mapped.FOLDER).iterdir())) == 2
    same(index, exact(ids, more))
    index, asked = opened(cache, ids, more)
    assert asked == 0
    assert [id for id, _ in index.search(HashEmbedder().embed([TEXTS[3]])[0], 0, 2)] == ["d1700", "d3"]


def test_other_texts_get_other_files(cache: Path) -> None:
    texts = [f"Something else entirely, number {number}." for number in range(300)]
    assert opened(cache, IDS[:300], texts)[1] == 300
    assert opened(cache)[1] == 0 and opened(cache, IDS[:300], texts)[1] == 0


@pytest.mark.parametrize("name", [mapped.ROWS, mapped.KEYS, mapped.ABOUT, graph.GRAPH, graph.TWINS])
@pytest.mark.parametrize("damage", ["gone", "cut", "longer", "flipped", "empty"])
def test_damaged_files_are_made_again(cache: Path, name: str, damage: str) -> None:
    path = the_set(cache) / name
    data = bytearray(path.read_bytes())
    data[10] ^= 4
    changed = {"cut": data[: len(data) // 2], "longer": data + b"0", "flipped": data, "empty": b""}
    path.unlink() if damage == "gone" else path.write_bytes(changed[damage])
    assert mapped.open_set(the_set(cache)) is None
    index, asked = opened(cache)
    assert asked == len(TEXTS)
    same(index, exact(IDS, TEXTS))
    assert opened(cache)[1] == 0


def test_a_graph_of_another_version_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole as written, but not what usearch can open."""

    def strange(rows: NDArray[np.float32], folder: Path, **_: object) -> None:
        (folder / graph.GRAPH).write_bytes(b"a graph of another version" * 100)
        (folder / graph.TWINS).write_bytes(np.array([len(rows), -1]).tobytes())

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(graph, "link", strange)
        opened(tmp_path)
    assert mapped.open_set(the_set(tmp_path)) is not None
    index, asked = opened(tmp_path)
    assert asked == len(TEXTS)
    same(index, exact(IDS, TEXTS))
    assert opened(tmp_path)[1] == 0


def test_nothing_to_index(tmp_path: Path) -> None:
    index, asked = opened(tmp_path, [], [])
    assert (len(index), asked, list(tmp_path.iterdir())) == (0, 0, [])
    index.put("a", np.eye(1, 256, dtype=np.float32)[0])
    assert index.search(np.eye(1, 256)[0], 0, 5) == [("a", 1.0)]


def test_a_crash_while_writing_leaves_nothing_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(graph, "link", crash)
        opened(tmp_path)
    assert list((tmp_path / mapped.FOLDER).iterdir()) == []
    # A process that was killed leaves its scratch folder: it is never taken for a set.
    (tmp_path / mapped.FOLDER / ".half").mkdir()
    (tmp_path / mapped.FOLDER / ".half" / mapped.ROWS).write_bytes(b"half")
    assert opened(tmp_path)[1] == len(TEXTS) and opened(tmp_path)[1] == 0


def test_a_disk_that_takes_nothing_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="going on in memory"):
        index, _ = opened(tmp_path / "file")
    same(index, exact(IDS, TEXTS))


_OTHER = """
import json, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_mapped_vectors import IDS, TEXTS, opened
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


@given(st.lists(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdef")))
def test_rows_are_matched_one_to_one(held: list[str], wanted: list[str]) -> None:
    there, asked = mapped.text_keys("m", held), mapped.text_keys("m", wanted)
    places = mapped.match(there, asked).tolist()
    used = [place for place in places if place >= 0]
    assert len(set(used)) == len(used)
    assert all(place < 0 or held[place] == text for place, text in zip(places, wanted, strict=True))
    for text in "abcdef":
        missing = sum(place < 0 and one == text for place, one in zip(places, wanted, strict=True))
        assert missing == max(0, wanted.count(text) - held.count(text))


def test_an_exact_index_runs_on_mapped_rows_and_leaves_them_alone(cache: Path) -> None:
    held = mapped.open_set(the_set(cache))
    assert held is not None
    before = (held.folder / mapped.ROWS).read_bytes()
    index = ExactIndex()
    rows = np.memmap(held.folder / mapped.ROWS, np.float32, "c", shape=held.rows.shape)
    index.put_many(IDS, rows, own=True)
    assert np.shares_memory(index._matrix, rows)
    index.put("d1", np.eye(1, 256, dtype=np.float32)[0])
    index.remove("d2")
    assert (held.folder / mapped.ROWS).read_bytes() == before
    with pytest.raises(ValueError):
        held.rows[0, 0] = 1.0


def test_small_stores_are_exact_large_ones_approximate_and_either_can_be_forced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KBGYM_CACHE", str(tmp_path))
    monkeypatch.delenv("KBGYM_INDEX", raising=False)
    kinds = [factory.index_kind(count) for count in (6_000, factory.THRESHOLD - 1, factory.THRESHOLD)]
    assert kinds == ["exact", "exact", "approximate"]
    embedder = CachedEmbedder(HashEmbedder())
    pairs = list(zip(IDS, TEXTS, strict=True))
    assert isinstance(engine_for(pairs, embedder).index, ExactIndex) and not list(tmp_path.iterdir())
    monkeypatch.setenv("KBGYM_INDEX", "approximate")
    assert described(IDS, TEXTS, "hash-256") == {"kind": "approximate"}
    engine = engine_for(pairs, embedder)
    assert isinstance(engine.index, ApproximateIndex)
    engine.put("d3", "A sentence nobody wrote before.")
    assert engine.search("A sentence nobody wrote before.", 0, 1)[0][0] == "d3"
    about = described(IDS, TEXTS, "hash-256")
    assert float(about["recall@5"]) >= 0.95 and int(about["bytes"]) > len(TEXTS) * 1024 and about["not_in_files"] == 0
    monkeypatch.setenv("KBGYM_INDEX", "exact")
    assert factory.index_kind(10**9) == "exact"
    monkeypatch.setenv("KBGYM_INDEX", "fast")
    with pytest.raises(BadInput, match="KBGYM_INDEX"):
        factory.index_kind(1)


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
