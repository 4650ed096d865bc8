"""The general curator and its agenda: bridges, fields and names on a small corpus, and what they leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from turns import note

from kbgym.agents.general.agenda import GeneralAgenda
from kbgym.agents.general.hops import Findings
from kbgym.agents.general.keys import TextKey, belongs, field_of, index_text, key_of_question, page_of
from kbgym.api import train
from kbgym.gym.actions import Add, LinkMany, Search
from kbgym.store import Store
from kbgym.worlds.splits import sharing, with_pages_apart
from kbgym.worlds.world import Document, Question, World

BOATS = {
    "Kestrel": "Holm Yard",
    "Petrel": "Nord Yard",
    "Dipper": "Holm Yard",
    "Gannet": "Vik Yard",
    "Fulmar": "Ness Yard",
}
YARDS = {"Holm Yard": "Ada Alm", "Nord Yard": "Bo Ek", "Vik Yard": "Cai Dahl", "Ness Yard": "Dag Fors"}


def corpus() -> World:
    texts = [f"{boat}: builder: {yard}" for boat, yard in BOATS.items()]
    texts += [f"{boat}: {boat} is painted in colour {number}." for number, boat in enumerate(BOATS)]
    texts += [f"{yard}: {yard} was founded by {who} long ago." for yard, who in YARDS.items()]
    texts += [f"{yard}: The slip has a length of {40 + n} metres." for n, yard in enumerate(YARDS)]
    texts += [f"Weather {n}: Rain was seen on day {n} over the sea." for n in range(40)]
    documents = tuple(Document(f"d{n}", text) for n, text in enumerate(texts))
    questions = [
        Question(
            f"q{n}",
            "train" if n < 3 else "test_in",
            "two",
            "",
            f"Who founded the yard that built the {boat}?",
            (YARDS[yard],),
            support=(f"d{n}", f"d{10 + list(YARDS).index(yard)}"),
        )
        for n, (boat, yard) in enumerate(BOATS.items())
    ]
    field = tuple(f"d{n}" for n in range(5))
    questions.append(
        Question("f", "train", "field", "", "Which builder has the most boats?", ("Holm Yard",), (), field)
    )
    return World(documents, tuple(questions), {"kind": "corpus"})


def trained(folder: Path, strategy: str) -> Store:
    run = train(corpus(), folder, strategy=strategy, epochs=1, embedder="hash", search="words")
    assert run.settings.reader == run.settings.curator == "general" and run.settings.observations == "rich"
    return run.store


def authored(store: Store) -> dict[str, tuple[str, ...]]:
    return {record.text: record.links for record in store if record.flag == "authored"}


def test_a_whole_field_gets_an_index_that_links_exactly_it(tmp_path: Path) -> None:
    built = authored(trained(tmp_path / "r", "paper"))
    assert set(built["builder, how many and which"]) == {f"d{n}" for n in range(5)}


def test_class_completes_pages_nobody_asked_for_and_links_only_what_names_them(tmp_path: Path) -> None:
    store = trained(tmp_path / "r", "class")
    built = authored(store)
    assert "Ness Yard" in built, "no training question leads there"
    for name in (*BOATS, *YARDS):
        if name in built:
            naming = {record.id for record in store if record.flag != "authored" and name in record.text}
            assert set(built[name]) == naming
    assert not any(answer in text for text in built for answer in YARDS.values()), "an index recites nothing"


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        trained(tmp_path / name, "class")
    assert (tmp_path / "a" / "trace.jsonl").read_bytes() == (tmp_path / "b" / "trace.jsonl").read_bytes()


def test_the_way_leads_over_the_page_that_is_named_to_the_one_that_states_the_gold() -> None:
    found = Findings("Who founded the yard that built the Kestrel?", ("Ada Alm",))
    found.see([(d.id, d.text) for d in corpus().documents])
    assert found.hops() == ["Kestrel", "Holm Yard"]


def test_a_gold_that_stands_everywhere_is_not_looked_for() -> None:
    found = Findings("Is the Kestrel painted?", ("yes",))
    found.see([("d1", "Kestrel: yes, it is."), ("d2", "Petrel: It is painted.")])
    assert found.golds == [] and found.hops() == ["Kestrel"]


@pytest.mark.parametrize(
    ("text", "page", "field"),
    [
        ("Kestrel: builder: Holm Yard", "Kestrel", "builder"),
        ("Kestrel > Hull: It is green: very.", "Kestrel", ""),
        ("Ada Alm's job is baker.", "Ada Alm", ""),
        ("Kestrel: It was built in a year that nobody knows: 1900.", "Kestrel", ""),
    ],
)
def test_pages_and_fields(text: str, page: str, field: str) -> None:
    assert (page_of(text), field_of(text)) == (page, field)


def test_what_belongs_under_a_name() -> None:
    key = TextKey("name", "Kite")
    assert belongs("Kite: keeper: Jon Eide", key) and belongs("Jon Eide looks after Kite.", key)
    assert not belongs("Kiten: status: in service", key) and not belongs("He flies a kite.", key)
    assert not belongs("Kite", key), "an index is no member"


def test_a_question_without_how_it_asks() -> None:
    assert key_of_question("What is the extension of the keeper of Drum?") == "extension of the keeper of Drum"
    assert key_of_question("In which year was it built?") == "year was it built"


def test_a_key_goes_to_one_lesson_and_a_search_without_members_is_over() -> None:
    agenda = GeneralAgenda()
    agenda.note_question("Who sails the Kestrel Major?", 1)
    page = "\n".join(f"[d{n}] {boat}: builder: {yard}" for n, (boat, yard) in enumerate(BOATS.items()))
    note(agenda, Search("builder"), page)
    first = agenda.index_tasks("Who built it?", 1)
    field = next(index_task for index_task in first if index_task.kind == "field")
    assert (field.text, len(field.known)) == (index_text(TextKey("field", "builder")), 5)
    assert field.lookups[0].page == 2, "its first page had members"
    assert not any(index_task.kind == "field" for index_task in agenda.index_tasks("Who built it?", 2))
    agenda.release(1)
    note(agenda, Search("builder", 2), "[w1] Weather 1: Rain was seen.")
    again = next(index_task for index_task in agenda.index_tasks("Who built it?", 2) if index_task.kind == "field")
    assert again.lookups == ()
    note(agenda, LinkMany("n1", tuple(f"d{n}" for n in range(4))), "Linked [n1] to 4 documents.")
    note(agenda, Search("x"), f"[n1] {field.text} (4 links)")
    unfinished = next(index_task for index_task in agenda.index_tasks("Who built it?", 2) if index_task.kind == "field")
    assert (unfinished.reason, unfinished.index, [id for id, _ in unfinished.known]) == ("incomplete", "n1", ["d4"])


def test_questions_whose_pages_are_apart() -> None:
    world = corpus()
    pages = tuple(Document(d.id, d.text, about=(page_of(d.text),)) if ": " in d.text else d for d in world.documents)
    world = World(pages, world.questions[:5], world.facts)
    assert sharing(world) == 0 or sharing(with_pages_apart(world, 1)) == 0
    moved = World(pages, tuple(_in_split(q, n) for n, q in enumerate(world.questions)), world.facts)
    assert sharing(moved) == 1 and sharing(with_pages_apart(moved, 0)) == 0
    assert with_pages_apart(moved, 3) == with_pages_apart(moved, 3)
    assert {q.id for q in with_pages_apart(moved, 0).questions} == {q.id for q in moved.questions}


def _in_split(question: Question, number: int) -> Question:
    """The Dipper's question, whose yard the Kestrel's has too, is a test question."""
    split = "test_in" if number in (2, 3) else "train"
    return Question(question.id, split, question.class_, "", question.text, question.golds, support=question.support)


def test_a_value_that_many_share_is_a_key_of_its_own_and_an_index_is_known_by_what_it_links() -> None:
    agenda = GeneralAgenda()
    texts = {f"d{n}": f"Tool {n}: category: {'saw' if n < 7 else 'file'}" for n in range(9)}
    note(agenda, Search("category"), "\n".join(f"[{id}] {text}" for id, text in texts.items()))
    question = "Which tools have the category saw?"
    agenda.note_question(question)
    value, field, *rest = [index_task for index_task in agenda.index_tasks(question) if index_task.kind != "name"]
    assert (value.value, value.reason, len(value.known)) == ("category: saw", "named", 7) and not rest
    assert (field.value, len(field.known)) == ("category", 9), "files are too few for an index of their own"
    # Whatever it is called, and though it reads like a sentence: what it links to says what it is.
    note(agenda, Add("All saws: a list"), "Added.\n[n1] All saws: a list")
    note(agenda, LinkMany("n1", ("d0", "d1", "d2", "d3", "d4")), "Linked [n1] to 5 documents.")
    found = next(index_task for index_task in agenda.index_tasks(question) if index_task.kind == "value")
    assert (found.reason, found.index, [id for id, _ in found.known]) == ("incomplete", "n1", ["d5", "d6"])
    assert next(index_task for index_task in agenda.index_tasks(question) if index_task.kind == "field").index is None
