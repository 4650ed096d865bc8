"""Exams: frozen, resumable, never a duplicate row, failures apart from wrong answers."""

from __future__ import annotations

import asyncio

import pytest

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api.factory import embedder_named
from kbgym.canonical import encode, read_lines
from kbgym.errors import BadInput, Damaged
from kbgym.gym.actions import Add, Answer, Answered, Error, Invalid, Observation, Opened, Read, Search
from kbgym.gym.environment import Step
from kbgym.gym.episode import Transcript
from kbgym.gym.policy import AgentFailed
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.training.exam import (
    ResultWriter,
    Row,
    Shot,
    Summary,
    examine,
    examine_without,
    is_public,
    no_store_file,
    read_rows,
    row_of,
    summarise,
)
from kbgym.training.run import Settings
from kbgym.worlds.world import Question, World


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
    with pytest.raises(BadInput):
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

    with pytest.raises(RuntimeError):
        asyncio.run(examine(store.copy(), engine, questions, agent, tmp_path / "rows", concurrency=1))
    kept = list(read_lines(tmp_path / "rows", Row))
    assert len(kept) == 4
    asyncio.run(examine(store.copy(), engine, questions, ReferenceReader, tmp_path / "rows"))
    assert len(list(read_lines(tmp_path / "rows", Row))) == len(questions)


QUESTION = Question("q1", "test_in", "QC1", "job-of", "Who?", ("Ann Ash, Bob Oak", "Cy Elm"))
SEARCHED = Step(Search("x"), Error("nothing"), Observation("Error: nothing"))


def passed(outcome, answer=None, failure=None, usage=None):
    steps = (
        (SEARCHED, Step(Answer(answer), Answered(), Observation("Answer submitted.")))
        if answer is not None
        else (SEARCHED,) * 3
    )
    return Transcript("reader", outcome, steps, answer, failure, usage)


@pytest.mark.parametrize(
    ("transcript", "question", "f1", "em", "set_f1"),
    [
        (passed("answered", "Bob Oak, Ann Ash"), QUESTION, 1.0, 0.0, 1.0),
        (passed("answered", "Cy Elm"), QUESTION, 1.0, 1.0, 1.0),
        (passed("answered", "Cy Fir"), QUESTION, 0.5, 0.0, 0.0),
        (passed("answered", "Ann Ash"), QUESTION, 2 / 3, 0.0, 2 / 3),
        (passed("answered", ""), QUESTION, 0.0, 0.0, 0.0),
        (passed("out_of_budget"), QUESTION, 0.0, 0.0, 0.0),
        (passed("agent_failed", failure="gave up"), QUESTION, None, None, None),
        (passed("answered", "It is unknown"), Question("q", "s", "c", "t", "?", ("unknown",), (), (), True), 1, 1, 1),
        (passed("answered", "unknown baker"), Question("q", "s", "c", "t", "?", ("unknown",), (), (), True), 0, 0, 0),
    ],
)
def test_a_row_says_how_the_pass_went(transcript, question, f1, em, set_f1):
    row = row_of(question, transcript)
    assert (row.f1, row.em, row.set_f1) == (f1 and pytest.approx(f1), em, set_f1 and pytest.approx(set_f1))
    assert (row.id, row.class_, row.template) == (question.id, question.class_, question.template)
    assert (row.question, row.golds) == (question.text, question.golds)
    assert (row.answer, row.outcome, row.failure) == (transcript.answer, transcript.outcome, transcript.failure)
    assert (row.actions, row.characters) == (len(transcript.steps), transcript.characters)
    assert row.shots == tuple(Shot(step.action, step.result) for step in transcript.steps)


def test_a_row_keeps_what_was_used_and_how_it_was_ranked_only_where_that_is_not_the_papers():
    paper = "".join(("pa", "per"))
    plain = row_of(QUESTION, passed("answered", "Cy Elm"), paper, paper)
    assert not any(name in encode(plain) for name in (b"ranking", b"usage", b"observations"))
    other = row_of(QUESTION, passed("answered", "Cy Elm", usage={"tokens": 3}), "apart", "rich")
    assert other.observations == "rich" and b'"observations":"rich"' in encode(other)
    assert (other.ranking, other.usage) == ("apart", {"tokens": 3}) and b'"ranking":"apart"' in encode(other)


def rows(*outcomes):
    """Rows of questions a, b, ... : a score, or None where the agent failed; the n-th took n actions."""
    made = []
    for n, f1 in enumerate(outcomes, 1):
        answer = {1.0: "Cy Elm", 0.5: "Cy Fir", 0.0: "nobody"}.get(f1)
        question = Question("abcdef"[n - 1], "s", "c", "t", "?", ("Cy Elm",))
        last = () if answer is None else (Step(Answer(answer), Answered(), Observation("12345")),)
        steps = (SEARCHED,) * (n - len(last)) + last
        outcome = "agent_failed" if f1 is None else "answered"
        made.append(row_of(question, Transcript("reader", outcome, steps, answer)))
    return made


def test_a_summary_is_of_questions_with_a_score():
    assert summarise(rows(1.0, None, 0.5, 0.0)) == Summary(
        n=4,
        f1=0.5,
        em=pytest.approx(1 / 3),
        set_f1=pytest.approx(1 / 3),
        actions=pytest.approx((1 + 3 + 4) / 3),
        characters=pytest.approx((5 + 5 + 2 * 14 + 5 + 3 * 14) / 3),
        outcomes={"agent_failed": 1, "answered": 3},
        gold_seen=0.0,
        f1_within=pytest.approx((1 / 3, 1 / 3, 0.5, 0.5), abs=1e-6),
    )
    shown = Question("g", "s", "c", "t", "?", ("Cy Elm",), (), ("d1",))
    found = row_of(
        shown, Transcript("reader", "out_of_budget", (SEARCHED, Step(Read("d1"), Opened("d1", ()), Observation("x"))))
    )
    assert summarise([*rows(1.0, 0.5, 0.0), found]).evidence_all_by_action == (0.0, 1.0, 1.0)
    nothing = summarise(rows(None, None))
    assert (nothing.n, nothing.f1, nothing.actions, nothing.outcomes) == (2, 0.0, 0.0, {"agent_failed": 2})


def test_whoever_watches_is_told_the_means_so_far(tmp_path):
    made = rows(None, 1.0, 0.5, 0.0)
    questions = [Question(row.id, "s", "c", "t", "?", ("Cy Elm",)) for row in made]
    said = []
    (tmp_path / "rows").write_bytes(b"".join(encode(row) + b"\n" for row in made[:1]))
    with ResultWriter(questions, tmp_path / "rows", lambda *words: said.append(words)) as sheet:
        assert [question.id for question in sheet.missing] == ["b", "c", "d"]
        for row in made[1:]:
            sheet.add(row)
            assert encode(row) in (tmp_path / "rows").read_bytes(), "on file as it comes"
    assert said == [
        (2, 4, "F1 1.000  actions 1.50"),
        (3, 4, "F1 0.750  actions 2.00"),
        (4, 4, "F1 0.500  actions 2.50"),
    ]
    assert sheet.rows == made == read_rows(tmp_path / "rows")
    alone = []
    with ResultWriter(questions[:1], None, lambda *words: alone.append(words)) as sheet:
        sheet.add(made[0])
    assert alone == [(1, 1, "")], "no score, no mean"


def test_a_sheet_that_was_broken_off_keeps_the_order_in_which_rows_came(tmp_path):
    made = rows(1.0, 0.5, 0.0)
    questions = [Question(row.id, "s", "c", "t", "?", ("Cy Elm",)) for row in made]
    with pytest.raises(KeyboardInterrupt), ResultWriter(questions, tmp_path / "rows") as sheet:
        sheet.add(made[2])
        sheet.add(made[0])
        raise KeyboardInterrupt
    assert read_rows(tmp_path / "rows") == [made[2], made[0]]
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_rows_ranked_in_another_way_are_of_another_exam(tmp_path):
    (row,) = rows(1.0)
    question = Question(row.id, "s", "c", "t", "?", ("Cy Elm",))
    (tmp_path / "rows").write_bytes(encode(row) + b"\n")
    with pytest.raises(BadInput, match="ranking paper, not apart"):
        ResultWriter([question], tmp_path / "rows", ranking="apart")


def test_broken_rows_are_named_and_what_cannot_be_read_is_said(tmp_path):
    (row,) = rows(1.0)
    for broken in (b"{}", b"\xff"):
        (tmp_path / "rows").write_bytes(encode(row) + b"\n" + broken + b"\n")
        with pytest.raises(Damaged, match="rows, line 2"):
            read_rows(tmp_path / "rows")
    with pytest.raises(BadInput):
        read_rows(tmp_path)
    (tmp_path / "rows").write_bytes(b"my notes")
    with pytest.raises(Damaged):
        read_rows(tmp_path / "rows")
    (tmp_path / "rows").write_bytes(encode(row)[:20])
    assert read_rows(tmp_path / "rows") == [], "its first row was torn"


def test_at_most_so_many_are_asked_at_once(examined):
    store, engine, questions = examined
    under_way, most = set(), []

    class Slow:
        async def act(self, view):
            under_way.add(view.task.question)
            most.append(len(under_way))
            await asyncio.sleep(0)
            under_way.discard(view.task.question)
            return Answer("x")

    for given, expected in (({}, 16), ({"concurrency": 3}, 3)):
        most.clear()
        asyncio.run(examine(store, engine, questions[:20], Slow, **given))
        assert max(most) == expected and not under_way


def test_without_a_store_the_same_reader_is_asked_beside_the_exam(tmp_path):
    seen = []

    class Searcher:
        async def act(self, view):
            seen.append(view.history[-1].observation.text if view.history else "")
            return Answer("Cy Elm") if view.history else Search("anything")

    file = no_store_file(tmp_path / "flat.jsonl")
    assert file == tmp_path / "flat.nostore.jsonl"
    settings = Settings(ranking="apart", forward_budget=2)
    found = asyncio.run(examine_without([QUESTION], Searcher, tmp_path / "flat.jsonl", settings, 16))
    assert seen == ["", "Nothing found."] and found == read_rows(file) and found[0].ranking == "paper"
    assert asyncio.run(examine_without([QUESTION], Searcher, None, settings, 16)) == found
    for facts, public in (({}, False), ({"public_text": False}, False), ({"public_text": True}, True)):
        assert is_public(World((), (), facts)) is public
