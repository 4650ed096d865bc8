"""The engine: what is put is found at once, what is removed never again, by vectors, by words and by both."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.errors import BadInput
from kbgym.search.bm25 import BM25Index
from kbgym.search.embed import HashEmbedder, default_embedder
from kbgym.search.engine import Engine
from kbgym.search.terms import terms

TEXTS = {
    "d1": "Mara Tolland is a baker.",
    "d2": "Odo Fenn is a tailor.",
    "d3": "Mara Tolland lives in Eastmere.",
    "d4": "Odo Fenn is a tailor.",
}


@pytest.fixture(params=["exact", "bm25", "words", "hybrid"])
def searcher(request: pytest.FixtureRequest) -> Engine | BM25Index:
    if request.param == "bm25":
        return BM25Index()
    if request.param in ("words", "hybrid"):
        return Engine(HashEmbedder(), kind=request.param)
    return Engine(HashEmbedder())


def test_what_is_put_is_found_at_once_and_what_is_removed_never(searcher: Engine | BM25Index) -> None:
    assert searcher.search("baker", 0, 5) == []
    for id, text in TEXTS.items():
        searcher.put(id, text)
        assert searcher.search(text, 0, 1)[0][0] == min(other for other in TEXTS if TEXTS[other] == text)
    assert len(searcher) == 4 and "d2" in searcher
    assert [id for id, _ in searcher.search("Odo Fenn is a tailor.", 0, 2)] == ["d2", "d4"]
    searcher.remove("d2")
    assert "d2" not in searcher and len(searcher) == 3
    assert "d2" not in [id for id, _ in searcher.search("Odo Fenn is a tailor.", 0, 10)]
    searcher.put("d1", "Nobody bakes here.")
    assert searcher.search("Nobody bakes here.", 0, 1)[0][0] == "d1"
    assert searcher.search("tailor", 10**9, 5) == []
    with pytest.raises(KeyError):
        searcher.remove("d2")
    with pytest.raises(BadInput):
        searcher.search("tailor", -1, 5)


def test_pages_are_cut_from_one_order(searcher: Engine | BM25Index) -> None:
    source = random.Random(2)
    words = "tailor baker Mara Odo Fenn Eastmere lives".split()
    for number in source.sample(range(60), 60):
        searcher.put(f"d{number:02}", " ".join(random.Random(number).choices(words, k=3)))
    whole = searcher.search("Mara is a tailor", 0, 1000)
    assert len(whole) >= 20
    assert whole == sorted(whole, key=lambda hit: (-hit[1], hit[0]))
    assert [hit for start in range(0, len(whole), 7) for hit in searcher.search("Mara is a tailor", start, 7)] == whole


def test_loading_equals_putting_one_by_one() -> None:
    told: list[int] = []
    loaded, put = Engine(HashEmbedder()), Engine(HashEmbedder())
    loaded.load(TEXTS.items(), lambda done, total, note: told.append(done))
    for id, text in reversed(TEXTS.items()):
        put.put(id, text)
    assert loaded.search("the tailor", 0, 4) == put.search("the tailor", 0, 4)
    assert told[-1] == 4


def test_nearest_leaves_out_what_it_is_told_to() -> None:
    engine = Engine(HashEmbedder())
    engine.load(TEXTS.items())
    assert [id for id, _ in engine.nearest(TEXTS["d2"], 2)] == ["d2", "d4"]
    assert engine.nearest(TEXTS["d2"], 1, exclude=["d2", "unknown"]) == [("d4", pytest.approx(1.0))]
    assert len(engine.nearest(TEXTS["d2"], 9, exclude={"d1", "d2"})) == 2


def test_the_default_embedder_finds_meaning(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBGYM_MODEL", str(model_folder))
    engine = Engine(default_embedder(tmp_path))
    engine.load(TEXTS.items())
    assert engine.search("Who sews clothes?", 0, 1)[0][0] == "d2"
    assert engine.search("Who makes bread?", 0, 1)[0][0] == "d1"


def formula(texts: dict[str, str], query: str) -> list[tuple[str, float]]:
    """BM25 as it is printed in books, with no index."""
    split = {id: terms(text) for id, text in texts.items()}
    average = sum(map(len, split.values())) / len(split)
    scores = {}
    for id, words in split.items():
        if shared := [term for term in terms(query) if term in words]:
            scores[id] = sum(
                math.log(1 + (len(split) - n + 0.5) / (n + 0.5))
                * f
                * 1.9
                / (f + 0.9 * (0.6 + 0.4 * len(words) / average))
                for term in shared
                for n, f in [(sum(term in other for other in split.values()), words.count(term))]
            )
    return sorted(scores.items(), key=lambda hit: (-round(hit[1], 9), hit[0]))


@given(
    st.lists(st.lists(st.sampled_from("bcdef"), max_size=6).map(" ".join), min_size=1, max_size=12),
    st.lists(st.sampled_from("bcdefz"), max_size=4).map(" ".join),
    st.randoms(use_true_random=False),
)
def test_bm25_is_the_formula_after_any_edits(rows: list[str], query: str, source: random.Random) -> None:
    texts = {f"d{number:02}": text for number, text in enumerate(rows)}
    index = BM25Index()
    for id in source.sample(sorted(texts), len(texts)):
        index.put(id, "e e b")
        index.put(id, texts[id])
        index.put(f"gone {id}", "d b c")
    for id in texts:
        index.remove(f"gone {id}")
    found = index.search(query, 0, 100)
    assert dict(found) == pytest.approx(dict(formula(texts, query)))
    again = BM25Index()
    again.load(texts.items())
    assert again.search(query, 0, 100) == found
