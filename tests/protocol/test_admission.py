"""Admission: edits that make the panel's answers worse never reach the store, and a replay comes to the same."""

from __future__ import annotations

import asyncio

import pytest

from kbgym.actions import Add, Delete, Done, Edit, LinkMany, Read, Search
from kbgym.agents.base import documents
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.language import index_text
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.canonical import encode
from kbgym.environment import Environment, Nearest, apply
from kbgym.naming import Key
from kbgym.policy import Backward, Errand
from kbgym.protocol.admission import Admission
from kbgym.protocol.exam import examine
from kbgym.protocol.run import Settings
from kbgym.protocol.session import embedder_named, engine_for
from kbgym.store import Store, source
from kbgym.tools import render
from kbgym.trace.events import Acted, Noted
from kbgym.worlds.people import generate

WORLD = generate(people=60, seed=2)
SETTINGS = Settings(admission=8, embedder="hash")


class Played:
    """A curator that does what it is told."""

    def __init__(self, *actions):
        self.actions = iter(actions)

    def __call__(self):
        return self

    async def act(self, view):
        return next(self.actions, Done())


class Liar:
    """Writes an index of a key that misses everybody but one: who trusts it answers wrongly."""

    def __init__(self, key, member):
        self.key, self.member = key, member

    def __call__(self):
        return self

    async def act(self, view):
        match len(view.history):
            case 0:
                return Search("job is anything")
            case 1:
                return Add(index_text(self.key))
            case 2:
                return LinkMany(documents(view.history[-1].observation)[0][0], (self.member,))
            case 3:
                return Read(documents(view.history[1].observation)[0][0])
        return Done()


def environment() -> Environment:
    store = Store(source(document.id, document.text) for document in WORLD.documents)
    return Environment(store, engine_for(store, embedder_named("hash")))


def found(env: Environment) -> list[tuple[str, float]]:
    return [
        hit
        for query in ("job is smith", "Friends of", "lives in the city of")
        for hit in env.engine.search(query, 0, 50)
    ]


def teach(env, curator, answered=(), task=None):
    """What was recorded, and that each step could be read as the agent read it when it was."""
    admission = Admission(SETTINGS, WORLD.split("eval"), ReferenceReader, curator)
    task = task or Backward("Who?", (), ("x",), 0.0, "wrong")
    recorded, read = [], {}

    def record(event):
        recorded.append(event)
        if isinstance(event, Acted):
            read[event.step] = render(event.result, env.text_of)

    passed = asyncio.run(admission.lesson(env, task, 1, answered, record))
    assert all(passed.steps[number - 1].observation == text for number, text in read.items())
    return recorded


def join():
    """A question with two attributes that the flat store answers right, and what its first key is."""
    questions = [question for question in WORLD.questions if question.template == "job-and-city"]
    env = environment()
    rows = asyncio.run(examine(env.store, env.engine, questions, ReferenceReader))
    right = next(row.id for row in rows if row.f1 == 1.0)
    question = next(question for question in questions if question.id == right)
    job = next(key for key in question.keys if key.kind == "job")
    return question, Key("job", job.value)


def test_edits_that_make_answers_worse_are_refused_and_leave_nothing_behind():
    question, key = join()
    env = environment()
    before, searched = env.store.fingerprint, found(env)
    other = next(d.id for d in WORLD.documents if f"'s job is {key.value}." in d.text and d.id not in question.support)
    recorded = teach(env, Liar(key, other), answered=[question])
    assert env.store.fingerprint == before and found(env) == searched
    events = recorded
    (verdict,) = [event.data for event in events if isinstance(event, Noted) and event.kind == "admission"]
    assert verdict["verdict"] == "quarantined" and verdict["after"] < verdict["before"]
    refused = [event.data["action"]["tool"] for event in events if isinstance(event, Noted) and event.kind == "refused"]
    assert refused == ["add", "link_many", "read"], "the edits, and what was read of them"
    assert [type(event.action) for event in events if isinstance(event, Acted)] == [Search, Done]


def test_good_edits_are_admitted_and_every_step_is_recorded():
    question, key = join()
    env = environment()
    errands = (Errand("job", key.value, "named"),)
    task = Backward(question.text, (), question.golds, 1.0, "right", errands)
    recorded = teach(env, ReferenceCurator, [question], task)
    (verdict,) = [event.data for event in recorded if isinstance(event, Noted)]
    assert verdict["verdict"] == "admitted" and verdict["asked"] == 9
    assert any(record.flag == "authored" and record.links for record in env.store)
    assert [event.step for event in recorded if isinstance(event, Acted)] == list(range(1, len(recorded)))


@pytest.mark.parametrize("liar", [False, True])
def test_a_replay_of_what_was_recorded_ends_in_the_same_store(liar):
    question, key = join()
    env = environment()
    other = next(d.id for d in WORLD.documents if f"'s job is {key.value}." in d.text and d.id not in question.support)
    task = Backward(question.text, (), question.golds, 1.0, "right", (Errand("job", key.value, "named"),))
    recorded = teach(env, Liar(key, other) if liar else ReferenceCurator, [question], task)
    replayed = environment().store
    for event in recorded:
        if isinstance(event, Acted):
            advice = Nearest(event.result.ids) if hasattr(event.result, "ids") else event.verdict
            assert apply(replayed, event.action, advice) == event.result
    assert [encode(record) for record in replayed] == [encode(record) for record in env.store]
    assert encode(replayed.add("next")) == encode(env.store.add("next")), "the next document gets the same id"


def test_deleted_and_edited_documents_come_back_to_the_search():
    question, _ = join()
    env = environment()
    before, searched = env.store.fingerprint, found(env)
    curator = Played(*(Delete(id) for id in question.support[:1]), Edit(question.support[1], "Nothing is known."))
    teach(env, curator, answered=[question])
    assert env.store.fingerprint == before and found(env) == searched


def test_a_pass_that_changes_nothing_is_not_judged():
    env = environment()
    events = teach(env, Played(Search("job is smith")))
    assert [type(event.action) for event in events] == [Search, Done]


def test_the_panel_is_drawn_anew_and_holds_this_lessons_question():
    admission = Admission(SETTINGS, WORLD.split("eval"), ReferenceReader, ReferenceCurator)
    train = list(WORLD.split("train")[:30])
    one, other = admission.panel(1, train), admission.panel(2, train)
    assert one == admission.panel(1, train) != other
    assert train[-1] in one and len(one) == 16 and {question.split for question in one} == {"train", "eval"}
