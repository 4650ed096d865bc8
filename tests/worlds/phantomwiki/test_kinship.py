"""Every relation: walked over stated sentences it leads to the same people as PhantomWiki's own rules."""

from __future__ import annotations

import pytest
from families import Families
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgym.index_keys.vocabulary import SINGULAR
from kbgym.worlds.phantomwiki.wiki import RELATIONS, STATED, Stated, Wiki, spoken


def wiki_of(families: Families) -> Wiki:
    """The wiki, from nothing but the stated relations."""
    stated = []
    for person in families.people:
        for kind in STATED:
            if others := sorted(families.related(kind, person)):
                stated.append(Stated(f"{person}/{kind}", kind, person, tuple(others)))
    return Wiki(families.people, stated)


@given(st.integers(0, 10_000))
@settings(max_examples=15)
def test_walks_and_rules_agree_on_everybody(seed):
    families = Families(seed, founders=3, generations=5)
    wiki = wiki_of(families)
    for relation in RELATIONS:
        for person in families.people:
            assert set(wiki.reach(person, relation)) == families.related(relation, person), (relation, person)


def test_the_rules_are_put_to_use():
    """Every relation occurs, so the property above is not vacuous."""
    had = {
        relation
        for seed in range(20)
        for families in [Families(seed, founders=3, generations=5)]
        for relation in RELATIONS
        if any(families.related(relation, person) for person in families.people)
    }
    assert had == set(RELATIONS)


def test_there_are_45_relations():
    assert len(RELATIONS) == len(set(RELATIONS)) == 45


@pytest.mark.parametrize(
    ("relation", "one", "several"),
    [
        ("wife", "wife", "wives"),
        ("great_grandchild", "great-grandchild", "great-grandchildren"),
        ("sister_in_law", "sister-in-law", "sisters-in-law"),
        ("male_first_cousin_once_removed", "male first cousin once removed", "male first cousins once removed"),
    ],
)
def test_a_relation_in_words(relation, one, several):
    assert (spoken(relation), spoken(relation, plural=True)) == (one, several)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_reference_agents_know_every_relation_by_its_words(relation):
    assert SINGULAR[spoken(relation)] == SINGULAR[spoken(relation, plural=True)]
