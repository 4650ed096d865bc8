"""Search data derived from a database: built once, extended for new documents, and rebuilt for another store."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from bases import base_of
from postgres import MISSING, NEWER, USUAL, Cluster, installed

from kbgym.backends.postgres import vectors as pgvector
from kbgym.backends.postgres import words as words_module
from kbgym.backends.postgres.base import DatabaseBase
from kbgym.backends.postgres.vectors import PgVectorIndex
from kbgym.backends.postgres.words import DatabaseWords
from kbgym.errors import BadInput, Missing
from kbgym.search.embed import CachedEmbedder, HashEmbedder
from kbgym.search.factory import engine_for
from kbgym.search.index import ExactIndex
from kbgym.store import Store

TEXTS = {f"d{number}": f"Person {number} knows person {number * 7 % 400} of Lund." for number in range(400)}


class Counting(HashEmbedder):
    """An embedder that counts the texts it is given."""

    def __init__(self, dimensions: int = 32, name: str = "counting") -> None:
        super().__init__(dimensions)
        self.name, self.count = name, 0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.count += len(texts)
        return super().embed(texts)


class Rows:
    """An embedder of texts that are numbers: of each, that row of unit vectors in groups."""

    name, dimensions = "rows", 24

    def __init__(self, count: int) -> None:
        source = np.random.default_rng(1)
        rows = source.standard_normal((count // 50, 24))[np.arange(count) % (count // 50)]
        rows = rows + 0.8 * source.standard_normal((count, 24))
        self.rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return self.rows[[int(text) for text in texts]]


@pytest.fixture(scope="module", params=[USUAL, NEWER], ids=lambda server: server[0])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if installed(request.param) is None:
        pytest.skip(MISSING)
    made = Cluster("fsync = off", server=request.param)
    yield made
    made.remove()


@pytest.fixture
def base(cluster: Cluster) -> DatabaseBase:
    return base_of(cluster, TEXTS)


def answers(base: DatabaseBase, embedder: HashEmbedder) -> None:
    """By both, pages are those of all texts in memory."""
    cached = CachedEmbedder(embedder)
    engine = engine_for(Store.over(base), cached, search="hybrid")
    expected = engine_for(TEXTS.items(), cached, search="hybrid")
    for query in ("Person 7 of Lund", "who knows person 12"):
        assert engine.search(query, 0, 60) == expected.search(query, 0, 60)


def test_a_graph_finds_nearly_all_with_exact_scores(cluster: Cluster) -> None:
    embedder = Rows(3000)
    base = base_of(cluster, {f"d{number}": str(number) for number in range(3000)})
    index, model = PgVectorIndex(base, CachedEmbedder(embedder), graph=True), ExactIndex(24)
    model.put_many([f"d{number}" for number in range(3000)], embedder.rows)
    right = 0
    for query in embedder.rows[::150]:
        there, truth = index.search(query, 0, 60), dict(model.search(query, 0, 3000))
        assert len(there) == 60 and all(truth[id] == score for id, score in there)
        right += len({id for id, _ in there} & set(list(truth)[:60]))
    assert right / (20 * 60) > 0.95
    assert index.search(query, 2000, 10) == model.search(query, 2000, 10), "deep pages are exact"
    assert np.array_equal(index.vector("d7"), embedder.rows[7])
    with pytest.raises(KeyError):
        index.vector("unknown")
    with pytest.raises(BadInput, match="no page"):
        index.search(query, -1, 5)
    with pytest.raises(BadInput, match="shape"):
        index.search(query[:3], 0, 5)


def test_more_equal_vectors_than_are_fetched_are_in_order(cluster: Cluster) -> None:
    embedder = Rows(500)
    embedder.rows[100:240] = embedder.rows[7]
    base = base_of(cluster, {f"d{number}": str(number) for number in range(500)})
    index, model = PgVectorIndex(base, CachedEmbedder(embedder), graph=False), ExactIndex(24)
    model.put_many([f"d{number}" for number in range(500)], embedder.rows)
    for query in (embedder.rows[3], embedder.rows[7]):
        for offset, limit in ((0, 5), (5, 5), (0, 60), (20, 90), (200, 10), (420, 100), (0, 1000), (9999, 5)):
            assert index.search(query, offset, limit) == model.search(query, offset, limit)


def test_which_way_vectors_are_searched(
    base: DatabaseBase, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def graph() -> bool:
        engine_for(Store.over(base), CachedEmbedder(Counting()))
        with base.connection() as connection:
            row = connection.execute(
                "SELECT count(*) = 1 FROM pg_indexes WHERE schemaname = %s AND indexname LIKE 'near_%%'",
                [base.address.schema],
            ).fetchone()
        return bool(row and row[0])

    assert not graph()
    monkeypatch.setenv("KBGYM_INDEX", "exact")
    monkeypatch.setattr(pgvector, "EXACT_UP_TO", 100)
    assert not graph()
    monkeypatch.delenv("KBGYM_INDEX")
    assert graph()
    monkeypatch.setenv("KBGYM_INDEX", "psychic")
    with pytest.raises(BadInput, match="psychic"):
        graph()


def test_opening_again_reads_no_text_and_embeds_none(base: DatabaseBase, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = Counting(), Counting()
    answers(base, first)
    monkeypatch.delattr(DatabaseBase, "texts")
    engine_for(Store.over(base), CachedEmbedder(again), search="hybrid")
    assert (first.count > 400, again.count) == (True, 0)


def test_what_was_interrupted_goes_on_where_it_was(base: DatabaseBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgvector, "_BATCH", 64)
    monkeypatch.setattr(words_module, "_BATCH", 50)
    told: list[tuple[str, int]] = []

    def stop(note: str, at: int):  # type: ignore[no-untyped-def]
        def tick(done: int, total: int, said: str) -> None:
            told.append((said, done))
            assert total == 400
            if said == note and done >= at:
                raise KeyboardInterrupt

        return tick

    embedder = Counting()
    for note in ("embedding", "words"):
        with pytest.raises(KeyboardInterrupt):
            engine_for(Store.over(base), CachedEmbedder(embedder), stop(note, 200), "hybrid")
        assert ("embedding", 128) in told, "progress is told over all texts"
    assert embedder.count <= 400 + 64
    told.clear()
    answers(base, embedder)
    with base.connection() as connection:
        assert connection.execute("SELECT count(*) FROM word_texts").fetchone() == (400,)


def test_two_at_once_make_it_once(cluster: Cluster, base: DatabaseBase) -> None:
    other = DatabaseBase(base.address, base.meta)
    embedder, failed, ready = Counting(), [], threading.Barrier(2)

    def opening(on: DatabaseBase) -> None:
        ready.wait(20)
        try:
            PgVectorIndex(on, CachedEmbedder(embedder), graph=True)
            DatabaseWords(on)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=opening, args=[one]) for one in (base, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == [] and embedder.count == 400
    answers(base, embedder)


def test_tables_of_the_same_name_elsewhere_are_left_alone(base: DatabaseBase) -> None:
    with base.connection() as connection:
        for table in ("word_texts", "word_counts"):
            connection.execute(f"CREATE TABLE public.{table} AS SELECT 'of somebody else' AS whose")
    answers(base, Counting())
    with base.connection() as connection:
        for table in ("word_texts", "word_counts"):
            assert connection.execute(f"SELECT whose FROM public.{table}").fetchone() == ("of somebody else",)
            connection.execute(f"DROP TABLE public.{table}")


def test_every_embedder_has_vectors_of_its_own(base: DatabaseBase) -> None:
    one, other, shorter = Counting(), Counting(name="it's another"), Counting(16, name="it's another")
    for embedder in (one, other, shorter):
        engine_for(Store.over(base), CachedEmbedder(embedder))
        assert embedder.count == 400
        answers(base, embedder)
    again = Counting()
    engine_for(Store.over(base), CachedEmbedder(again))
    assert again.count == 0, "what was embedded before is still there"


def test_without_pgvector_words_work_and_vectors_say_what_is_missing(cluster: Cluster) -> None:
    import psycopg

    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE modest LOGIN")
        connection.execute("CREATE DATABASE modest OWNER modest")
    base = base_of(cluster, TEXTS, database="modest", user="modest")
    embedder = CachedEmbedder(Counting())
    found = engine_for(Store.over(base), embedder, search="words").search("person 7", 0, 5)
    assert found == engine_for(TEXTS.items(), embedder, search="words").search("person 7", 0, 5)
    for kind in ("vectors", "hybrid"):
        with pytest.raises(Missing, match="pgvector"):
            engine_for(Store.over(base), embedder, search=kind)  # type: ignore[arg-type]


def test_no_texts_at_all(cluster: Cluster) -> None:
    base = base_of(cluster, {})
    engine = engine_for(Store.over(base), CachedEmbedder(Counting()), search="hybrid")
    assert engine.search("anything", 0, 5) == engine.nearest("anything", 3) == []
    engine.put("d1", "anything goes")
    assert [id for id, _ in engine.search("anything", 0, 5)] == ["d1"] and len(engine) == 1
