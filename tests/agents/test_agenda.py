"""The agenda: fed by what passes asked and saw, and by nothing else; and the curator that works it off."""

from __future__ import annotations

import asyncio

import pytest

from kbgym.actions import Add, Delete, LinkMany, Search
from kbgym.agents.reference.agenda import ReferenceAgenda
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.language import IndexKey, index_key, index_text, is_index
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.artefact.parts import embedder_named, engine_for
from kbgym.environment import Environment
from kbgym.episode import play
from kbgym.policy import Backward, Errand, Forward
from kbgym.store import Store, source
from kbgym.worlds.people import generate

TEXTS = {
    "d1": "Ann Bell's job is tanner.",
    "d2": "Cy Dow's job is tanner.",
    "d3": "Eve Fox's job is smith.",
    "d4": "Ann Bell lives in the city of Dunmere.",
    "d5": "Cy Dow lives in the city of Ashford.",
    "d6": "Eve Fox lives in the city of Dunmere.",
}
QUESTION = "Who is the tanner who lives in the city of Dunmere?"


def shown(*ids: str) -> str:
    return "\n".join(f"[{id}] {TEXTS[id]}" for id in ids)


def keys(errands: tuple[Errand, ...]) -> list[tuple[str, str, str, str]]:
    return [(errand.reason, errand.kind, errand.value, errand.then) for errand in errands]


@pytest.fixture
def agenda() -> ReferenceAgenda:
    agenda = ReferenceAgenda()
    agenda.note_question(QUESTION)
    return agenda


def index(agenda: ReferenceAgenda, id: str, key: IndexKey, *members: str) -> None:
    """Let the agenda see an index being written."""
    agenda.note_turn(Add(index_text(key)), f"Added.\n[{id}] {index_text(key)}")
    agenda.note_turn(LinkMany(id, members), f"Linked [{id}] to {len(members)} documents.")


def test_the_keys_a_question_names_come_first(agenda):
    assert keys(agenda.errands(QUESTION)) == [("named", "job", "tanner", ""), ("named", "city", "Dunmere", "")]


def test_siblings_are_values_seen_of_kinds_that_were_asked_for(agenda):
    agenda.note_turn(Search("x"), shown("d1", "d3", "d5"))
    found = keys(agenda.errands(QUESTION))
    assert ("sibling", "job", "smith", "") in found and ("sibling", "city", "Ashford", "") in found
    assert not any(kind in ("hobby", "person") for _, kind, _, _ in found), "nobody asked for a person or a hobby"


def test_what_was_seen_of_a_key_and_how_far_its_search_was_read_is_known(agenda):
    agenda.note_turn(Search("job is tanner", 1), shown("d1", "d3"))
    errand = agenda.errands(QUESTION)[0]
    assert errand.known == (("d1", TEXTS["d1"]),) and errand.page == 2


def test_a_finished_key_is_no_errand_until_a_member_turns_up_that_it_misses(agenda):
    agenda.note_turn(Search("job is tanner", 1), shown("d1"))
    index(agenda, "n1", IndexKey("job", "tanner"), "d1")
    assert ("named", "job", "tanner", "") not in keys(agenda.errands(QUESTION))
    agenda.note_turn(Search("something else"), shown("d2"))
    errand = next(e for e in agenda.errands(QUESTION) if e.value == "tanner")
    assert (errand.reason, errand.index, errand.known) == ("unfinished", "n1", (("d2", TEXTS["d2"]),))


def test_a_narrower_key_is_proposed_once_everything_under_it_was_seen(agenda):
    agenda.note_turn(Search("job is tanner", 1), shown("d1", "d2"))
    index(agenda, "n1", IndexKey("job", "tanner"), "d1", "d2")
    agenda.note_turn(Search("x"), shown("d4"))
    assert not any(errand.then for errand in agenda.errands(QUESTION)), "Cy Dow's city has not been seen"
    agenda.note_turn(Search("x"), shown("d5"))
    narrower = next(errand for errand in agenda.errands(QUESTION) if errand.then)
    assert (narrower.kind, narrower.value, narrower.then) == ("job", "tanner", "city")
    assert [id for id, _ in narrower.known] == ["d4", "d5"]


def test_a_deleted_index_or_document_is_forgotten(agenda):
    agenda.note_turn(Search("job is tanner", 1), shown("d1", "d2"))
    index(agenda, "n1", IndexKey("job", "tanner"), "d1", "d2")
    agenda.note_turn(Delete("n1"), "Deleted [n1] and every link to it.")
    agenda.note_turn(Delete("d2"), "Deleted [d2] and every link to it.")
    errand = next(e for e in agenda.errands(QUESTION) if e.value == "tanner")
    assert errand.index is None and errand.known == (("d1", TEXTS["d1"]),)


@pytest.mark.parametrize(
    "key",
    [
        IndexKey("job", "tanner"),
        IndexKey("hobby", "kite flying"),
        IndexKey("city", "Dunmere"),
        IndexKey("person", "Ann Bell"),
        IndexKey("friend", "Ann Bell"),
        IndexKey("job", "tanner", "city"),
        IndexKey("friend", "Ann Bell", "job"),
        IndexKey("city", "Dunmere", "hobby"),
    ],
)
def test_an_index_is_recognised_by_its_own_wording_and_by_no_other_key(key):
    text = index_text(key)
    assert index_key(text) == key and is_index(text, key)
    assert not is_index(text, IndexKey(key.kind, "Somebody Else", key.then))
    if key.then:
        assert not is_index(text, key.base)
    else:
        assert not is_index(text, IndexKey(key.kind, key.value, "born"))


def test_a_reader_answers_from_a_narrower_index_in_three_actions():
    store = Store(source(id, text) for id, text in TEXTS.items())
    narrower = store.add(index_text(IndexKey("job", "tanner", "city")))
    store.link(narrower, ["d4", "d5"])
    environment = Environment(store, engine_for(store, embedder_named("hash")))
    transcript = asyncio.run(play(ReferenceReader(), environment, "reader", Forward(QUESTION), 15))
    assert transcript.answer == "Ann Bell" and len(transcript.steps) == 3


def test_the_curator_spends_its_whole_budget_on_the_agenda_and_writes_both_halves_or_neither():
    world = generate(people=120, seed=1)
    store = Store(source(document.id, document.text) for document in world.documents)
    environment = Environment(store, engine_for(store, embedder_named("hash")))
    agenda = ReferenceAgenda()
    for question in world.split("train")[:15]:
        agenda.note_question(question.text)
        task = Backward(question.text, (), question.golds, 0.0, "wrong", agenda.errands(question.text))
        transcript = asyncio.run(play(ReferenceCurator(), environment, "curator", task, 30))
        for step in transcript.steps:
            agenda.note_turn(step.action, step.observation)
        assert len(transcript.steps) <= 30
        assert not [record for record in store if record.flag == "authored" and not record.links]
    assert sum(record.flag == "authored" for record in store) > 30


def test_an_index_is_named_and_recognised_by_the_agenda(agenda):
    again = agenda.errand_of("People who live in the city of Aford")
    assert (
        again == Errand("city", "Aford", "unfinished")
        and agenda.index_text(again) == "People who live in the city of Aford"
    )
    assert agenda.errand_of("Ada Alm lives in the city of Lund.") is None
