"""Exams: frozen, resumable, never a duplicate row, failures apart from wrong answers."""

from __future__ import annotations

import asyncio

import pytest

from kbgym.actions import Add, Answer, Invalid
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.canonical import read_lines
from kbgym.errors import BadInput, Damaged
from kbgym.policy import AgentFailed
from kbgym.protocol.exam import Row, examine, summarise
from kbgym.protocol.session import embedder_named, engine_for
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

    frozen = store.copy()
    rows = asyncio.run(examine(frozen, engine, questions[:1], Vandal))
    assert isinstance(rows[0].shots[0].action, Invalid)
    assert frozen.fingerprint == store.fingerprint and frozen.frozen


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
