"""The documents under a PhantomWiki key, derived from the sentences and from the family rules."""

from __future__ import annotations

import re

import pytest

from kbgym.errors import Damaged
from kbgym.index_keys.vocabulary import HALVES
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.phantomwiki import build, wiki_of
from kbgym.worlds.phantomwiki.wiki import STATED
from kbgym.worlds.truth import Truth
from kbgym.worlds.world import Key, World

KINDS = {"date of birth": "birth", "occupation": "job", "hobby": "hobby", "gender": "gender"}
PLURALS = {"wives": "wife"}
# Relations no sentence tells, as paths; their members by the rules the families were made by.
PATHS = {
    "niece": "sibling.daughter",
    "uncle": "parent.brother",
    "grandparent": "parent.parent",
    "grandson": "child.son",
    "cousin": "parent.sibling.child",
    "mother_in_law": "spouse.mother",
    "son_in_law": "child.husband",
}


@pytest.fixture(scope="module")
def world(folder, small) -> World:
    return build(folder, small)[0]


@pytest.fixture(scope="module")
def truth(world) -> Truth:
    return kind_of(world).truth(world)


def told(world: World) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """The second path: (kind, subject, values) of every document, read out of its sentence alone."""
    found = {}
    for document in world.documents:
        match = re.fullmatch(r"The (date of birth|\w+) of (.+?) (?:is|are) (.+)\.", document.text)
        word = PLURALS.get(match[1], match[1])
        word = word if word in (*STATED, *KINDS) else word.removesuffix("s")
        found[document.id] = (KINDS.get(word, word), match[2], tuple(match[3].split(", ")))
    return found


def test_attributes_out_of_the_sentences(world, truth):
    holders: dict[tuple[str, str], dict[str, str]] = {}
    for id, (kind, subject, values) in told(world).items():
        if kind in ("job", "hobby", "birth"):
            holders.setdefault((kind, values[0]), {})[subject] = id
    assert {(kind, value) for kind, values in truth.values.items() for value in values} == set(holders)
    for (kind, value), people in holders.items():
        key = Key(kind, value)
        assert truth.members(key) == set(people) == truth.recitable(key)
        serving = {d.id: truth.serves(key, d.id) for d in world.documents if truth.belongs(key, d.id)}
        assert serving == {id: {person} for person, id in people.items()}


@pytest.mark.parametrize("relation", [*STATED, *HALVES])
def test_relations_out_of_the_sentences_from_either_end(world, truth, relation):
    said, kinds = told(world), HALVES.get(relation, (relation,))
    side = next((name for name, pair in HALVES.items() if relation in (name, *pair)), relation)
    back = HALVES.get({"parent": "child", "child": "parent"}.get(side, side), (side,))
    seen = 0
    for person in truth.names:
        key = Key(relation, person)
        members = {
            name for kind, subject, values in said.values() if kind in kinds and subject == person for name in values
        }
        assert truth.members(key) == members
        serving: dict[str, set[str]] = {}
        for id, (kind, subject, values) in said.items():
            if kind in kinds and subject == person:
                serving.setdefault(id, set()).update(values)
            if kind in back and subject in members and person in values:
                serving.setdefault(id, set()).add(subject)
        assert {d.id: truth.serves(key, d.id) for d in world.documents if truth.belongs(key, d.id)} == serving
        seen += len(members)
    assert seen > 10


@pytest.mark.parametrize("relation", PATHS)
def test_paths_by_the_rules_of_the_families_and_by_the_wikis_walks(world, truth, families, relation):
    wiki, seen = wiki_of(world), 0
    for person in truth.names:
        members = truth.members(Key(PATHS[relation], person))
        assert members == set(families.related(relation, person)) == set(wiki.reach(person, relation))
        seen += len(members)
        served = {one for d in world.documents for one in truth.serves(Key(PATHS[relation], person), d.id)}
        assert served == members, "somebody cannot be reached"
    assert seen > 5


def test_what_is_asked_of_the_people_reached(world, truth):
    said = told(world)
    person = next(name for name in truth.names if truth.members(Key("child", name)))
    key = Key("child.job", person)
    assert truth.members(key) == truth.members(Key("child", person))
    under = {said[d.id][:2] for d in world.documents if truth.belongs(key, d.id)}
    assert under == {("job", child) for child in truth.members(key)}


def test_strangers_have_nothing(truth):
    for key in (Key("person", "Nobody Known"), Key("friend", "Nobody Known"), Key("job", "none"), Key("oddity", "x")):
        assert not truth.members(key) and not truth.belongs(key, "d00001") and not truth.recitable(key)
    assert not truth.members(Key("nonsense", next(iter(truth.names))))


def test_facts_that_are_none_are_named():
    bare = World((), (), {"kind": "phantomwiki"})
    with pytest.raises(Damaged, match="not those of a PhantomWiki"):
        kind_of(bare).truth(bare)
