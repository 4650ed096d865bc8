"""The pools: whole, each text once, answers and supports that stand on their own."""

from __future__ import annotations

import pytest

from kbgym.errors import BadInput
from kbgym.training.probe import gradient_templates
from kbgym.worlds import phantomwiki
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.phantomwiki import TEMPLATES, Wiki, build, pool, wiki_of
from kbgym.worlds.phantomwiki.files import read_articles, read_questions
from kbgym.worlds.phantomwiki.wiki import Stated
from kbgym.worlds.world import World


@pytest.fixture(scope="module")
def world(folder, small) -> World:
    return build(folder, small)[0]


def test_no_two_instances_read_alike(world):
    texts = [question.text for template in TEMPLATES for question in pool(world, template)]
    assert len(texts) == len(set(texts)) > 1000


def test_every_pool_has_all_the_instances_the_rules_give(world, families):
    found = {q.text: q.golds[0] for q in pool(world, "relation-of")}
    for person in families.people:
        for relation, word in (("niece", "niece"), ("great_uncle", "great-uncle"), ("friend", "friend")):
            answers = sorted(families.related(relation, person))
            assert found.get(f"Who is the {word} of {person}?") == (", ".join(answers) if answers else None)
    counts = {q.text: q.golds[0] for q in pool(world, "count-of-attribute")}
    for job in {families.attributes[person, "job"] for person in families.people}:
        numbers = {str(len(families.related("child", one))) for one in families.holders("job", job)}
        text = f"How many children does the person whose occupation is {job} have?"
        assert counts.get(text) == (", ".join(sorted(numbers)) if numbers - {"0"} else None)


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_support_alone_gives_the_answer(world, template):
    """Forget every document but the support, and the same question has the same answer."""
    whole = wiki_of(world)
    documents = {document.id: document for document in world.documents}
    names = {person["id"]: person["name"] for person in world.facts["people"]}
    values = {person["id"]: person for person in world.facts["people"]}

    def stated(id: str) -> Stated:
        document = documents[id]
        told = values[document.about[0]][document.kind]
        told = tuple(names[one] for one in told) if isinstance(told, list) else (told,)
        return Stated(id, document.kind, names[document.about[0]], told)

    type = TEMPLATES.index(template)
    instances = list(whole.pool(type))
    for instance in instances[:: max(1, len(instances) // 60)]:
        assert instance.support <= documents.keys()
        left = Wiki(whole.people, map(stated, sorted(instance.support)))
        again = {one.text: one.answers for one in left.pool(type)}
        assert again[instance.text] == instance.answers


def test_every_support_document_is_needed_for_a_relation(world):
    """Without any one support document a person is lost or reached in fewer ways."""
    wiki = wiki_of(world)
    for instance in list(wiki.pool(1))[::25]:
        reached = wiki.reach(instance.key.value, instance.slots[0])
        assert instance.support == frozenset().union(*reached.values())
        assert all(any(document in way for way in reached.values()) for document in instance.support)


def test_a_saved_world_has_the_same_pools(world, tmp_path):
    world.save(tmp_path / "w")
    loaded = World.load(tmp_path / "w")
    assert loaded.hash == world.hash
    for template in ("relation-of", "attribute-of-attribute", "count-of-attribute"):
        assert list(kind_of(loaded).pool(loaded, template)) == list(kind_of(world).pool(world, template))


def test_the_gradient_is_drawn_from_the_trained_templates(world):
    trained = {question.template for question in world.split("train")}
    assert set(gradient_templates(world)) == trained == set(TEMPLATES) - set(phantomwiki.RESERVED)


def test_an_unknown_template_or_type_is_refused(world):
    with pytest.raises(BadInput, match="no template 'job-of'"):
        pool(world, "job-of")


@pytest.mark.slow
def test_the_official_world_has_the_papers_figures_and_every_pool_its_size(official):
    world, shipped = build(official[0])
    assert (shipped.articles, shipped.sentences, shipped.questions) == (405, 3403, 480)
    assert (shipped.distinct, shipped.tautologies) == (477, 16)
    assert world.splits == {"train": 150, "test_in": 100, "test_out": 50, "eval": 30}
    wiki = wiki_of(world)
    sizes = [0] * 8
    answers: dict[str, tuple[str, ...]] = {}
    wanted = {one.question: one.answer for one in read_questions(official[0])}
    for type in range(8):
        for instance in wiki.pool(type):
            sizes[type] += 1
            if instance.text in wanted:
                answers[instance.text] = instance.answers
    assert sizes == [14_114, 5_522, 887, 16_566, 2_661, 94_314, 14_114, 5_522]
    assert answers == wanted
    assert len(read_articles(official[0])) == 405
