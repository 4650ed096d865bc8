"""The general curator: the evidence of an expected answer, aliases, values of fields, and what is left alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from turns import note

from kbgym.agents.general.agenda import GeneralAgenda
from kbgym.agents.general.curator import GeneralCurator
from kbgym.agents.general.evidence import Findings
from kbgym.agents.general.fields import Field, fields_of, holds, page_of
from kbgym.api import train
from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Add, LinkMany, Search
from kbgym.gym.environment import Environment
from kbgym.gym.episode import play
from kbgym.gym.policy import Backward
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.worlds.splits import sharing, with_pages_apart
from kbgym.worlds.world import Document, Question, World

BOATS = {"Kestrel": "Holm Yard", "Petrel": "Nord Yard", "Dipper": "Holm Yard", "Gannet": "Vik Yard"}
YARDS = {"Holm Yard": "Ada Alm", "Nord Yard": "Bo Ek", "Vik Yard": "Cai Dahl"}
TEXTS = {
    **{
        f"b{n}": f"{boat}: builder: {yard}; colour: {'grey' if n % 2 else 'white'}; launched: 190{n}-05-01."
        for n, (boat, yard) in enumerate(BOATS.items())
    },
    **{f"y{n}": f"{yard}: {yard} was founded by {who} long ago." for n, (yard, who) in enumerate(YARDS.items())},
    **{f"w{n}": f"Weather {n}: Rain was seen on day {n} over the sea." for n in range(20)},
    "w20": "Weather 20: On 1900-05-01 it was dry.",
}


def supporting(question, answers, documents):
    found = Findings(question, answers)
    found.see(documents)
    return found.evidence()


def corpus() -> World:
    documents = tuple(Document(id, text) for id, text in TEXTS.items())
    asked = [(f"q{n}", f"Who founded the yard that built the {boat}?") for n, boat in enumerate(BOATS)]
    questions = tuple(
        Question(id, "train", "two", "", text, (YARDS[yard],), support=(f"b{id[1:]}",))
        for (id, text), yard in zip(asked, BOATS.values(), strict=True)
    )
    return World(documents, questions, {"kind": "corpus"})


def taught(question: str, *answers: str, texts: dict[str, str] = TEXTS) -> dict[str, tuple[str, ...]]:
    """Return the links of each text that one lesson writes."""
    store = Store(source(id, text) for id, text in texts.items())
    engine = engine_for(store, embedder_named("hash"), search="words")
    task = Backward(question, (), answers, 0.0, "wrong")
    asyncio.run(play(GeneralCurator(), Environment(store, engine, observations="rich"), "curator", task, 30))
    return {record.text: record.links for record in store if record.flag == "authored"}


def test_an_alias_has_the_questions_words_and_links_the_evidence_and_what_leads_to_it() -> None:
    ((text, links),) = taught("Who founded the yard that built the Kestrel?", "Ada Alm").items()
    assert text.startswith(
        "Who founded the yard that built the Kestrel. Holm Yard: Holm Yard was founded by ___ long ago."
    )
    assert set(links) == {"y0", "b0"} and "Ada Alm" not in text


def test_a_document_that_states_the_answer_by_chance_is_no_evidence() -> None:
    assert list(taught("When was the Kestrel launched?", "1900-05-01", "1 May 1900").values()) == [("b0",)]
    assert taught("When was the Kestrel launched?", "1977-01-01") == {}
    assert taught("Who founded the Zebra?", "unknown") == {}
    seen = [("a", "Rex: It ended in 2001."), ("b", "Kestrel: It did begin in 2001.")]
    assert supporting("When did the Kestrel begin?", ["2001"], seen) == ["b"]
    assert supporting("When did the Kestrel begin?", ["2001"], seen[:1]) == []
    assert supporting("When did it begin?", ["2001"], [*seen, ("c", "Gull: It began early.")]) == ["b"]


def test_a_word_that_begins_a_sentence_names_nothing() -> None:
    """The answer is another page's. That page has the question's capitalised verb, but not the name it asks about."""
    documents = [
        ("e", "Eider: launched: 1903-05-01; refit: 1950-02-01."),
        ("t", "Tern: launched: 1951-06-02. The owners give the date of the refit in a letter: 1960-01-02."),
        ("g", "Gull: the harbour lists no refit."),
    ]
    question = "When was the refit of the Eider? Give the date."
    assert supporting(question, ["1950-02-01"], documents) == ["e"]
    assert supporting(question, ["1960-01-02"], documents) == []


def test_a_list_completes_the_value_that_its_members_share() -> None:
    assert taught("Which boats are grey?", "Petrel, Gannet") == {"colour: grey. Which boats are grey?": ("b1", "b3")}
    assert taught("How many boats have the colour white?", "2") == {
        "colour: white. How many boats have the colour white?": ("b0", "b2")
    }
    assert taught("How many boats have the colour white?", "7") == {}, "the count says that some are missing"


def test_a_question_over_all_pages_gets_the_whole_field() -> None:
    question = "Which boat was launched first?"
    assert taught(question, "Kestrel") == {f"launched of every page. {question}": ("b0", "b1", "b2", "b3")}
    assert "launched of every page" not in "".join(taught("When was the Kestrel launched?", "1900-05-01"))


def test_a_list_without_a_common_value_links_its_members() -> None:
    texts = {**TEXTS, "m": "Kestrel: Ann sails it.", "n": "Petrel: Ann sails it, too."}
    ((text, links),) = taught("What does Ann sail?", "Kestrel, Petrel", texts=texts).items()
    assert text.startswith("What does Ann sail.") and set(links) == {"m", "n"}


def test_a_comparison_links_the_page_of_each_name() -> None:
    ((_, links),) = taught("Which was launched first, the Kestrel or the Petrel?", "Kestrel").items()
    assert set(links) == {"b0", "b1"}


def test_an_alias_is_written_once() -> None:
    question = "Who founded the yard that built the Kestrel?"
    ((text, _),) = taught(question, "Ada Alm").items()
    assert taught(question, "Ada Alm", texts={"n9": text, **TEXTS}) == {}


def test_training_repeats_byte_for_byte(tmp_path: Path) -> None:
    for name in ("a", "b"):
        train(corpus(), tmp_path / name, strategy="class", epochs=1, embedder="hash", search="words", gate=0)
    assert (tmp_path / "a" / "trace.jsonl").read_bytes() == (tmp_path / "b" / "trace.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("text", "page", "fields"),
    [
        ("Kestrel: builder: Holm Yard", "Kestrel", [("builder", "Holm Yard")]),
        (
            "Kestrel: tags: old fast; year: 1900.",
            "Kestrel",
            [("tags", t) for t in ("old fast", "old", "fast")] + [("year", "1900")],
        ),
        (
            "Kestrel: releases: cycle 10: eol: 2035-05-31. cycle 9: lts: true",
            "Kestrel",
            [("eol", "2035-05-31"), ("lts", "true")],
        ),
        ("Kestrel > Hull: It is green: very.", "Kestrel", [("It is green", "very")]),
        ("Ada Alm's job is baker.", "Ada Alm", []),
        ("Kestrel: It was built in a year that is not known: 1900.", "Kestrel", []),
    ],
)
def test_pages_and_fields(text: str, page: str, fields: list[tuple[str, str]]) -> None:
    assert (page_of(text), list(fields_of(text))) == (page, [Field(*one) for one in fields])


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("Version 7.2 and later", "7.2", True),
        ("Version 7.2.1", "7.2", False),
        ("Version 17.2", "7.2", False),
        ("It ends on 7.2.", "7.2", True),
        ("the café", "Cafe", True),
        ("anything", "?", False),
    ],
)
def test_words_are_found_as_a_whole(text: str, words: str, found: bool) -> None:
    assert holds(text, words) == found


def test_the_agenda_wants_other_values_of_fields_that_questions_ask_by() -> None:
    agenda = GeneralAgenda()
    kinds = ("saw", "saw", "saw", "saw", "file", "file", "file", "axe")
    texts = {f"d{n}": f"Tool {n}: category: {kind}; size: 1" for n, kind in enumerate(kinds)}
    note(agenda, Search("category"), "\n".join(f"[{id}] {text}" for id, text in texts.items()))
    assert agenda.index_tasks("Which tools are saws?", 1) == (), "nothing was asked by yet"
    note(agenda, Add("category: saw. Which tools are saws?"), "Added.\n[n1] category: saw. Which tools are saws?")
    note(agenda, LinkMany("n1", ("d0", "d1", "d2")), "Linked [n1] to 3 documents.")
    unfinished, sibling = agenda.index_tasks("Which tools are saws?", 1)
    assert (unfinished.reason, unfinished.index, [id for id, _ in unfinished.known]) == ("incomplete", "n1", ["d3"])
    assert (sibling.text, sibling.reason) == ("category: file", "sibling")
    assert len(sibling.known) == 3 and len(sibling.lookups) == 1
    assert agenda.index_tasks("Which tools?", 2) == (), "they are the first lesson's"
    agenda.release(1)
    note(agenda, Search("category: file"), "[d4] Tool 4: category: file; size: 1")
    assert [len(task.lookups) for task in agenda.index_tasks("Which tools?", 2)] == [1, 0]
    assert agenda.task_for("n1") is not None and agenda.task_for("d0") is None


def test_questions_whose_pages_are_apart() -> None:
    world = corpus()
    pages = tuple(Document(d.id, d.text, about=(page_of(d.text),)) for d in world.documents)
    moved = World(pages, tuple(_in_split(q, n) for n, q in enumerate(world.questions)), world.facts)
    assert sharing(moved) == 1 and sharing(with_pages_apart(moved, 0)) == 0
    assert with_pages_apart(moved, 3) == with_pages_apart(moved, 3)
    assert {q.id for q in with_pages_apart(moved, 0).questions} == {q.id for q in moved.questions}


def _in_split(question: Question, number: int) -> Question:
    """The Dipper's question, whose yard the Kestrel's has too, is a test question."""
    split = "test_in" if number in (2, 3) else "train"
    support = (f"b{number}", f"y{list(YARDS).index(list(BOATS.values())[number])}")
    return Question(question.id, split, question.class_, "", question.text, question.golds, support=support)
