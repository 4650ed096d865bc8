"""New documents that belong under an index: only where the rule describes the index as it stands."""

import pytest

from kbgym.corpus.store_update import belonging
from kbgym.store import Record, Store
from kbgym.worlds.world import Document


def store(index: str, members: tuple[str, ...], others: tuple[str, ...]) -> Store:
    records = [Record(f"m{n}", text) for n, text in enumerate(members)]
    records += [Record(f"o{n}", text) for n, text in enumerate(others)]
    links = tuple(f"m{n}" for n in range(len(members)))
    return Store([*records, Record("i", index, links, flag="authored")])


OWNED = ("Kestrel: Owner: Ingrid Falk", "Turnstone: Owner: Ingrid Falk", "Ingrid Falk bought a winch.")
OTHERS = ("Petrel: Owner: Amos Teller", "Dipper: Owner: Nell Osgood", "Kestrel: Built: 1987")


@pytest.mark.parametrize(
    ("index", "new", "by"),
    [
        ("Everything about Ingrid Falk.", "Heron: Owner: Ingrid Falk", ["words"]),
        ("Everything about Ingrid Falk.", "Heron: Owner: Amos Teller", []),
        ("What one family has", "Heron: Owner: Ingrid Falk", ["majority"]),
        ("What one family has", "Heron: Builder: Ingrid Dunmore", []),
        ("Owners", "Heron: Owner: Ingrid Falk", ["majority"]),
    ],
)
def test_by_words_or_by_most_documents(index, new, by):
    found = belonging(store(index, OWNED, OTHERS), [Document("new", new)])
    assert [(one.index, one.document, one.by) for one in found] == [("i", "new", rule) for rule in by]


def test_a_rule_that_many_others_fit_is_none():
    many = tuple(f"Boat{n}: Owner: Ingrid Falk" for n in range(10))
    assert belonging(store("Everything about Ingrid Falk.", OWNED, many), [Document("new", "Heron: Ingrid Falk")]) == ()


def test_an_index_of_one_document_says_nothing():
    assert (
        belonging(store("About Ingrid Falk", OWNED[:1], OTHERS), [Document("new", "Heron: Owner: Ingrid Falk")]) == ()
    )


def test_nothing_new_nothing_found():
    assert belonging(store("About Ingrid Falk", OWNED, OTHERS), []) == ()
