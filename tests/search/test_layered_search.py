"""A base in a database and changes on top: the pages and scores of an engine that holds every text in memory."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest
from bases import base_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres import Cluster

from kbgym.backends.postgres import words as database_words
from kbgym.backends.postgres.base import DatabaseBase
from kbgym.gym.actions import Action, Add, Delete, Edit, Error, Found, Link, LinkMany, Search
from kbgym.gym.environment import Environment
from kbgym.search.base import SEARCHES, SearchKind
from kbgym.search.embed import CachedEmbedder, HashEmbedder
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.search.live import EmbeddingQueue, LiveEngine, Overlay
from kbgym.store import Store, source
from kbgym.trace.live import snapshot_of

WORDS = [f"w{number}x" for number in range(40)]
EMBEDDER = CachedEmbedder(HashEmbedder(32))


def texts(count: int, seed: int) -> dict[str, str]:
    """Words from very common to rare, as in a language; many texts are equal, and ids are in no order."""
    source = random.Random(seed)
    weights = [1 / (1 + rank) for rank in range(len(WORDS))]
    ids = source.sample(range(count), count)
    return {f"d{id}": " ".join(source.choices(WORDS, weights, k=source.randint(1, 9))) for id in ids}


SAID = [*list(texts(11, 4).values()), "is quite new"]
FEW, MANY = texts(30, 1), texts(2500, 2)
QUERIES = ("w0x w1x w3x", SAID[3], "quite w7x", "nothing here")

Change = tuple[str, int, int]
changes = st.lists(st.tuples(st.sampled_from(["live", "own"]), st.integers(20, 39), st.integers(-1, 11)), max_size=15)


@pytest.fixture(scope="module")
def few(cluster: Cluster) -> DatabaseBase:
    base = base_of(cluster, FEW)
    engine_for(Store.over(base), EMBEDDER, search="hybrid")
    return base


@pytest.fixture(scope="module")
def many(cluster: Cluster) -> DatabaseBase:
    base = base_of(cluster, MANY)
    engine_for(Store.over(base), EMBEDDER, search="hybrid")
    return base


def in_memory(items: dict[str, str], kind: SearchKind) -> Engine:
    return engine_for(items.items(), EMBEDDER, search=kind)


def same_answers(engine: Engine | LiveEngine | Overlay, items: dict[str, str], kind: SearchKind) -> None:
    expected = in_memory(items, kind)
    for query in QUERIES:
        for offset, limit in ((0, 5), (3, 4), (20, 30), (60, 5)):
            assert engine.search(query, offset, limit) == expected.search(query, offset, limit)
    assert engine.nearest(SAID[0], 3, ("d20", "d21")) == expected.nearest(SAID[0], 3, ("d20", "d21"))


@pytest.mark.parametrize("kind", SEARCHES)
@given(before=changes, after=changes)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_changes_pages_are_those_of_all_texts_in_memory(
    few: DatabaseBase, kind: SearchKind, before: list[Change], after: list[Change]
) -> None:
    now = dict(FEW)
    for _, number, text in before:
        now.pop(f"d{number}", None)
        if text >= 0:
            now[f"d{number}"] = SAID[text]
    gone = {id for id, text in FEW.items() if now.get(id) != text}
    changed = {id: text for id, text in now.items() if FEW.get(id) != text}
    index, words = few.indexes(list(gone), list(changed.items()), EMBEDDER, kind)
    embedding = EmbeddingQueue(EMBEDDER)
    live = LiveEngine(index, embedding, kind, words)
    past, then = live.overlay(), dict(now)
    for where, number, text in after:
        id, engine, items = f"d{number}", *((live, now) if where == "live" else (past, then))
        assert isinstance(engine, LiveEngine | Overlay)
        if text >= 0:
            items[id] = SAID[text]
            engine.put(id, SAID[text])
        elif items.pop(id, None) is not None:
            engine.remove(id)
        elif engine is live:
            with pytest.raises(KeyError):
                engine.remove(id)
    held = live.words if kind == "words" else live.index
    assert len(held) == len(now) and all((f"d{n}" in held) == (f"d{n}" in now) for n in range(41))
    same_answers(live, now, kind)
    same_answers(past, then, kind)
    embedding.close()


@pytest.mark.parametrize("kind", SEARCHES)
def test_pages_of_many_are_those_of_all_in_memory(many: DatabaseBase, kind: SearchKind) -> None:
    gone = [f"d{number}" for number in range(0, 2500, 50)]
    changed = {f"d{number}": "w3x is quite new" for number in range(0, 2500, 100)}
    shown = {id: text for id, text in MANY.items() if id not in gone} | changed
    index, found = many.indexes(gone, list(changed.items()), EMBEDDER, kind)
    engine = Engine(EMBEDDER, index, kind, None, found)
    expected = in_memory(shown, kind)
    for number in range(12):
        query = " ".join(random.Random(number).sample(WORDS, number % 7 + 1))
        for offset, limit in ((0, 5), (5, 5), (2000, 600), (9999, 5)):
            assert engine.search(query, offset, limit) == expected.search(query, offset, limit)
        there, here = engine.search(query, 40, 30), expected.search(query, 40, 30)
        assert len(set(there) & set(here)) >= 0.8 * len(here), "the index by words may miss some of a deep page"


def test_of_common_words_only_some_texts_are_ranked(many: DatabaseBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_words, "_SCANNED", 60)
    monkeypatch.setattr(database_words, "_LEAST", 20)
    engine, model = engine_for(Store.over(many), EMBEDDER, search="words"), in_memory(MANY, "words")
    assert engine.words is not None
    found, expected = engine.words.search("w39x w38x w0x", 0, 5), model.search("w39x w38x w0x", 0, 5)
    assert [score for _, score in found] == [score for _, score in expected], "rare words decide"
    for query in ("w0x", "w0x w1x"):
        found, scores = engine.words.search(query, 0, 5), dict(model.search(query, 0, 2500))
        assert len(found) == 5 and all(scores[id] == score for id, score in found), "scores are exact"


def test_of_many_that_are_equal_the_first_by_id_are_shown(cluster: Cluster) -> None:
    same = {f"d{number:04}": "the same tailor" for number in random.Random(1).sample(range(1500), 1500)}
    base = base_of(cluster, same)
    words = engine_for(Store.over(base), EMBEDDER, search="words")
    assert [id for id, _ in words.search("tailor", 0, 3)] == ["d0000", "d0001", "d0002"]
    assert [id for id, _ in words.search("tailor", 1498, 5)] == ["d1498", "d1499"]


@pytest.mark.parametrize("kind", SEARCHES)
def test_what_was_prepared_is_not_waited_for(many: DatabaseBase, kind: SearchKind) -> None:
    class Watched:
        """A base that knows which threads asked it."""

        def __init__(self) -> None:
            self.threads: list[int] = []

        def __len__(self) -> int:
            return len(many)

        def __contains__(self, id: object) -> bool:
            self.threads.append(threading.get_ident())
            return id in many

        def __getattr__(self, name: str) -> object:
            self.threads.append(threading.get_ident())
            return getattr(many, name)

    base = Watched()
    index, words = DatabaseBase.indexes(base, ["d7"], [], EMBEDDER, kind)  # type: ignore[arg-type]
    embedding = EmbeddingQueue(EMBEDDER)
    live = LiveEngine(index, embedding, kind, words)
    live.put("new", "w1x w2x is quite new")
    past, mine = live.overlay(), threading.get_ident()

    async def ask() -> None:
        for query in QUERIES:
            base.threads.clear()
            await (past if query == QUERIES[1] else live).prepare([query])
            assert base.threads and mine not in base.threads
            base.threads.clear()
            for engine in (live, past):
                assert len(engine.search(query, 0, 5)) == (0 if kind == "words" and "nothing" in query else 5)
                engine.search(query, 10, 5)
                engine.search(query, 0, 50)
                engine.nearest(query, 3)
            await live.prepare([query])
            assert not base.threads, "the database was asked again"
        live.put("other", "w1x w2x")
        base.threads.clear()
        assert live.search(QUERIES[0], 0, 5) == in_memory(
            {id: text for id, text in MANY.items() if id != "d7"} | {"new": "w1x w2x is quite new", "other": "w1x w2x"},
            kind,
        ).search(QUERIES[0], 0, 5)
        assert not base.threads

    asyncio.run(ask())
    embedding.close()


@pytest.mark.parametrize("kind", SEARCHES)
def test_slot_over_a_database_is_that_of_a_store_in_memory(few: DatabaseBase, kind: SearchKind) -> None:
    actions: tuple[Action, ...] = (
        Add("w0x w1x of a question"),
        LinkMany("n1", ("d1", "d2")),
        Add("w3x w7x of another"),
        Link("n2", "d3"),
        Link("d4", "n2"),
        Delete("d3"),
        Edit("n1", "w0x w3x in new words"),
    )

    async def found(store: Store, engine: LiveEngine) -> list[Found]:
        store.tune({"slot_threshold": 0.1})
        environment = Environment(store, engine, ranking="slot")
        for action in actions:
            assert not isinstance((await environment.step(action, "curator")).result, Error)
        snapshot = snapshot_of(environment, 1).environment()
        steps = [await one.step(Search(query), "reader") for one in (environment, snapshot) for query in QUERIES]
        engine.embedding.close()
        return [step.result for step in steps if isinstance(step.result, Found)]

    held = Store([source(id, text) for id, text in FEW.items()])
    stores = (Store.over(few), held)
    there, here = (asyncio.run(found(store, live_engine_for(store, EMBEDDER, search=kind))) for store in stores)
    assert there == here and len(there) == 2 * len(QUERIES)
    assert [one.index for result in there for one in result.learnt]
