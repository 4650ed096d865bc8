"""The importer: the same bytes from every run, splits by the rules, and nothing spoilt let in."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from families import Families

from kbgym.codes import number_of
from kbgym.errors import BadInput, Damaged
from kbgym.worlds.people import Sizes
from kbgym.worlds.phantomwiki import RESERVED, build, leakage, pool
from kbgym.worlds.world import World


@pytest.fixture(scope="module")
def world(folder, small) -> World:
    return build(folder, small)[0]


def test_a_document_is_a_sentence_with_its_kind_and_the_people_it_names(world, families):
    names = {person["id"]: person["name"] for person in world.facts["people"]}
    assert list(names.values()) == families.people
    for document in world.documents:
        assert names[document.about[0]] in document.text
        assert all(names[other] in document.text for other in document.about)
    for person in families.people:
        sons = [d for d in world.documents if d.kind == "son" and names[d.about[0]] == person]
        assert {names[id] for d in sons for id in d.about[1:]} == families.related("son", person)
    assert {d.kind for d in world.documents} >= {"birth", "job", "hobby", "gender", "mother", "friend"}


def test_ids_are_codes_in_no_order(folder, small, world):
    other = build(folder, small, seed=7)[0]
    assert all(number_of(document.id) for document in world.documents)
    people = [document.about[0] for document in world.documents]
    same = sum(a == b for a, b in pairwise(people))
    assert same < 0.1 * len(people), "a person's documents do not stand together"
    assert [d.text for d in other.documents] != [d.text for d in world.documents]
    assert [q.text for q in other.questions] == [q.text for q in world.questions]


def test_several_answers_are_one_gold_with_commas(world):
    several = [q for q in pool(world, "relation-of") if ", " in q.golds[0]]
    assert several and all(len(q.golds) == 1 for q in several)
    assert all(q.golds[0].split(", ") == sorted(set(q.golds[0].split(", "))) for q in several)


def test_the_order_of_the_files_and_the_ids_of_a_run_do_not_matter(folder, broken, world, small):
    articles = json.loads((folder / "articles.json").read_text())
    questions = json.loads((folder / "questions.json").read_text())
    (broken / "articles.json").write_text(json.dumps(articles[::-1]))
    again = [{**question, "id": str(n), "solution_traces": "[]"} for n, question in enumerate(questions[::-1])]
    (broken / "questions.json").write_text(json.dumps(again))
    assert build(broken, small)[0].hash == world.hash


def test_splits_by_the_papers_scheme(world):
    assert world.splits == {"train": 24, "test_in": 12, "test_out": 6, "eval": 6}
    texts = [question.text for question in world.questions]
    assert len(texts) == len(set(texts))
    for question in world.questions:
        reserved = question.template in RESERVED
        assert reserved or question.split != "test_out"
        assert not reserved or question.split in ("test_out", "eval")
    counts = [sum(q.template == name for q in world.split("train")) for name in {q.template for q in world.questions}]
    assert sorted(counts) == [0, 0, 4, 4, 4, 4, 4, 4]
    assert [question.id for question in world.questions[:2]] == ["q0001", "q0002"]


def test_default_questions_are_shipped_ones_and_no_tautology(world, folder):
    shipped = {one["question"]: one["answer"] for one in json.loads((folder / "questions.json").read_text())}
    for question in world.questions:
        assert ", ".join(shipped[question.text]) == question.golds[0]
        assert not any(f"the {word} of the person whose {word} is" in question.text for word in ("hobby", "occupation"))


def test_leakage_counts_questions_with_a_trained_key(world):
    trained = {key for question in world.split("train") for key in question.keys}
    for name, leak in leakage(world).items():
        assert leak.questions == len(world.split(name))
        assert leak.shared == sum(question.keys[0] in trained for question in world.split(name))
        assert leak.share == leak.shared / leak.questions
    assert sum(leak.shared for leak in leakage(world).values()) > 0


def test_too_few_questions_are_said_to_be_too_few(folder):
    with pytest.raises(BadInput, match="the split test_out wants 500 questions, only"):
        build(folder, Sizes(0, 0, 500, 0, 0))


def spoil(folder, name, change):
    entries = json.loads((folder / name).read_text())
    change(entries)
    (folder / name).write_text(json.dumps(entries))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a[0]["facts"].append("nonsense."), "has a fact that cannot be read: nonsense"),
        (lambda a: a[0]["facts"].append('uncle("X Y", "A B").'), "has a fact that cannot be read"),
        (lambda a: a[0].update(article=a[0]["article"] + "And more.\n"), "sentences for"),
        (lambda a: a.pop(0), "who has no article"),
        (lambda a: a.clear(), "has no article"),
        (lambda a: a[0].pop("facts"), "facts"),
        (
            lambda a: a[0].update(article=a[0]["article"].replace("female", "x").replace("male", "x")),
            "does not say what",
        ),
    ],
)
def test_spoilt_articles_are_refused(broken, change, message, small):
    spoil(broken, "articles.json", change)
    with pytest.raises(Damaged, match=message):
        build(broken, small)


def test_a_shipped_answer_the_articles_do_not_bear_out_is_refused(broken, small):
    spoil(broken, "questions.json", lambda q: q[0].update(answer=["Nobody At All"]))
    with pytest.raises(Damaged, match="has the answer 'Nobody At All', but the articles say"):
        build(broken, small)


def test_a_question_about_nobody_here_is_refused(broken, small):
    spoil(broken, "questions.json", lambda q: q[0].update(question="Who is the sister of Nobody At All?"))
    with pytest.raises(Damaged, match="cannot be asked of these people"):
        build(broken, small)


def test_what_is_no_output_folder_is_refused(tmp_path, broken):
    with pytest.raises(BadInput, match=r"cannot read .*articles.json"):
        build(tmp_path)
    (broken / "questions.json").write_bytes(b"\xff{")
    with pytest.raises(Damaged, match=r"questions\.json"):
        build(broken)


def test_facts_that_do_not_go_with_the_documents_are_refused(world):
    facts = {**world.facts, "people": world.facts["people"][1:]}
    with pytest.raises(Damaged, match="do not go with its documents"):
        pool(World(world.documents, (), facts), "relation-of")


@pytest.mark.slow
def test_two_official_runs_give_the_same_world(official):
    one, two = (build(folder)[0] for folder in official)
    assert one == two


def test_another_seed_is_another_world(tmp_path, world, small):
    other = Families(seed=4).write(tmp_path / "other")
    assert build(other, small)[0].hash != world.hash
