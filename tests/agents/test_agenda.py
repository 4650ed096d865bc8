"""The agenda: fed by what passes asked and saw, and by nothing else; and the curator that works it off."""

from __future__ import annotations

import asyncio

import pytest
from turns import note

from kbgym.agents.reference.agenda import ReferenceAgenda
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.language import index_text, is_index
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.agents.reference.searching import is_doubtful
from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Add, Delete, LinkMany, Read, Search
from kbgym.gym.environment import Environment
from kbgym.gym.episode import play
from kbgym.gym.policy import Backward, Forward, IndexTask, Lookup
from kbgym.index_keys import IndexKey, KeyVocabulary
from kbgym.search.factory import engine_for
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


def keys(index_tasks: tuple[IndexTask, ...]) -> list[tuple[str, str, str, str]]:
    return [(index_task.reason, index_task.kind, index_task.value, index_task.then) for index_task in index_tasks]


@pytest.fixture
def agenda() -> ReferenceAgenda:
    agenda = ReferenceAgenda()
    agenda.note_question(QUESTION)
    return agenda


def index(agenda: ReferenceAgenda, id: str, key: IndexKey, *members: str) -> None:
    """Let the agenda see an index being written."""
    note(agenda, Add(index_text(key)), f"Added.\n[{id}] {index_text(key)}")
    note(agenda, LinkMany(id, members), f"Linked [{id}] to {len(members)} documents.")


def test_the_keys_a_question_names_come_first(agenda):
    assert keys(agenda.index_tasks(QUESTION)) == [("named", "job", "tanner", ""), ("named", "city", "Dunmere", "")]


def test_siblings_are_values_seen_of_kinds_that_were_asked_for(agenda):
    note(agenda, Search("x"), shown("d1", "d3", "d5"))
    found = keys(agenda.index_tasks(QUESTION))
    assert ("sibling", "job", "smith", "") in found and ("sibling", "city", "Ashford", "") in found
    assert not any(kind in ("hobby", "person") for _, kind, _, _ in found), "nobody asked for a person or a hobby"


def test_what_was_seen_of_a_key_and_how_far_its_search_was_read_is_known(agenda):
    note(agenda, Search("job is tanner", 1), shown("d1", "d3"))
    index_task = agenda.index_tasks(QUESTION)[0]
    assert index_task.known == (("d1", TEXTS["d1"]),)
    assert index_task.lookups == (Lookup("job is tanner", 2, 1),) and index_task.text == "People whose job is tanner"
    note(agenda, Search("job is tanner", 2), shown("d3"))
    index_task = agenda.index_tasks(QUESTION)[0]
    assert index_task.lookups == () and index_task.cost == 2, (
        "a page without a member ends it: add and link, two actions"
    )


def test_a_finished_key_is_no_task_until_a_member_turns_up_that_it_misses(agenda):
    note(agenda, Search("job is tanner", 1), shown("d1"))
    index(agenda, "n1", IndexKey("job", "tanner"), "d1")
    assert ("named", "job", "tanner", "") not in keys(agenda.index_tasks(QUESTION))
    note(agenda, Search("something else"), shown("d2"))
    index_task = next(e for e in agenda.index_tasks(QUESTION) if e.value == "tanner")
    assert (index_task.reason, index_task.index, index_task.known) == ("incomplete", "n1", (("d2", TEXTS["d2"]),))


def test_a_narrower_key_is_proposed_once_everything_under_it_was_seen(agenda):
    note(agenda, Search("job is tanner", 1), shown("d1", "d2"))
    index(agenda, "n1", IndexKey("job", "tanner"), "d1", "d2")
    note(agenda, Search("x"), shown("d4"))
    assert not any(index_task.then for index_task in agenda.index_tasks(QUESTION)), "Cy Dow's city has not been seen"
    note(agenda, Search("x"), shown("d5"))
    narrower = next(index_task for index_task in agenda.index_tasks(QUESTION) if index_task.then)
    assert (narrower.kind, narrower.value, narrower.then) == ("job", "tanner", "city")
    assert [id for id, _ in narrower.known] == ["d4", "d5"]


def test_a_key_goes_to_one_lesson_at_a_time_and_back_when_it_is_over(agenda):
    note(agenda, Search("x"), shown("d1", "d3", "d5"))
    question = "Who is the smith who lives in the city of Dunmere?"
    agenda.note_question(question, lesson=1)
    mine = keys(agenda.index_tasks(question, lesson=1))
    assert mine[:2] == [("named", "job", "smith", ""), ("named", "city", "Dunmere", "")]
    agenda.note_question(QUESTION, lesson=2)
    theirs = keys(agenda.index_tasks(QUESTION, lesson=2))
    assert not {one[1:] for one in mine} & {one[1:] for one in theirs}, "not even one both questions name"
    assert keys(agenda.index_tasks(question, lesson=1)) == mine
    agenda.release(1)
    assert ("named", "city", "Dunmere", "") in keys(agenda.index_tasks(QUESTION, lesson=2))


def test_what_a_running_lesson_names_is_nobody_elses_before_it_has_a_list(agenda):
    agenda.note_question("Who is the smith who lives in the city of Ashford?", lesson=7)
    assert not any(value in ("smith", "Ashford") for _, _, value, _ in keys(agenda.index_tasks(QUESTION, lesson=8)))
    agenda.release(7)
    assert ("asked", "job", "smith", "") in keys(agenda.index_tasks(QUESTION, lesson=8)), (
        "an earlier question, now over"
    )


def test_the_list_is_renewed_by_what_was_done_since(agenda):
    note(agenda, Search("job is tanner", 1), shown("d1"))
    assert len(agenda.index_tasks(QUESTION, lesson=1)[0].known) == 1
    note(agenda, Search("job is tanner", 2), shown("d2"))
    assert len(agenda.index_tasks(QUESTION, lesson=1)[0].known) == 2
    index(agenda, "n1", IndexKey("job", "tanner"), "d1", "d2")
    assert not any(
        index_task.value == "tanner" and not index_task.then for index_task in agenda.index_tasks(QUESTION, lesson=1)
    )


def test_a_search_ends_with_its_results(agenda):
    note(agenda, Search("job is tanner", 1), shown("d1"))
    assert agenda.index_tasks(QUESTION)[0].lookups[0].page == 2
    note(agenda, Search("job is tanner", 2), "Error: there is no page 2; the results end before it.")
    assert agenda.index_tasks(QUESTION)[0].lookups == ()


def test_a_key_nothing_is_known_of_and_nothing_can_be_found_of_is_no_task(agenda):
    note(agenda, Search("job is tanner", 1), shown("d3"))
    assert ("named", "job", "tanner", "") not in keys(agenda.index_tasks(QUESTION))


# -- the second way of asking -----------------------------------------------------------------------------------------

FAMILY = {
    "f1": "Ann Bell was born on 1920-01-02.",
    "f2": "Cy Dow is married to Ann Bell.",
    "f3": "Eve Dow is a child of Cy Dow.",
    "f4": "Eve Fox is a friend of Ann Bell.",
}


def sought(agenda: ReferenceAgenda, person: str) -> list[str]:
    index_tasks = agenda.index_tasks(f"What is the job of {person}?")
    return [lookup.query for one in index_tasks if one.value == person and not one.then for lookup in one.lookups]


def test_a_person_is_asked_about_in_several_ways_and_by_what_others_imply():
    agenda = ReferenceAgenda()
    agenda.note_question("What is the job of Ann Bell?")
    note(agenda, Search("x"), "\n".join(f"[{id}] {text}" for id, text in FAMILY.items()))
    assert sought(agenda, "Ann Bell") == [
        "Ann Bell's job, hobby and city",
        "Ann Bell is married to, is a child of, was born on",
        "Friends of Ann Bell",
        "Ann Bell mother or father of",
        "Ann Bell is married to Cy Dow",  # the other end of a relation
        "Ann Bell is a friend of Eve Fox",
        "Ann Bell mother or father of Eve Dow",  # the spouse's side
    ]
    assert "Eve Dow is a child of Ann Bell" in sought(agenda, "Eve Dow")


def test_an_index_is_doubted_when_others_imply_what_it_misses_and_each_doubt_is_asked_once():
    agenda = ReferenceAgenda()
    agenda.note_question("What is the job of Ann Bell?")
    note(agenda, Search("x"), f"[f1] {FAMILY['f1']}")
    index(agenda, "n1", IndexKey("person", "Ann Bell"), "f1")
    assert sought(agenda, "Ann Bell") == []
    note(agenda, Search("y"), f"[f4] {FAMILY['f4']}")
    (index_task,) = [one for one in agenda.index_tasks("") if one.value == "Ann Bell" and not one.then]
    assert index_task.reason == "doubted" and index_task.index == "n1" and index_task.linked == ("f1",)
    assert sought(agenda, "Ann Bell") == ["Ann Bell is a friend of Eve Fox"]
    note(agenda, Search("Ann Bell is a friend of Eve Fox"), f"[f4] {FAMILY['f4']}")
    assert sought(agenda, "Ann Bell") == []


def test_what_nearly_everybody_has_is_expected_of_the_rest():
    agenda = ReferenceAgenda()
    agenda.note_question("What is the job of P0 Q?")
    for number in range(12):
        texts = [f"P{number} Q's job is tanner.", f"P{number} Q was born on 1920-01-02."][number == 11 :]
        lines = [f"[d{number}-{place}] {text}" for place, text in enumerate(texts)]
        note(agenda, Search(f"x{number}"), "\n".join(lines))
        index(agenda, f"n{number}", IndexKey("person", f"P{number} Q"), *(f"d{number}-{p}" for p in range(len(texts))))
    assert sought(agenda, "P11 Q") == ["P11 Q's job is"] and sought(agenda, "P3 Q") == []


def test_a_search_that_ended_among_documents_that_name_the_person_is_looked_at_once_more_in_the_end():
    agenda = ReferenceAgenda()
    agenda.note_question("What is the job of Ann Bell?")
    lines = [f"[g{number}] Eve{number} Fox is a friend of Ann Bell." for number in range(3)]
    lines += [f"[h{number}] Ann Bell is a friend of Eve{number} Fox." for number in range(3)]
    note(agenda, Search("x"), "\n".join(lines))
    index(agenda, "n1", IndexKey("person", "Ann Bell"), "h0", "h1", "h2")
    note(agenda, Search("Friends of Ann Bell"), "\n".join(lines[1:4]))
    index_task = next(one for one in agenda.index_tasks("") if one.value == "Ann Bell" and not one.then)
    assert index_task.reason == "doubted" and index_task.lookups == (
        Lookup("Friends of Ann Bell", 2, 1, ("friend",), 2),
    )
    note(agenda, Search("Friends of Ann Bell", 2), "[d1] " + TEXTS["d1"])
    assert sought(agenda, "Ann Bell") == []


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_later_page_is_doubted_only_where_something_is_known_that_the_search_has_not_shown(elsewhere):
    agenda = ReferenceAgenda()
    agenda.note_question("What is the job of Ann Bell?")
    both = [
        line
        for n in range(3)
        for line in (f"Eve{n} Fox is a friend of Ann Bell.", f"Ann Bell is a friend of Eve{n} Fox.")
    ]
    lines = [f"[g{number}] {text}" for number, text in enumerate(both)]
    known = [*lines, "[k] Ida Lee is a friend of Ann Bell.", "[l] Ann Bell is a friend of Ida Lee."][
        : 8 if elsewhere else 6
    ]
    note(agenda, Search("x"), "\n".join(known))
    index(agenda, "n1", IndexKey("person", "Ann Bell"), "g1", "g3", "g5", *(["l"] if elsewhere else []))
    note(agenda, Search("Friends of Ann Bell"), "\n".join(lines[:3]))
    note(agenda, Search("Friends of Ann Bell", 2), "\n".join(lines[3:]))
    doubted = [one for one in agenda.index_tasks("") if one.value == "Ann Bell" and one.reason == "doubted"]
    assert bool(doubted) is elsewhere


@pytest.mark.parametrize(
    ("page", "number", "doubtful"),
    [
        (("Ann Bell is a friend of Ed.", "Ed is a friend of Ann Bell.", "Cy is a friend of Ann Bell."), 2, True),
        (("Ida is a friend of Ann Bell.", "Ed is a friend of Ann Bell.", "Cy is a friend of Ann Bell."), 4, True),
        (("Ann Bell is a friend of Ed.", "Ed is a friend of Ann Bell.", "Cy is a friend of Ed."), 2, False),
        (("Ann Bell is a friend of Ed.", "Ed is a friend of Cy."), 1, True),
        (("Ida is a friend of Ann Bell.", "Ed is a friend of Ann Bell."), 1, False),
    ],
)
def test_a_page_is_doubtful_where_several_name_the_person_or_the_only_page_had_a_member(page, number, doubtful):
    lookup, key = Lookup("Friends of Ann Bell", kinds=("friend",)), IndexKey("person", "Ann Bell")
    assert is_doubtful(page, number, lookup, key) is doubtful


def test_parents_are_guessed_only_where_the_page_about_the_family_was_full_of_the_person():
    agenda = ReferenceAgenda()
    agenda.note_question("What is the job of P0 Q?")
    for number in range(12):
        note(agenda, Search(f"x{number}"), f"[d{number}] P{number} Q is a child of Max Q.")
        index(agenda, f"n{number}", IndexKey("person", f"P{number} Q"), f"d{number}")
    full, ended = "[f1] Ann Bell was born on 1920-01-02.", "[f2] Eve Fox was born on 1920-01-03."
    note(agenda, Search("Ann Bell is married to, is a child of, was born on"), full)
    note(
        agenda, Search("Eve Fox is married to, is a child of, was born on"), f"{ended}\n[d0] P0 Q is a child of Max Q."
    )
    note(agenda, Search("y"), "[f3] Cy Dow was born on 1920-01-04.")
    guess = {name: f"{name} is a child of" in sought(agenda, name) for name in ("Ann Bell", "Eve Fox", "Cy Dow")}
    assert guess == {"Ann Bell": True, "Eve Fox": False, "Cy Dow": False}


def test_the_jobs_of_brothers_wait_until_one_knows_who_is_a_brother():
    agenda = ReferenceAgenda()
    agenda.note_question("What is the job of the brother of Ann Bell?")
    siblings = ("Cy", "Gus", "Ida")
    lines = [f"[p{name}] Max Bell is the father of {name} Bell." for name in ("Ann", *siblings)]
    lines += [f"[j{name}] {name} Bell's job is tanner." for name in siblings]
    lines += [f"[c{name}] {name} Bell is the father of {name} Dow." for name in siblings[:2]]
    note(agenda, Search("x"), "\n".join(lines))
    index(agenda, "n1", IndexKey("person", "Ann Bell"), "pAnn")
    assert not any(index_task.then for index_task in agenda.index_tasks("")), "Ida may be a brother or a sister"
    note(agenda, Search("y"), "[c3] Ida Bell is the mother of Ida Dow.")
    (index_task,) = [one for one in agenda.index_tasks("") if one.then]
    assert (index_task.text, [id for id, _ in index_task.known]) == ("Jobs of brothers of Ann Bell", ["jCy", "jGus"])


def test_a_deleted_index_or_document_is_forgotten(agenda):
    note(agenda, Search("job is tanner", 1), shown("d1", "d2"))
    index(agenda, "n1", IndexKey("job", "tanner"), "d1", "d2")
    note(agenda, Delete("n1"), "Deleted [n1] and every link to it.")
    note(agenda, Delete("d2"), "Deleted [d2] and every link to it.")
    index_task = next(e for e in agenda.index_tasks(QUESTION) if e.value == "tanner")
    assert index_task.index is None and index_task.known == (("d1", TEXTS["d1"]),)


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
    vocabulary = KeyVocabulary()
    vocabulary.know("person" if key.kind == "friend" else key.kind, key.value)
    assert vocabulary.key(text) == key and is_index(text, key)
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
        task = Backward(question.text, (), question.golds, 0.0, "wrong", agenda.index_tasks(question.text))
        transcript = asyncio.run(play(ReferenceCurator(), environment, "curator", task, 30))
        for step in transcript.steps:
            agenda.note_turn(step.action, step.result, store.look)
        assert len(transcript.steps) <= 30
        assert not [record for record in store if record.flag == "authored" and not record.links]
    assert sum(record.flag == "authored" for record in store) > 30


def test_an_index_whose_facts_changed_is_gone_over_again_from_the_first_page(agenda):
    note(agenda, Search("job is tanner", 1), shown("d1", "d2"))
    index(agenda, "n1", IndexKey("job", "tanner"), "d1", "d2")
    again = agenda.task_for("n1")
    assert (again.kind, again.value, again.reason, again.index) == ("job", "tanner", "changed", "n1")
    assert [lookup.page for lookup in again.lookups] == [1]
    assert agenda.index_text(again) == "People whose job is tanner"
    assert agenda.task_for("d1") is None, "no index"


def test_parents_are_looked_for_where_most_have_some(agenda):
    for number in range(12):
        note(agenda, Search("x"), f"[j{number}] Ann Lee{number}'s job is smith.\n")
        if number < 8:
            note(agenda, Search("x"), f"[p{number}] Ann Lee{number} is a child of Bo Lee{number}.\n")
        note(agenda, Add(f"Ann Lee{number}"), f"Added.\n[i{number}] Ann Lee{number}")
        note(agenda, LinkMany(f"i{number}", (f"j{number}",)), f"Linked [i{number}] to 1 document.")
    queries = {
        index_task.value: [
            lookup.query for lookup in agenda.index_task(IndexKey("person", index_task.value), "doubted").lookups
        ]
        for index_task in agenda.index_tasks("What is the job of Ann Lee1?")
        if index_task.kind == "person"
    }
    assert "Ann Lee9 is a child of" in queries["Ann Lee9"]
    assert "Ann Lee2 is a child of" not in queries.get("Ann Lee2", [])


@pytest.mark.parametrize(("year", "sought"), [(1899, False), (1901, True)])
def test_no_parents_are_looked_for_of_who_was_born_before_everybody_who_has_some(agenda, year, sought):
    for number in range(12):
        texts = [
            f"Ann Lee{number} was born on {1900 + number}-01-01.",
            f"Ann Lee{number} is a child of Bo Lee{number}.",
        ]
        if number == 9:
            texts = [f"Ann Lee9 was born on {year}-05-05."]
        note(agenda, Search("x"), "\n".join(f"[d{number}-{place}] {text}" for place, text in enumerate(texts)))
        index(
            agenda, f"i{number}", IndexKey("person", f"Ann Lee{number}"), *(f"d{number}-{p}" for p in range(len(texts)))
        )
    agenda.index_tasks("What is the job of Ann Lee1?")
    lookups = agenda.index_task(IndexKey("person", "Ann Lee9"), "doubted").lookups
    assert ("Ann Lee9 is a child of" in [lookup.query for lookup in lookups]) is sought


def test_indexes_of_a_family_lead_to_each_other_where_there_is_more_to_find(agenda):
    question = "How many grandchildren does Ann Bell have?"
    agenda.note_question(question)
    child, parent = "Cy Dow is a child of Ann Bell.", "Ann Bell is the mother of Cy Dow."
    note(agenda, Search("x"), f"[c] {child}\n[p] {parent}")
    index(agenda, "n1", IndexKey("person", "Cy Dow"), "c")
    ann = IndexKey("person", "Ann Bell")
    assert agenda.index_task(ann, "named").known == (("p", parent),), "Cy Dow has no children to go on to"
    note(agenda, Search("y"), "[g] Cy Dow is the father of Ida Dow.\n[q] Ann Bell is the mother of Eve Dow.")
    assert ("n1", "Cy Dow") in agenda.index_task(ann, "named").known, "who reads about Ann Bell can go on to Cy Dow"
    note(agenda, LinkMany("n1", ("g",)), "Linked [n1] to 1 document.")
    index(agenda, "n2", ann, "p", "q", "n1")
    found = [
        index_task
        for index_task in agenda.index_tasks(question)
        if index_task.value == "Cy Dow" and not index_task.then
    ]
    assert [(index_task.reason, index_task.index, index_task.known) for index_task in found] == [
        ("incomplete", "n1", (("n2", "Ann Bell"),))
    ], "and back, as Ann Bell has another child"
    note(agenda, LinkMany("n1", ("n2",)), "Linked [n1] to 1 document.")
    assert not [
        index_task for index_task in agenda.index_tasks(question) if index_task.known and index_task.value == "Cy Dow"
    ]


def test_a_reader_goes_from_index_to_index_without_a_search():
    texts = {
        "Ada Alm is the mother of Bo Alm.": "m1",
        "Bo Alm is the father of Cy Alm.": "m2",
        "Bo Alm is a friend of Ada Ek.": "f1",
    }
    store = Store([source(id, text) for text, id in texts.items()])
    ada, bo = store.add("Ada Alm"), store.add("Bo Alm")
    store.link(ada, ["m1", bo])
    store.link(bo, ["m2", "f1"])
    engine = engine_for(store, embedder_named("hash"))
    task = Forward("How many grandchildren does Ada Alm have?")
    played = asyncio.run(play(ReferenceReader(), Environment(store, engine), "reader", task, 15))
    reads = [step.action.id for step in played.steps if isinstance(step.action, Read)]
    searches = [step.action.query for step in played.steps if isinstance(step.action, Search)]
    assert played.answer == "1" and reads[:2] == [ada, bo]
    assert not any("Bo Alm" in query for query in searches)
