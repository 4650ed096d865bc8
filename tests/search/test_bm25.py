"""The word index: pages, compaction and views of the past change nothing about a score."""

from __future__ import annotations

import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgym.search import bm25
from kbgym.search.bm25 import BM25Index
from kbgym.search.index import page_of
from kbgym.search.live import PastWords

WORDS = [f"w{number}x" for number in range(40)]


def texts(count: int, seed: int) -> dict[str, str]:
    """Words from very common to rare, as in a language; many texts are equal."""
    source = random.Random(seed)
    weights = [1 / (1 + rank) for rank in range(len(WORDS))]
    return {f"d{n}": " ".join(source.choices(WORDS, weights, k=source.randint(1, 9))) for n in range(count)}


def index_of(items: dict[str, str]) -> BM25Index:
    index = BM25Index()
    index.load(items.items())
    return index


def test_pages_are_cut_from_the_scores_of_all_texts() -> None:
    items = texts(2000, 1)
    index = index_of(items)
    for number in range(30):
        query = " ".join(random.Random(number).sample(WORDS, number % 7 + 1))
        whole = page_of(zip(items, index.scores(query, list(items)), strict=True), 0, 40)
        for start in (0, 5, 35):
            assert index.search(query, start, 5) == [hit for hit in whole if hit[1] > 0][start : start + 5]


def test_of_thousands_that_are_equal_the_first_by_id_are_shown() -> None:
    index = index_of({f"d{number:04}": "the same tailor" for number in reversed(range(3000))})
    assert [id for id, _ in index.search("tailor", 0, 3)] == ["d0000", "d0001", "d0002"]
    assert [id for id, _ in index.search("tailor", 2998, 5)] == ["d2998", "d2999"]


def test_what_is_gone_leaves_no_trace_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "_MANY", 16)
    items = texts(300, 2)
    index = index_of(items)
    for id in list(items)[:200]:
        if id > "d15":
            index.remove(id)
            del items[id]
        else:
            items[id] += " w1x w99x"
            index.put(id, items[id])
    fresh = index_of(items)
    assert len(index._ids) < 300 and len(index) == len(items)
    for query in ("w1x w5x", "w99x", "w0x w1x w2x w3x"):
        assert index.search(query, 0, 500) == fresh.search(query, 0, 500)
    index.put("new", "w7x zebra")
    assert index.search("zebra", 0, 5)[0][0] == "new" and index.text("new") == "w7x zebra"
    with pytest.raises(KeyError):
        index.text("d299x")


def test_it_travels() -> None:
    index = index_of(texts(50, 3))
    index.put("d7", "something else")
    again = pickle.loads(pickle.dumps(index))
    assert again.search("w0x else", 0, 50) == index.search("w0x else", 0, 50)


Change = tuple[str, int, int]


@given(
    before=st.dictionaries(st.integers(0, 9), st.integers(0, 11), max_size=8),
    after=st.lists(st.tuples(st.sampled_from(["live", "own"]), st.integers(0, 9), st.integers(-1, 11)), max_size=20),
)
@settings(max_examples=100)
def test_the_past_scores_as_a_new_index_of_it_would(before: dict[int, int], after: list[Change]) -> None:
    said = list(texts(12, 4).values())
    then = {f"d{id}": said[text] for id, text in before.items()}
    live, now = index_of(then), dict(then)
    past = PastWords(live, BM25Index())
    for where, number, text in after:
        id = f"d{number}"
        index, items = (live, now) if where == "live" else (past, then)
        if where == "live":
            past.keep(id, live.text(id) if id in live else None)
        if text >= 0:
            index.put(id, said[text])
            items[id] = said[text]
        elif items.pop(id, None) is not None:
            index.remove(id)
    expected = index_of(then)
    assert len(past) == len(then) and sorted(past.ids) == sorted(then) and all(past.text(id) == then[id] for id in then)
    for query in ("w0x w1x w3x", said[3]):
        assert past.search(query, 0, 20) == expected.search(query, 0, 20)
        assert past.scores(query, list(then)) == expected.scores(query, list(then))
        assert live.search(query, 0, 20) == index_of(now).search(query, 0, 20)
