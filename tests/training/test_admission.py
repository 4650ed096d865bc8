"""Admission: edits that make the panel's answers worse never reach the store, and a replay comes to the same."""

from __future__ import annotations

import asyncio

import pytest
from family import numbered

from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.language import index_text
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api.factory import embedder_named
from kbgym.canonical import encode
from kbgym.gym.actions import Add, Delete, Done, Edit, LinkMany, Read, Search
from kbgym.gym.environment import Environment
from kbgym.gym.observations import documents, render
from kbgym.gym.policy import Backward, IndexTask
from kbgym.index_keys import IndexKey
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.store import Store, source
from kbgym.trace.events import Acted, Noted
from kbgym.trace.folder import StoreFolder
from kbgym.trace.live import LiveStore
from kbgym.training.exam import examine
from kbgym.training.gate import Gate, judged, settle
from kbgym.training.staged import stage
from kbgym.worlds.people import generate

WORLD = numbered(generate(people=60, seed=2))


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


class Lesson:
    """One lesson taught with admission at a store of its own; what was recorded, and what is left."""

    def __init__(self, folder, curator, answered=(), task=None):
        WORLD.save(folder)
        self.folder, self.events = folder, []
        self.task = task or Backward("Who?", (), ("x",), 0.0, "wrong")
        asyncio.run(self._teach(curator, answered))

    def __call__(self, event, store, observation):
        self.events.append(event)
        if isinstance(event, Acted):
            assert observation.text == render(event.result, lambda id: store[id].text)

    def clear(self):
        raise AssertionError("nothing fails here")

    async def _teach(self, curator, answered):
        live = LiveStore(
            self.folder, lambda store: live_engine_for(store, embedder_named("hash")), [self], embedder="hash"
        )
        self.before, searched = live.store.fingerprint, found(live.environment)
        gate = Gate(8, WORLD.split("eval"), ReferenceReader)
        for question in answered:
            gate.answered(question)
        made = await stage(live, curator, self.task, 30, 30)
        verdict = await judged(gate, made, 1)
        async with live.write():
            refused = not await settle(live, 1, "backward", "q", made, verdict)
            durable = live.commit()
        await durable
        if refused or verdict is None:
            assert live.store.fingerprint == self.before and found(live.environment) == searched
        self.store = live.store
        self.events.pop()  # the commit
        await live.close()


def join():
    """A question with two attributes that the flat store answers right, and what its first key is."""
    questions = [question for question in WORLD.questions if question.template == "job-and-city"]
    env = environment()
    rows = asyncio.run(examine(env.store, env.engine, questions, ReferenceReader))
    right = next(row.id for row in rows if row.f1 == 1.0)
    question = next(question for question in questions if question.id == right)
    job = next(key for key in question.keys if key.kind == "job")
    return question, IndexKey("job", job.value)


def test_edits_that_make_answers_worse_are_refused_and_leave_nothing_behind(tmp_path):
    question, key = join()
    other = next(d.id for d in WORLD.documents if f"'s job is {key.value}." in d.text and d.id not in question.support)
    events = Lesson(tmp_path / "w", Liar(key, other), answered=[question]).events
    (verdict,) = [event.data for event in events if isinstance(event, Noted) and event.kind == "gate"]
    assert verdict["verdict"] == "quarantined" and verdict["after"] < verdict["before"]
    refused = [event.data["action"]["tool"] for event in events if isinstance(event, Noted) and event.kind == "refused"]
    assert refused == ["add", "link_many", "read"], "the edits, and what was read of them"
    assert [type(event.action) for event in events if isinstance(event, Acted)] == [Search, Done]


def test_good_edits_are_admitted_and_every_step_is_recorded(tmp_path):
    question, key = join()
    task = Backward(question.text, (), question.golds, 1.0, "right", (IndexTask("job", key.value, "named"),))
    taught = Lesson(tmp_path / "w", ReferenceCurator, [question], task)
    (verdict,) = [event.data for event in taught.events if isinstance(event, Noted)]
    assert verdict["verdict"] == "admitted" and verdict["asked"] == 9
    assert any(record.flag == "authored" and record.links for record in taught.store)
    assert [event.step for event in taught.events if isinstance(event, Acted)] == list(range(1, len(taught.events)))


@pytest.mark.parametrize("liar", [False, True])
def test_a_replay_of_what_was_recorded_ends_in_the_same_store(tmp_path, liar):
    question, key = join()
    other = next(d.id for d in WORLD.documents if f"'s job is {key.value}." in d.text and d.id not in question.support)
    task = Backward(question.text, (), question.golds, 1.0, "right", (IndexTask("job", key.value, "named"),))
    taught = Lesson(tmp_path / "w", Liar(key, other) if liar else ReferenceCurator, [question], task)
    replayed = StoreFolder(taught.folder).store()
    assert [encode(record) for record in replayed] == [encode(record) for record in taught.store]
    assert encode(replayed.add("next")) == encode(taught.store.add("next")), "the next document gets the same id"


def test_deleted_and_edited_documents_come_back_to_the_search(tmp_path):
    question, _ = join()
    curator = Played(*(Delete(id) for id in question.support[:1]), Edit(question.support[1], "Nothing is known."))
    taught = Lesson(tmp_path / "w", curator, answered=[question])
    assert taught.store.fingerprint == taught.before


def test_a_pass_that_changes_nothing_is_not_judged(tmp_path):
    events = Lesson(tmp_path / "w", Played(Search("job is smith"))).events
    assert [type(event.action) for event in events] == [Search, Done]
