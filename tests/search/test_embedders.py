"""The cached embedder asks the model once a text and answers the same bits for ever; the hash embedder is for tests."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kbgym.search.cache import VectorCache
from kbgym.search.embed import CachedEmbedder, HashEmbedder, Vectors


class Counting:
    """An embedder that remembers what it was asked."""

    name = "counting"
    dimensions = 256

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.extend(texts)
        return HashEmbedder().embed(texts)


@given(st.lists(st.text(alphabet="ab \ud800é", max_size=4), max_size=12), st.integers(0, 12), st.integers(0, 20))
def test_any_mixture_of_known_and_new_texts_gives_the_same_bits(texts: list[str], known: int, remember: int) -> None:
    model = Counting()
    cached = CachedEmbedder(model, remember=remember)
    cached.embed(texts[:known])
    assert cached.embed(texts).tobytes() == HashEmbedder().embed(texts).tobytes()
    assert cached.embed(texts[::-1]).tobytes() == HashEmbedder().embed(texts[::-1]).tobytes()


def test_a_text_is_asked_for_once_and_never_again_from_disk(tmp_path: Path) -> None:
    texts = [f"text {number % 1500}" for number in range(3000)]
    first = Counting()
    made = CachedEmbedder(first, VectorCache(tmp_path)).embed(texts)
    assert sorted(first.asked) == sorted(set(texts))
    second = Counting()
    again = CachedEmbedder(second, VectorCache(tmp_path)).embed(texts)
    assert second.asked == []
    assert made.tobytes() == again.tobytes() == HashEmbedder().embed(texts).tobytes()


def test_a_repeated_query_is_remembered_without_a_disk() -> None:
    model = Counting()
    cached = CachedEmbedder(model, remember=8)
    for query in ("who", "what", "who", "what"):
        cached.embed([query])
    assert model.asked == ["who", "what"]
    for number in range(8):
        cached.embed([f"other {number}"])
    cached.embed(["who"])
    assert model.asked.count("who") == 2


def test_what_was_embedded_before_an_interruption_is_kept(tmp_path: Path) -> None:
    class Interrupted(Counting):
        def embed(self, texts: Sequence[str]) -> Vectors:
            if len(self.asked) >= 2000:
                raise KeyboardInterrupt
            return super().embed(texts)

    texts = [f"text {number}" for number in range(5000)]
    first = Interrupted()
    with contextlib.suppress(KeyboardInterrupt):
        CachedEmbedder(first, VectorCache(tmp_path)).embed(texts)
    rest = Counting()
    CachedEmbedder(rest, VectorCache(tmp_path)).embed(texts)
    assert sorted(first.asked + rest.asked) == sorted(texts)
    assert 0 < len(rest.asked) < len(texts)


def test_progress_rises_to_the_total(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    cached = CachedEmbedder(HashEmbedder(), VectorCache(tmp_path))
    cached.embed(["known"])
    cached.embed(["known", *(f"text {number}" for number in range(2500))], lambda *state: told.append(state))
    assert [done for done, _, _ in told] == [1, 1025, 2049, 2501]
    assert {total for _, total, _ in told} == {2501}


def test_the_name_and_size_are_those_of_the_model() -> None:
    cached = CachedEmbedder(HashEmbedder(64))
    assert (cached.name, cached.dimensions, cached.embed(["a"]).shape) == ("hash-64", 64, (1, 64))


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_hash_rows_have_unit_length_and_depend_on_their_text_alone(texts: list[str]) -> None:
    embedder = HashEmbedder()
    rows = embedder.embed(texts)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows.astype(np.float64), axis=1), 1, atol=1e-6)
    assert rows.tobytes() == b"".join(HashEmbedder().embed([text]).tobytes() for text in texts)


def test_hash_vectors_know_spelling() -> None:
    query, near, far = HashEmbedder().embed(
        ["the baker of Eastmere", "Mara is a baker in Eastmere.", "Chess is a game."]
    )
    assert float(query @ near) > float(query @ far) + 0.2


def test_importing_the_seam_loads_no_model_run_time() -> None:
    code = "import sys, kbgym.search.engine; print(sorted({'onnxruntime', 'chromadb', 'onnx'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
