"""A description drafted by counting: what recurs is found, what does not is not."""

import pytest

from kbgym.worlds import describe as describing
from kbgym.worlds.describe import describe
from kbgym.worlds.world import Document, Source


def documents(*texts: str, file: str = "notes.md") -> list[Document]:
    return [Document(f"{file}{n}", text, source=Source(file, n, n + 1)) for n, text in enumerate(texts)]


BOATS = documents(
    "Boats > Small: Boat: Dipper; Type: dinghy; Owner: Nell Osgood",
    "Boats > Small: Boat: Brent; Type: pilot boat; Owner: Harbour Office",
    "Boats > Small: Boat: Turnstone; Type: dinghy; Owner: Ingrid Falk",
    file="boats.md",
)
CREWS = documents(
    "Crews: Skipper: Jonas Vael",
    "Crews: Skipper: Amos Teller",
    "Crews: The mate of Amos Teller is Lucia Brandt.",
    "On weekdays Amos Teller keeps the books; see E0382.",
    "The books of the cooperative follow rule E0382.",
    "Rule E0382 and fn_call are old. The rule on a boat is older.",
    file="crews.md",
)


def test_fields_pages_and_identifiers():
    said = describe([*BOATS, *CREWS])
    assert said.about == "9 documents from 2 pages."
    assert [(form.form, form.example) for form in said.forms] == [
        ("PAGE > SECTION: ...", "Boats > Small: ..."),
        ("PAGE: ...", "Crews: ..."),
        ("Boat: ...; Type: ...; Owner: ...", "Boats > Small: Boat: ...; Type: ...; Owner: ..."),
    ]
    assert said.keys == (
        "a page, such as Boats; Crews",
        "the field Boat, such as Brent; Dipper; Turnstone (3 documents)",
        "the field Type, such as dinghy; pilot boat (3 documents)",
        "the field Owner, such as Harbour Office; Ingrid Falk; Nell Osgood (3 documents)",
        "an identifier, such as E0382",
    )


def test_what_begins_sentences_of_several_pages_is_a_field_and_of_one_page_its_title():
    asked = [*documents("Start Date: 2001", "Start Date: 2002", file="a.md"), *documents("Start Date: 2003")]
    assert describe(asked).keys == ("the field Start Date, such as 2001; 2002; 2003 (3 documents)",)
    assert describe(documents(*(one.text for one in asked))).keys == ("a page, such as Start Date",)


def test_pages_of_a_public_set_are_what_their_documents_are_about():
    read = [Document(str(n), f"{page}: It is old.", about=(page,)) for n, page in enumerate(["Rome", "Oslo", "Rome"])]
    said = describe(read)
    assert said.keys == ("a page, such as Rome; Oslo",) and "from 2 pages" in said.about


def test_a_colon_in_a_title_makes_no_field():
    title = "Killer: A Journal"
    read = [Document(str(n), f"{title}: Killer: A Journal is film {n}.", about=(title,)) for n in range(4)]
    assert not any(key.startswith("the field") for key in describe(read).keys)
    others = [Document(f"{n}", f"{n}: Born: 19{n}0.", about=(str(n),)) for n in range(5, 9)]
    assert "the field Born, such as 1950; 1960; 1970; 1980 (4 documents)" in describe([*read, *others]).keys


def test_the_fields_of_a_table_on_one_page():
    rows = [Document(str(n), f"Landings: Boat: B{n}; Crates: {n % 2}", about=("Landings",)) for n in range(4)]
    said = describe(rows)
    assert said.keys[1:3] == (
        "the field Boat, such as B0; B1; B2; B3 (4 documents)",
        "the field Crates, such as 0; 1 (4 documents)",
    )
    assert [form.form for form in said.forms] == ["PAGE: ...", "Boat: ...; Crates: ..."]


def test_an_example_says_nothing_of_what_the_documents_say():
    rows = [f"Fees > Paid: {label}: secret{n}" for n, label in enumerate(["Berth", "Crane", "Ice"] * 3)]
    said = describe(documents(*rows, *(f"Log: releases: 1.{n}: eol: secret{n}" for n in range(4))))
    assert [form.example for form in said.forms][-1] == "Log: releases: ...: eol: ..."
    assert len(said.forms) > 4 and not any("secret" in form.example for form in said.forms)


def test_an_example_is_short():
    texts = ["; ".join(f"{'x' * 30} {n} {'y' * 5}: {n}" for n in range(12))] * 3
    assert max(len(form.example) for form in describe(documents(*texts)).forms) == 300


@pytest.mark.parametrize("texts", [[], [": "], ["a: b: c: d > e: f"], ["x" * 2000], ["_" * 2000], ["A > " * 500]])
def test_odd_documents(texts):
    assert describe(documents(*texts)).about.startswith(f"{len(texts)} documents")


def test_a_large_corpus_is_read_in_even_steps(monkeypatch):
    monkeypatch.setattr(describing, "MOST", 3)
    said = describe(documents(*(f"StoreBackend: P{n}" for n in range(9)), file=""))
    assert (
        said.about.startswith("9 documents")
        and said.keys[-1] == "the field StoreBackend, such as P0; P3; P6 (about 9 documents)"
    )


def test_a_field_within_another_is_named_with_it_and_what_most_pages_have_comes_first():
    texts = [[f"P{n}: releases: {n}.{m}: eol: 20{m}" for m in range(3)] for n in range(4)]
    read = [one for n, page in enumerate(texts) for one in documents(*page, f"P{n}: made: {n}", file=f"p{n}.md")]
    read += documents(*(f"P9: note: {n}" for n in range(9)), file="p9.md")
    keys = [key for key in describe(read).keys if "field" in key]
    assert [key.split(",")[0] for key in keys] == ["the field releases: eol", "the field made", "the field note"]
    assert keys[0].endswith("(12 documents)")
