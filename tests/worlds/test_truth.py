"""The documents under a key, from the world's facts: checked by hand on a family, by a second path on a world."""

import re

import pytest
from family import documents, family

from kbgym.worlds import people
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.truth import group_of
from kbgym.worlds.world import Document, Key, World


@pytest.fixture(scope="module")
def world():
    return family()


@pytest.fixture(scope="module")
def truth(world):
    return kind_of(world).truth(world)


@pytest.mark.parametrize(
    ("kind", "value", "members"),
    [
        ("city", "Lund", "Ada Alm, Bo Alm, Kim Fox, Ada Bok"),
        ("job", "baker", "Ada Alm, Cy Alm"),
        ("hobby", "darts", "Ada Alm, Fay Alm, Ada Bok"),
        ("friend", "Ada Alm", "Ian Ost, Kim Fox"),
        ("child", "Ada Alm", "Cy Alm, Dot Alm"),
        ("daughter", "Ada Alm", "Dot Alm"),
        ("parent", "Fay Alm", "Eve Ek, Cy Alm"),
        ("mother", "Fay Alm", "Eve Ek"),
        ("spouse", "Cy Alm", "Eve Ek"),
        ("sibling", "Fay Alm", "Gus Alm"),
        ("sister", "Fay Alm", ""),
        ("child.child", "Ada Alm", "Fay Alm, Gus Alm, Hal Ost"),
        ("child.son", "Ada Alm", "Gus Alm, Hal Ost"),
        ("parent.parent", "Hal Ost", "Ada Alm, Bo Alm"),
        ("spouse.friend", "Dot Alm", "Ada Alm"),
        ("parent.sibling.child", "Hal Ost", "Fay Alm, Gus Alm"),
        ("friend.friend", "Ada Alm", "Fay Alm"),
        ("city", "Nowhere", ""),
        ("friend", "Nobody Known", ""),
    ],
)
def test_members(truth, kind, value, members):
    assert truth.members(Key(kind, value)) == frozenset(members.split(", ") if members else [])


def test_only_the_attribute_itself_belongs_under_an_attribute(world, truth):
    under = {text for text, id in documents(world).items() if truth.belongs(Key("city", "Lund"), id)}
    assert under == {f"{name} lives in the city of Lund" for name in ("Ada Alm", "Bo Alm", "Kim Fox", "Ada Bok")}


def test_a_relation_is_told_from_either_end(world, truth):
    under = {text for text, id in documents(world).items() if truth.belongs(Key("friend", "Ada Alm"), id)}
    assert under == {
        "Ada Alm is a friend of Ian Ost",
        "Ian Ost is a friend of Ada Alm",
        "Ada Alm is a friend of Kim Fox",
        "Kim Fox is a friend of Ada Alm",
    }


def test_a_grandchild_is_served_by_documents_that_never_name_the_grandparent(world, truth):
    key, ids = Key("child.child", "Ada Alm"), documents(world)
    serving = {text: truth.serves(key, id) for text, id in ids.items() if truth.serves(key, id)}
    assert serving == {
        "Fay Alm is a child of Cy Alm": {"Fay Alm"},
        "Cy Alm is the father of Fay Alm": {"Fay Alm"},
        "Gus Alm is a child of Cy Alm": {"Gus Alm"},
        "Cy Alm is the father of Gus Alm": {"Gus Alm"},
        "Hal Ost is a child of Dot Alm": {"Hal Ost"},
        "Dot Alm is the mother of Hal Ost": {"Hal Ost"},
    }
    # The first step is about no grandchild, and the other parent is no child of Ada's.
    assert not truth.belongs(key, ids["Ada Alm is the mother of Cy Alm"])
    assert not truth.belongs(key, ids["Fay Alm is a child of Eve Ek"])


def test_siblings_are_served_by_their_shared_parents(world, truth):
    key = Key("sibling", "Fay Alm")
    serving = {text for text, id in documents(world).items() if truth.serves(key, id)}
    assert serving == {
        "Gus Alm is a child of Cy Alm",
        "Gus Alm is a child of Eve Ek",
        "Cy Alm is the father of Gus Alm",
        "Eve Ek is the mother of Gus Alm",
    }


def test_what_is_asked_of_the_people_reached(world, truth):
    key, ids = Key("friend.job", "Ada Alm"), documents(world)
    assert truth.members(key) == {"Ian Ost", "Kim Fox"}
    assert truth.serves(key, ids["Ian Ost's job is ferryman"]) == {"Ian Ost"}
    assert not truth.belongs(key, ids["Ian Ost is a friend of Ada Alm"])


def test_a_person_must_have_the_own_documents_and_may_have_all_that_name_them(world, truth):
    key, ids = Key("person", "Kim Fox"), documents(world)
    own = {id for text, id in ids.items() if text.startswith("Kim Fox")}
    assert truth.members(key) == own and len(own) == 6
    other = ids["Ada Alm is a friend of Kim Fox"]
    assert truth.belongs(key, other) and not truth.serves(key, other)
    assert not truth.belongs(key, ids["Ada Bok's job is florist"])
    assert truth.recitable(key) == {"Ada Alm", "Fay Alm"}


def test_rows_of_the_table():
    kinds = ("city", "job", "hobby", "person", "friend", "child.child", "friend.job")
    rows = ["city", "job or hobby", "job or hobby", "person", "one-hop relation", *["two-hop relation"] * 2]
    assert [group_of(Key(kind, "x")) for kind in kinds] == rows


def test_a_world_without_facts_has_no_truth():
    world = World((Document("d1", "Water is wet."),))
    assert kind_of(world).truth(world) is None


def test_a_whole_world_by_a_second_path():
    """Members and documents of every key, read back out of the sentences themselves."""
    world = people.generate(60, 3, people.NO_QUESTIONS)
    truth = kind_of(world).truth(world)
    friends: dict[str, set[str]] = {}
    children: dict[str, set[str]] = {}
    holders: dict[tuple[str, str], set[str]] = {}
    for document in world.documents:
        text = document.text.removesuffix(".")
        if match := re.fullmatch(r"(.+) is a friend of (.+)", text):
            friends.setdefault(match[1], set()).add(match[2])
        elif match := re.fullmatch(r"(.+) is a child of (.+)", text):
            children.setdefault(match[2], set()).add(match[1])
        elif match := re.fullmatch(r"(.+)'s (job|hobby) is (.+)", text):
            holders.setdefault((match[2], match[3]), set()).add(match[1])
        elif match := re.fullmatch(r"(.+) lives in the city of (.+)", text):
            holders.setdefault(("city", match[2]), set()).add(match[1])
    for (kind, value), names in holders.items():
        assert truth.members(Key(kind, value)) == names
    assert {(kind, value) for kind, values in truth.values.items() for value in values} == set(holders)
    grandparents = 0
    for name in truth.names:
        assert truth.members(Key("friend", name)) == friends.get(name, set())
        assert truth.members(Key("child", name)) == children.get(name, set())
        grand = {grandchild for child in children.get(name, ()) for grandchild in children.get(child, ())}
        assert truth.members(Key("child.child", name)) == grand
        grandparents += bool(grand)
    assert grandparents > 3


def test_every_member_of_a_key_is_served_by_some_document(world, truth):
    for kind in ("friend", "child", "parent", "spouse", "sibling", "child.child", "parent.parent", "person"):
        for name in truth.names:
            served = {one for d in world.documents for one in truth.serves(Key(kind, name), d.id)}
            assert served == truth.members(Key(kind, name))
