"""The agenda keeps its lists from lesson to lesson: those it would work out anew, at a cost that does not grow."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from turns import note

from kbgym.agents.reference.agenda import ReferenceAgenda
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.kept_lists import Dependencies, KeyList
from kbgym.agents.reference.language import index_text
from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Action, Add, Delete, Edit, LinkMany, Read, Search, Unlink
from kbgym.gym.environment import Environment
from kbgym.gym.episode import play
from kbgym.gym.policy import Backward
from kbgym.index_keys import IndexKey
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.worlds.people import generate

History = list[tuple[str, tuple]]


def told(agenda: ReferenceAgenda, history: History) -> ReferenceAgenda:
    for name, given in history:
        tell(agenda, name, given)
    return agenda


def tell(agenda: ReferenceAgenda, name: str, given: tuple) -> None:
    if name == "note_turn" and len(given) == 2:
        note(agenda, *given)
    else:
        getattr(agenda, name)(*given)


def agrees(agenda: ReferenceAgenda, history: History, question: str) -> bool:
    """Return True if an agenda that kept its lists equals one that is recomputed from everything."""
    return agenda.index_tasks(question) == told(ReferenceAgenda(), history).index_tasks(question)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_is_what_would_be_worked_out_anew_whatever_happens(seed):
    world, draw = generate(people=40, seed=seed), Random(seed)
    texts = {document.id: document.text for document in world.documents}
    questions = [question.text for question in world.split("train")]
    people = [person["name"] for person in world.facts["people"]]
    agenda, history, written, number = ReferenceAgenda(), [], [], 0

    def happens(name: str, *given: object) -> None:
        history.append((name, given))
        tell(agenda, name, given)

    def shown(ids: list[str]) -> str:
        return "\n".join(f"[{id}] {texts[id]}" for id in ids)

    def acted() -> tuple[Action, str]:
        nonlocal number
        some = draw.sample(list(texts), 5)
        match draw.choice(["search", "search", "search", "owed", "add", "link", "read", "unlink", "delete", "edit"]):
            case "owed":
                owed = [one.query for index_task in agenda.index_tasks(questions[0]) for one in index_task.lookups]
                query = draw.choice(owed or ["x"])
                ids = [id for id in texts if set(query.split()[:2]) <= set(texts[id].replace("'s", "").split())]
                return Search(query), draw.choice([shown(ids[:5]), "Error: there is no page 1."])
            case "add":
                number += 1
                value = draw.choice(people)
                keys = [IndexKey("person", value), IndexKey("friend", value), IndexKey("friend", value, "job")]
                text = index_text(draw.choice(keys))
                texts[f"n{number}"] = text
                written.append(f"n{number}")
                return Add(text), f"Added.\n[n{number}] {text}"
            case "link" if written:
                id = draw.choice(written)
                own = [other for other in texts if texts[id] in texts[other] and other != id] or some
                return LinkMany(id, tuple(own)), f"Linked [{id}] to {len(own)} documents."
            case "read" if written:
                id = draw.choice(written)
                return Read(id), f"[{id}] {texts[id]}\nIt links to 5:\n{shown(some)}"
            case "unlink" if written:
                return Unlink(id := draw.choice(written), some[0]), f"Removed the link from [{id}] to [{some[0]}]."
            case "delete":
                gone = draw.choice([*written, some[0]])
                del texts[gone]
                written[:] = [id for id in written if id != gone]
                return Delete(gone), f"Deleted [{gone}] and every link to it."
            case "edit":
                texts[some[0]] = texts[some[1]]
                return Edit(some[0], texts[some[0]]), f"Edited.\n[{some[0]}] {texts[some[0]]}"
        return Search(draw.choice(people)), shown(some)

    for turn in range(400):
        if turn % 20 == 0:
            happens("note_question", draw.choice(questions))
        happens("note_turn", *acted())
        if turn % 30 == 29:
            assert agrees(agenda, history, draw.choice(questions)), f"after {turn + 1} turns"


def test_every_single_document_is_taken_into_account_where_everybody_has_an_index():
    question, draw = "What is the job of Ann Lee1?", Random(0)
    agenda, history = ReferenceAgenda(), [("note_question", (question,))]
    texts = []
    for number in range(12):
        name, parent = f"Ann Lee{number}", f"Ann Lee{(number + 5) % 12}"
        history.append(("note_turn", (Search("x"), f"[c{number}] {name} lives in the city of X.")))
        history.append(("note_turn", (Add(name), f"Added.\n[i{number}] {name}")))
        texts += [f"{name}'s job is smith.", f"{name} was born on 19{draw.randrange(10, 99)}-01-01."]
        texts += [f"{name} is a child of {parent}.", f"{parent} is the mother of {name}."]
        texts += [f"{name} is married to Bo Lee{number}.", f"{name} is a friend of {parent}."]
    told(agenda, history)
    assert agrees(agenda, history, question) and len(agenda.indexes.of) == 12
    draw.shuffle(texts)
    for number, text in enumerate(texts):
        history.append(("note_turn", (Search("x"), f"[d{number}] {text}")))
        told(agenda, history[-1:])
        assert agrees(agenda, history, question), text
        for index_task in agenda.index_tasks(question):  # so that nothing is left to do before the next
            turns = [(Search(lookup.query, lookup.page), "Nothing found.") for lookup in index_task.lookups]
            if index_task.index is not None and index_task.known:
                targets = tuple(id for id, _ in index_task.known)
                turns.append(
                    (LinkMany(index_task.index, targets), f"Linked [{index_task.index}] to {len(targets)} documents.")
                )
            history += [("note_turn", turn) for turn in turns]
            told(agenda, history[-len(turns) :] if turns else [])
        assert agrees(agenda, history, question), text
    for number in draw.sample(range(len(texts)), 20):
        history.append(("note_turn", (Delete(f"d{number}"), f"Deleted [d{number}] and every link to it.")))
        told(agenda, history[-1:])
        assert agrees(agenda, history, question), texts[number]


def test_what_a_curator_is_given_is_what_would_be_worked_out_anew():
    world = generate(people=60, seed=2)
    store = Store(source(document.id, document.text) for document in world.documents)
    environment = Environment(store, engine_for(store, embedder_named("none"), search="words"))
    agenda, history = ReferenceAgenda(), []
    for question in world.split("train")[:16]:
        history.append(("note_question", (question.text,)))
        agenda.note_question(question.text)
        assert agrees(agenda, history, question.text)
        task = Backward(question.text, (), question.golds, 0.0, "wrong", agenda.index_tasks(question.text))
        for step in asyncio.run(play(ReferenceCurator(), environment, "curator", task, 30)).steps:
            history.append(("note_turn", (step.action, step.result, store.look)))
            agenda.note_turn(step.action, step.result, store.look)


def remade(people: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of key comparisons in a lesson that learns one new fact among many people with an index."""
    agenda, question = ReferenceAgenda(), "What is the job of Ann Lee1?"
    agenda.note_question(question)
    for number in range(people):
        name = f"Ann Lee{number}"
        stated = [
            f"{name}'s job is smith{number}",
            f"{name} is a child of Bo Lee{number}",
            f"{name} lives in the city of X",
        ]
        note(agenda, Search("x"), "\n".join(f"[d{number}-{at}] {text}." for at, text in enumerate(stated)))
        note(agenda, Add(name), f"Added.\n[i{number}] {name}")
        note(agenda, LinkMany(f"i{number}", (f"d{number}-0", f"d{number}-1", f"d{number}-2")), "Linked.")
    agenda.index_tasks(question)
    note(agenda, Search("y"), "[new] Ann Lee2 is a friend of Ann Lee3.")
    made: list[IndexKey] = []
    test = Dependencies.made
    with monkeypatch.context() as patched:
        patched.setattr(
            Dependencies, "made", lambda self, of, key, how: (made.append(key), test(self, of, key, how))[1]
        )
        assert any(index_task.value == "Ann Lee2" for index_task in agenda.index_tasks(question))
    return len(made)


def test_a_lesson_tests_again_what_it_changed_however_many_people_have_an_index(monkeypatch):
    assert 0 < remade(300, monkeypatch) == remade(30, monkeypatch)


def test_a_list_is_sorted_and_tests_again_only_what_was_read():
    readings, sizes, made = Dependencies(), {"a": 2, "b": 1, "c": 0}, []

    def rank(key: IndexKey) -> int | None:
        made.append(key.value)
        readings.read(key.value)
        return sizes[key.value] or None

    kept = KeyList(readings, rank)
    for value in sizes:
        kept.doubt(IndexKey("x", value))
    assert [key.value for key in kept] == ["b", "a"] and len(kept) == 2
    sizes.update(b=3, c=1)
    readings.changed("b")
    readings.changed("nobody read this")
    made.clear()
    assert [key.value for key in kept] == ["a", "b"] and made == ["b"], "c was not said to have changed"
    sizes["a"] = 0
    readings.changed("a")
    readings.read("c")  # by nobody's test
    assert [key.value for key in kept] == ["b"]
