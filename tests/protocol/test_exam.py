"""Exams: frozen, resumable, never a duplicate row, failures apart from wrong answers."""

from __future__ import annotations

import asyncio

import pytest

from kbgym.actions import Add, Answer, Invalid, Search
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.artefact.parts import embedder_named, engine_for
from kbgym.canonical import read_lines
from kbgym.errors import BadInput, Damaged
from kbgym.policy import AgentFailed
from kbgym.protocol.exam import Row, examine, read_rows, summarise
from kbgym.protocol.run import Settings
from kbgym.store import Store, source


@pytest.fixture(scope="module")
def examined(small_world):
    store = Store(source(document.id, document.text) for document in small_world.documents)
    return store, engine_for(store, embedder_named("hash")), small_world.split("test_in")[:30]


def test_rows_are_in_the_questions_order_and_the_same_every_time(examined, tmp_path):
    store, engine, questions = examined
    for name, concurrency in (("one", 1), ("many", 32)):
        asyncio.run(examine(store.copy(), engine, questions, ReferenceReader, tmp_path / name, concurrency=concurrency))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes()
    assert [row.id for row in read_lines(tmp_path / "one", Row)] == [question.id for question in questions]


def test_an_interrupted_exam_asks_only_what_is_missing(examined, tmp_path):
    store, engine, questions = examined
    whole = tmp_path / "whole"
    asyncio.run(examine(store.copy(), engine, questions, ReferenceReader, whole))
    lines = whole.read_bytes().splitlines(keepends=True)
    torn = tmp_path / "torn"
    torn.write_bytes(b"".join(lines[5:15]) + lines[20][:40])
    made = []

    def counting():
        made.append(1)
        return ReferenceReader()

    asyncio.run(examine(store.copy(), engine, questions, counting, torn))
    assert torn.read_bytes() == whole.read_bytes()
    assert len(made) == len(questions) - 10


def test_rows_of_another_exam_are_refused(examined, tmp_path):
    store, engine, questions = examined
    asyncio.run(examine(store.copy(), engine, questions[:5], ReferenceReader, tmp_path / "rows"))
    with pytest.raises(BadInput, match="rows of another exam"):
        asyncio.run(examine(store.copy(), engine, questions[5:], ReferenceReader, tmp_path / "rows"))


def test_a_question_with_two_rows_is_damage(examined, tmp_path):
    store, engine, questions = examined
    rows = tmp_path / "rows"
    asyncio.run(examine(store.copy(), engine, questions[:3], ReferenceReader, rows))
    rows.write_bytes(rows.read_bytes() * 2)
    with pytest.raises(Damaged, match=r"line 4: question .* has two rows"):
        asyncio.run(examine(store.copy(), engine, questions[:3], ReferenceReader, rows))


def test_a_reader_cannot_edit_whatever_it_sends(examined):
    store, engine, questions = examined

    class Vandal:
        async def act(self, view):
            return Answer("x") if view.history else Add("Nonsense.")

    before = store.fingerprint
    rows = asyncio.run(examine(store, engine, questions[:1], Vandal))
    assert isinstance(rows[0].shots[0].action, Invalid)
    assert store.fingerprint == before and not store.frozen


def test_whoever_gives_a_store_can_go_on_editing_it(examined):
    store, engine, questions = examined
    mine = store.copy()
    asyncio.run(examine(mine, engine, questions[:1], ReferenceReader))
    assert mine.add("A sentence of mine.") in mine


def test_the_settings_say_how_a_question_is_asked(examined):
    """A run's budget and memory hold in its exams as they do in its training."""
    store, engine, questions = examined
    seen = []

    class Searcher:
        async def act(self, view):
            seen.append((view.remaining, len(view.history)))
            return Search("anything")

    rows = asyncio.run(examine(store, engine, questions[:1], Searcher, settings=Settings(forward_budget=4, memory=2)))
    assert rows[0].actions == 4 and rows[0].outcome == "out_of_budget"
    assert seen == [(4, 0), (3, 1), (2, 2), (1, 2)]


def test_reading_rows_changes_nothing(examined, tmp_path):
    store, engine, questions = examined
    file = tmp_path / "rows"
    asyncio.run(examine(store, engine, questions[:3], ReferenceReader, file))
    torn = file.read_bytes()[:-20]
    file.write_bytes(torn)
    assert [row.id for row in read_rows(file)] == [question.id for question in questions[:2]]
    assert file.read_bytes() == torn
    assert read_rows(tmp_path / "none") == []


def test_a_failed_agent_has_no_score_and_is_shown(examined):
    store, engine, questions = examined
    made = []

    def agent():
        made.append(1)
        return Broken() if len(made) % 2 else ReferenceReader()

    class Broken:
        async def act(self, view):
            raise AgentFailed("gave up")

    rows = asyncio.run(examine(store.copy(), engine, questions[:10], agent))
    failed = [row for row in rows if row.outcome == "agent_failed"]
    assert len(failed) == 5 and all(row.f1 is None and row.failure == "gave up" for row in failed)
    summary = summarise(rows)
    answered = [row.f1 for row in rows if row.f1 is not None]
    assert summary.outcomes["agent_failed"] == 5 and summary.f1 == pytest.approx(sum(answered) / 5)


def test_an_outage_stops_the_exam_and_keeps_the_rows(examined, tmp_path):
    store, engine, questions = examined
    made = []

    def agent():
        made.append(1)
        if len(made) > 4:
            raise RuntimeError("the provider is down")
        return ReferenceReader()

    with pytest.raises(RuntimeError, match="down"):
        asyncio.run(examine(store.copy(), engine, questions, agent, tmp_path / "rows", concurrency=1))
    kept = list(read_lines(tmp_path / "rows", Row))
    assert len(kept) == 4
    asyncio.run(examine(store.copy(), engine, questions, ReferenceReader, tmp_path / "rows"))
    assert len(list(read_lines(tmp_path / "rows", Row))) == len(questions)
