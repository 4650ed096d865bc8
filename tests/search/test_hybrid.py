"""Words and vectors together: the sum that is documented, every text on one page, and duplicates by vectors only."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import numpy as np
import pytest

from kbgym.errors import BadInput
from kbgym.search import engine as hybrid
from kbgym.search.base import SearchKind, search_named
from kbgym.search.bm25 import BM25Index
from kbgym.search.embed import CachedEmbedder, HashEmbedder
from kbgym.search.engine import Engine, blend
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.search.index import Hit, page_of
from kbgym.worlds.kinds import search_of
from kbgym.worlds.world import World

WORDS = "tailor baker Mara Odo Fenn Eastmere lives near the old mill by Lund 2014-04-30 foo_bar".split()
TEXTS = {f"d{n:03}": " ".join(random.Random(n).choices(WORDS, k=1 + n % 7)) for n in range(300)}


class Silent(HashEmbedder):
    """An embedder that must not be asked."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        raise AssertionError("nothing is to be embedded")


def filled(kind: SearchKind, texts: dict[str, str] = TEXTS) -> Engine:
    return engine_for(texts.items(), CachedEmbedder(HashEmbedder()), search=kind)


def whole(query: str) -> list[Hit]:
    """The whole ranking, as the module's words say it is made."""
    near = dict(filled("vectors").search(query, 0, 1000))
    order = sorted(near, key=lambda id: (-near[id], id))
    low, high = near[order[hybrid.DEPTH - 1]], near[order[0]]
    words = BM25Index()
    words.load(TEXTS.items())
    said = dict(words.search(query, 0, 1000))
    most = max(said.values(), default=1.0)
    scores = {}
    for place, id in enumerate(order):
        share = (near[id] - low) / (high - low)
        scores[id] = 0.4 * (share if place < hybrid.DEPTH or id not in said else 0) + 0.6 * said.get(id, 0.0) / most
    return page_of(scores.items(), 0, 1000)


@pytest.mark.parametrize("query", ["Mara the baker", "2014-04-30", "foo bar", "zebra", "mill"])
def test_it_is_the_sum_that_is_documented(query: str) -> None:
    engine = filled("hybrid")
    found = [hit for start in range(0, 400, 5) for hit in engine.search(query, start, 5)]
    expected = whole(query)
    assert len(found) == len({id for id, _ in found}) == len(TEXTS)
    assert dict(found) == pytest.approx(dict(expected))
    assert [round(score, 9) for _, score in found] == [round(score, 9) for _, score in expected]


def test_what_vectors_miss_is_found_by_its_words() -> None:
    texts = {**TEXTS, "x": "The release of 1998-07-01 was called quux_frob."}
    assert filled("hybrid", texts).search("quux_frob", 0, 5)[0][0] == "x"
    assert filled("words", texts).search("QuuxFrob in 1998/07/01", 0, 5)[0][0] == "x"


def test_duplicates_are_found_by_vectors_whatever_a_search_goes_by() -> None:
    by_vectors, both, words = (filled(kind) for kind in ("vectors", "hybrid", "words"))
    assert both.nearest(TEXTS["d007"], 3, ["d007"]) == by_vectors.nearest(TEXTS["d007"], 3, ["d007"])
    assert words.nearest(TEXTS["d007"], 3) == []


def test_by_words_alone_nothing_is_embedded() -> None:
    engine = engine_for(TEXTS.items(), CachedEmbedder(Silent()), search="words")
    engine.put("new", "Zebedee juggles")
    asyncio.run(engine.prepare(["juggling"]))
    assert engine.search("Zebedee", 0, 5)[0][0] == "new"
    engine.remove("new")
    assert engine.search("Zebedee", 0, 5) == []
    live = live_engine_for(TEXTS.items(), CachedEmbedder(Silent()), search="words")
    past = live.overlay()
    live.put("new", "Zebedee juggles")
    assert [id for id, _ in live.search("Zebedee", 0, 5)] == ["new"] and past.search("Zebedee", 0, 5) == []
    assert live.nearest("Zebedee", 3) == past.nearest("Zebedee", 3) == []


@pytest.mark.parametrize("kind", ["vectors", "words", "hybrid"])
def test_a_served_engine_gives_what_an_engine_gives_and_its_overlay_the_past(kind: SearchKind) -> None:
    live = live_engine_for(TEXTS.items(), CachedEmbedder(HashEmbedder()), search=kind)
    past = live.overlay()
    now = dict(TEXTS)
    for change in range(40):
        id = f"d{change * 13 % 320:03}"
        if change % 3 == 0 and id in now:
            live.remove(id)
            del now[id]
        else:
            now[id] = f"{WORDS[change % len(WORDS)]} is new {change}"
            live.put(id, now[id])
    past.put("own", "Mara the baker of the overlay")
    past.remove("d001")
    then = {**TEXTS, "own": "Mara the baker of the overlay"}
    del then["d001"]
    for served, texts in ((live, now), (past, then)):
        expected = filled(kind, texts)
        for query in ("Mara the baker", "is new", "2014-04-30"):
            for offset in (0, 5, 45, 200, 298, 400):
                assert served.search(query, offset, 5) == expected.search(query, offset, 5)
        assert served.nearest(TEXTS["d003"], 3, ("d003",)) == expected.nearest(TEXTS["d003"], 3, ("d003",))
    asyncio.run(live.embedding.prepare(["Mara"]))
    live.embedding.close()


def test_which_search_a_world_wants() -> None:
    def wanted(**facts: str) -> SearchKind:
        return search_named(search_of(World((), (), facts)))

    assert wanted(kind="people") == wanted(kind="phantomwiki") == wanted() == "vectors"
    assert wanted(kind="public") == wanted(kind="corpus") == "hybrid"
    assert wanted(kind="corpus", search="words") == "words"
    with pytest.raises(BadInput, match="vectors, words or hybrid"):
        wanted(search="psychic")
    with pytest.raises(BadInput, match="psychic"):
        engine_for([], CachedEmbedder(HashEmbedder()), search="psychic")  # type: ignore[arg-type]


def test_no_text_at_all_finds_nothing() -> None:
    engine = Engine(HashEmbedder(), kind="hybrid")
    assert engine.search("anything", 0, 5) == [] == engine.nearest("anything", 3)
    assert blend(lambda offset, limit: [], BM25Index(), "anything", 0, 5) == []
