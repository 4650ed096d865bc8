"""Golds, supports and pools against a reader that sees only the sentences."""

from itertools import combinations, product

import pytest
from second_path import SYMMETRIC, UNKNOWN, SentenceReader, as_golds, instance

from kbgym.worlds.people import TEMPLATES, pool

SEEDS = range(5)
# Supports that list a whole enumeration, as the paper's do: not every member decides the answer.
ENUMERATIONS = {"common-friend", "child-and-friend", "count-grandchildren", "friends-with-job", "oldest-child"}


def reader_of(world) -> SentenceReader:
    return SentenceReader(document.text for document in world.documents)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_gold_is_what_the_sentences_say(world_of, seed):
    world = world_of(seed)
    reader = reader_of(world)
    wrong = [q.id for q in world.questions if as_golds(reader.answer(q.text)) != set(q.golds)]
    assert wrong == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_support_suffices_and_nothing_in_it_is_idle(world_of, seed):
    world = world_of(seed)
    document = {document.id: document for document in world.documents}
    for question in world.questions:
        assert len(set(question.support)) == len(question.support)
        assert question.unanswerable == (question.support == ()) == (question.golds == (UNKNOWN,))
        alone = SentenceReader(document[id].text for id in question.support)
        assert as_golds(alone.answer(question.text)) == set(question.golds), question.id
        idle = []
        for left_out in question.support:
            rest = SentenceReader(document[id].text for id in question.support if id != left_out)
            if as_golds(rest.answer(question.text)) == set(question.golds):
                idle.append(document[left_out].kind)
        if question.template in ENUMERATIONS:
            assert set(idle) <= {"friend", "parent-of"}, question.id
        else:
            assert idle == [], question.id


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_pool_is_everything_that_can_be_asked_and_nothing_else(world_of, template):
    world = world_of(0)
    reader = reader_of(world)
    people = [person for person in world.facts["people"] if not person["distractor"]]
    asked = {}
    for question in pool(world, template):
        assert as_golds(reader.answer(question.text)) == set(question.golds), question.id
        asked[instance(template, [key.value for key in question.keys])] = question
    assert asked.keys() == set(askable(template, reader, people))


def askable(template, reader, people):
    """The slots of a template by trying everything there is."""
    names = [person["name"] for person in people]
    real = set(names)
    text = TEMPLATES[template].text
    values = {field: sorted({person[field] for person in people}) for field in ("job", "city", "hobby")}
    if template in ("brother-job", "sister-hobby"):
        others = reader.women() if template == "brother-job" else reader.men()  # as sentences tell it
        for name in names:
            if reader.get("mother", name) and set(reader.siblings(name)) <= set(others):
                yield (name,)
    elif template == "spouse-city":
        yield from ((name,) for name in names if reader.get("spouse", name) is None)
    elif template == "older-of-two":
        yield from (frozenset((a, b)) for a in names for b in reader.friends[a])
    elif template == "oldest-child":
        yield from ((name,) for name in names if len(reader.children[name]) >= 2)
    elif template in SYMMETRIC:
        for pair in combinations(names, 2):
            if reader.answer(text.format(*pair)) is not None:
                yield frozenset(pair)
    elif TEMPLATES[template].slots == ("person",):
        yield from ((name,) for name in names if reader.answer(text.format(name)) not in (None, UNKNOWN))
    elif TEMPLATES[template].slots[0] == "person":
        others = names if TEMPLATES[template].slots[1] == "person" else values["job"]
        for pair in product(names, others):
            if pair[0] != pair[1] and reader.answer(text.format(*pair)) is not None:
                yield pair
    else:
        for slots in product(*(values[kind] for kind in TEMPLATES[template].slots)):
            if reader.answer(text.format(*slots)) in real:
                yield slots


def test_the_second_path_can_tell_a_wrong_gold(world_of):
    world = world_of(0)
    reader = reader_of(world)
    question = next(q for q in world.questions if q.template == "older-of-two")
    loser = next(key.value for key in question.keys if key.value not in question.golds)
    assert as_golds(reader.answer(question.text)) != {loser}
