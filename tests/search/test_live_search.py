"""Live search: overlays are snapshots, and the embedding queue shares work and keeps short texts quick."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgym.search.cache import VectorCache
from kbgym.search.embed import CachedEmbedder, HashEmbedder, keys
from kbgym.search.index import ExactIndex
from kbgym.search.live import EmbeddingQueue, LiveEngine, Overlay

TEXTS = [
    f"{who} {does} {what}" for who in ("Ada", "Bo", "Cy") for does in ("likes", "sells") for what in ("figs", "tea")
]
EMBEDDER = CachedEmbedder(HashEmbedder(32))
EMBEDDING = EmbeddingQueue(EMBEDDER)

Change = tuple[str, int, int]
changes = st.lists(st.tuples(st.sampled_from(["live", "own"]), st.integers(0, 9), st.integers(-1, 11)), max_size=25)


def copied(documents: dict[str, str]) -> ExactIndex:
    index = ExactIndex(32)
    for id, text in documents.items():
        index.put(id, EMBEDDER.embed([text])[0])
    return index


@given(before=st.dictionaries(st.integers(0, 9), st.integers(0, 11), max_size=8), after=changes)
@settings(max_examples=150)
def test_an_overlay_is_the_past_with_changes_of_its_own(before: dict[int, int], after: list[Change]) -> None:
    live_texts = {f"d{id}": TEXTS[text] for id, text in before.items()}
    own_texts = dict(live_texts)
    live = LiveEngine(copied(live_texts), EMBEDDING)
    overlay = live.overlay()
    for where, number, text in after:
        id, engine, texts = f"d{number}", *((live, live_texts) if where == "live" else (overlay, own_texts))
        assert isinstance(engine, LiveEngine | Overlay)
        if text < 0:
            if texts.pop(id, None) is not None:
                engine.remove(id)
        else:
            texts[id] = TEXTS[text]
            engine.put(id, TEXTS[text])
    for texts, engine in ((live_texts, live), (own_texts, overlay)):
        expected = copied(texts)
        for query in ("Ada likes tea", TEXTS[5]):
            for offset in (0, 3, 6, 30):
                wanted = expected.search(EMBEDDER.embed([query])[0], offset, 3) if offset < len(expected) else []
                assert engine.search(query, offset, 3) == wanted
        nearest = engine.nearest(TEXTS[0], 2, ("d0", "d1"))
        assert (
            [id for id, _ in nearest]
            == [id for id, _ in expected.search(EMBEDDER.embed([TEXTS[0]])[0], 0, 12) if id not in ("d0", "d1")][:2]
            if len(expected)
            else nearest == []
        )


def test_what_waits_is_embedded_together_in_another_thread() -> None:
    batches: list[tuple[int, bool]] = []
    all_asked = threading.Event()

    class Counting(HashEmbedder):
        def embed(self, texts):  # type: ignore[no-untyped-def]
            all_asked.wait(20)
            batches.append((len(texts), threading.current_thread() is threading.main_thread()))
            return super().embed(texts)

    async def ask() -> None:
        embedding = EmbeddingQueue(CachedEmbedder(Counting(32)))
        asking = asyncio.gather(*(embedding.prepare([f"text {n % 20}"]) for n in range(40)))
        await asyncio.sleep(0)
        all_asked.set()
        await asking
        before = len(batches)
        await embedding.prepare(["text 1", "text 2"])
        assert len(batches) == before, "a vector that is known was worked out again"
        assert np.array_equal(embedding("text 3"), HashEmbedder(32).embed(["text 3"])[0])
        embedding.close()

    asyncio.run(ask())
    assert sum(size for size, _ in batches) == 20
    assert len(batches) <= 5, "two that began before the others came, and the rest eight at a time"
    assert not any(in_main for _, in_main in batches)


def test_an_embedder_that_fails_fails_those_who_wait_and_nobody_after() -> None:
    class Broken(HashEmbedder):
        works = False

        def embed(self, texts):  # type: ignore[no-untyped-def]
            if not self.works:
                raise RuntimeError("no model")
            return super().embed(texts)

    async def ask() -> None:
        broken = Broken(32)
        embedding = EmbeddingQueue(CachedEmbedder(broken))
        with pytest.raises(RuntimeError, match="no model"):
            await embedding.prepare(["a", "b"])
        broken.works = True
        await embedding.prepare(["a"])
        assert len(embedding("a")) == 32

    asyncio.run(ask())


def test_short_texts_do_not_wait_for_long_ones() -> None:
    may_end = threading.Event()
    at_once: list[int] = []

    class Slow(HashEmbedder):
        under_way = 0

        def embed(self, texts):  # type: ignore[no-untyped-def]
            if any(len(text) > 1_000 for text in texts):
                self.under_way += 1
                at_once.append(self.under_way)
                assert may_end.wait(100)
                self.under_way -= 1
            return super().embed(texts)

    async def ask() -> None:
        embedding = EmbeddingQueue(CachedEmbedder(Slow(32)))
        long = asyncio.gather(*(embedding.prepare([f"{n} " * 1_000]) for n in range(6)))
        while not at_once:
            await asyncio.sleep(0.01)
        for n in range(10):
            await asyncio.wait_for(embedding.prepare([f"short {n}"]), 100)
        assert not long.done()
        may_end.set()
        await asyncio.wait_for(long, 100)
        embedding.close()

    asyncio.run(ask())
    assert at_once == [1] * 6, "long texts come one after the other"


def test_a_text_two_callers_want_is_embedded_once_and_outlives_a_cancelled_caller() -> None:
    may_end = threading.Event()
    embedded: list[str] = []

    class Slow(HashEmbedder):
        def embed(self, texts):  # type: ignore[no-untyped-def]
            assert may_end.wait(100)
            embedded.extend(texts)
            return super().embed(texts)

    async def ask() -> None:
        embedding = EmbeddingQueue(CachedEmbedder(Slow(32), cache=None))
        first, second = (asyncio.create_task(embedding.prepare(["shared", own])) for own in "ab")
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.wait_for(second, 100)
        assert np.array_equal(embedding("shared"), HashEmbedder(32).embed(["shared"])[0])
        embedding.close()

    asyncio.run(ask())
    assert sorted(embedded) == ["a", "b", "shared"]


def test_vectors_embedded_behind_are_saved_in_batches(tmp_path: Path) -> None:
    cached = CachedEmbedder(HashEmbedder(32), VectorCache(tmp_path))
    (wanted,) = cached.embed(["three"], behind=True)
    places, row = {keys(cached.name, ["three"])[0]: 0}, np.empty((1, 32), dtype=np.float32)
    assert VectorCache(tmp_path).get(places, row), "it is not on the disk yet"
    cached.save()
    assert not VectorCache(tmp_path).get(places, row)
    assert np.array_equal(row[0], wanted)
