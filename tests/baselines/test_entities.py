"""Entities extracted from words alone: in the people universe, in PhantomWiki and in other text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.baselines.entities import Entity, by_entity, mentions


def found(text: str, *others: str) -> list[tuple[str, str]]:
    return [(entity.kind, entity.name) for entity in mentions([text, *others])[0].entities]


def stated(text: str) -> list[tuple[str, str, str]]:
    return [(t.relation, t.subject.name, t.object.name) for t in mentions([text])[0].triples]


@pytest.mark.parametrize(
    ("text", "entities", "triples"),
    [
        ("Wes Hale's job is tanner.", ["name Wes Hale", "job tanner"], [("job", "Wes Hale", "tanner")]),
        ("Wes Hale's hobby is bell ringing.", ["name Wes Hale", "hobby bell ringing"], None),
        (
            "Wes Hale lives in the city of New Quay.",
            ["name Wes Hale", "city New Quay"],
            [("city", "Wes Hale", "New Quay")],
        ),
        ("Wes Hale was born on September 16, 1920.", ["name Wes Hale", "date September 16, 1920"], None),
        ("Wes Hale is married to Ann Bly.", ["name Wes Hale", "name Ann Bly"], [("married to", "Wes Hale", "Ann Bly")]),
        ("Wes Hale is a friend of Ann Bly.", ["name Wes Hale", "name Ann Bly"], [("friend", "Ann Bly", "Wes Hale")]),
        ("Wes Hale is the father of Ann Bly.", ["name Wes Hale", "name Ann Bly"], [("father", "Ann Bly", "Wes Hale")]),
        ("The occupation of Ann Bly is road sweeper.", ["name Ann Bly", "job road sweeper"], None),
        ("The date of birth of Ann Bly is 0988-03-12.", ["name Ann Bly", "date 0988-03-12"], None),
        (
            "The friends of Ann Bly are Wes Hale, Bo Cade.",
            ["name Ann Bly", "name Wes Hale", "name Bo Cade"],
            [("friend", "Ann Bly", "Wes Hale"), ("friend", "Ann Bly", "Bo Cade")],
        ),
        ("The hobby of Ann Bly is Tai chi.", ["name Ann Bly", "hobby Tai chi"], None),
        ("Élodie O'Brien-Smith met J. R. Hale.", ["name Élodie O'Brien-Smith", "name J. R. Hale"], None),
        (
            "The Bank of England lent to Ludwig van Beethoven.",
            ["name Bank of England", "name Ludwig van Beethoven"],
            None,
        ),
        ("nothing of note", [], []),
    ],
)
def test_names_values_and_relations(text, entities, triples):
    assert [" ".join(pair) for pair in found(text)] == entities
    if triples is not None:
        assert stated(text) == triples


def test_a_word_capitalised_only_for_opening_a_sentence_is_no_name():
    assert found("Water boils.", "They drink water.") == []
    assert found("Yesterday Ann Bly left.", "We saw Ann Bly yesterday.") == [("name", "Ann Bly")]
    assert found("Rose Hill left.", "She met Rose Hill by a rose.") == [("name", "Rose Hill")]


def test_a_city_is_a_city_wherever_it_is_named():
    texts = ["Quayside is old.", "Wes Hale lives in the city of Quayside."]
    assert by_entity(mentions(texts))[Entity("city", "Quayside")] == [0, 1]


def test_every_fact_of_the_universe_is_read_as_the_world_means_it(small):
    """Names and values against the world's own facts, which the extractor never saw."""
    people = {person["id"]: person for person in small.facts["people"]}
    for document, mention in zip(small.documents, mentions([d.text for d in small.documents]), strict=True):
        expected = [Entity("name", people[id]["name"]) for id in document.about]
        if document.kind in ("job", "hobby", "city"):
            expected.append(Entity(document.kind, people[document.about[0]][document.kind]))
        assert [entity for entity in mention.entities if entity.kind != "date"] == expected


@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_text_can_be_read_and_names_stand_in_it(texts):
    for text, mention in zip(texts, mentions(texts), strict=True):
        assert len(set(mention.entities)) == len(mention.entities)
        for entity in mention.entities:
            assert entity.name
            assert entity.name in text.replace("\ue000", " ").replace("\ue001", " ")
