"""The key that an index sentence names, in lenient wordings; and sentences that state an answer instead."""

import pytest
from family import family

from kbgym.analysis.audit import Resolver, seems_answer, states_answer, telling_words
from kbgym.worlds.kinds import kind_of

TRUTH = kind_of(family()).truth(family())
RESOLVER = Resolver(TRUTH)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Residents of Lund", "city", "Lund"),
        ("People who live in Lund.", "city", "Lund"),
        ("People who live in the city of Lund", "city", "Lund"),
        ("Lund residents", "city", "Lund"),
        ("Index of all people living in lund:", "city", "Lund"),
        ("Lund", "city", "Lund"),
        ("Everyone who lives in Lund", "city", "Lund"),
        ("People whose hobby is ice hockey", "hobby", "ice hockey"),
        ("Ice hockey enthusiasts", "hobby", "ice hockey"),
        ("baker", "job", "baker"),
        ("Bakers", "job", "baker"),
        ("Ferrymen", "job", "ferryman"),
        ("People who work as a baker", "job", "baker"),
        ("All documents about people with the job baker", "job", "baker"),
        ("Ada Alm", "person", "Ada Alm"),
        ("Ada Alm.", "person", "Ada Alm"),
        ("Everything known about Ada Alm", "person", "Ada Alm"),
        ("Facts about Ada Bok", "person", "Ada Bok"),
        ("Friends of Ada Alm", "friend", "Ada Alm"),
        ("Ada Alm's friends", "friend", "Ada Alm"),
        ("Ada Alm’s friends", "friend", "Ada Alm"),
        ("People who are friends of Ada Alm", "friend", "Ada Alm"),
        ("Children of Ada Alm", "child", "Ada Alm"),
        ("Kids of Ada Alm", "child", "Ada Alm"),
        ("The spouse of Cy Alm", "spouse", "Cy Alm"),
        ("Parents of Fay Alm", "parent", "Fay Alm"),
        ("Siblings of Fay Alm", "sibling", "Fay Alm"),
        ("Fay Alm's brothers", "brother", "Fay Alm"),
        ("Grandchildren of Ada Alm", "child.child", "Ada Alm"),
        ("Children of Ada Alm's children", "child.child", "Ada Alm"),
        ("Grandsons of Ada Alm", "child.son", "Ada Alm"),
        ("Friends of Dot Alm's spouse", "spouse.friend", "Dot Alm"),
        ("Friends of the spouse of Dot Alm", "spouse.friend", "Dot Alm"),
        ("Dot Alm's spouse's friends", "spouse.friend", "Dot Alm"),
        ("Father-in-law of Eve Ek", "spouse.father", "Eve Ek"),
        ("Jobs of Ada Alm's friends", "friend.job", "Ada Alm"),
        ("Birth dates of residents of Lund", "city.birth", "Lund"),
        ("Cities of people whose job is baker.", "job.city", "baker"),
        ("About Ada Alm.", "person", "Ada Alm"),
        ("The job of these people is baker.", "job", "baker"),
    ],
)
def test_resolved(text, kind, value):
    key = RESOLVER.key(text)
    assert key is not None and (key.kind, key.value) == (kind, value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Residents of Atlantis",
        "Bakers in Lund",
        "Residents of Lund born in 1930",
        "Friends of Ada Alm and Fay Alm",
        "Friends of Ada",
        "Friends of Ada Alm who are bakers",
        "Ada Alm's job",
        "Enemies of Ada Alm",
        "People",
    ],
)
def test_no_single_key(text):
    assert RESOLVER.key(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Friends of Ada Alm: Ian Ost and Kim Fox",
        "Ada Alm's friends are Ian Ost, Kim Fox.",
        "Residents of Lund: Ada Alm, Bo Alm",
        "Grandchildren of Ada Alm include Fay Alm and Gus Alm",
        "The spouse of Cy Alm is Eve Ek.",
        "Common friend of Ada Alm and Fay Alm: Kim Fox",
        "Ada Alm lives in Lund.",
        "Ada Alm is a friend of Kim Fox.",
        "The baker living in Lund is Ada Alm.",
        "Ada Alm has two children",
        "Number of grandchildren of Ada Alm: 3",
    ],
)
def test_an_answer(text):
    assert states_answer(text, RESOLVER, TRUTH)


@pytest.mark.parametrize(
    "text",
    [
        "Friends of Ada Alm",
        "Common friends of Ada Alm and Fay Alm",
        "Ada Alm",
        "Residents of Lund",
        "People who live in the city of Lund",
        "Everybody who lives in the city of Lund",
        "Friends of Ian Ost whose job is baker",
        "Bakers in Lund",
        "Index: friends of Ada Alm",
    ],
)
def test_no_answer(text):
    assert not states_answer(text, RESOLVER, TRUTH)


def test_without_a_truth_the_shape_and_the_targets_decide():
    targets = ["Ada Alm lives in Lund.", "Bo Alm lives in Lund.", "Kim Fox lives in Lund."]
    assert not seems_answer("People who live in Lund", targets)
    assert not seems_answer("Everybody who lives in the city of Lund", targets)
    assert seems_answer("In Lund live Ada, Bo and Kim", targets)
    assert seems_answer("Ada Alm lives in the city of Lund.", [])


def test_telling_words_fold_plurals_and_leave_out_what_every_index_says():
    assert telling_words("All documents about people who live in Lund") == {"lund"}
    assert telling_words("Turbines") == telling_words("The turbine")
