"""Properties of every generated world, of its people and of its documents."""

from collections import Counter
from datetime import date

import pytest
from second_path import SentenceReader

import kbgym
from kbgym.api.factory import training_settings
from kbgym.errors import BadInput
from kbgym.worlds import people as universe
from kbgym.worlds.people import NO_QUESTIONS, TEMPLATES, PeopleGraph, Sizes, generate
from kbgym.worlds.people.population import vocabulary
from kbgym.worlds.world import World


def check_people(world: World, largest: int) -> None:
    people = {person["id"]: person for person in world.facts["people"]}
    for field in ("job", "city", "hobby"):
        assert max(Counter(person[field] for person in people.values()).values()) <= largest
    assert max(Counter(id for document in world.documents for id in document.about).values()) <= 40
    assert len({person["name"] for person in people.values()}) == len(people)
    assert len({person["born"] for person in people.values()}) == len(people)
    real_first_names = {p["name"].split()[0] for p in people.values() if not p["distractor"]}
    for id, person in people.items():
        assert all(id in people[friend]["friends"] for friend in person["friends"])
        assert len(set(person["friends"])) == len(person["friends"]) <= 10
        assert len(person["children"]) <= 4
        assert person["spouse"] is None or people[person["spouse"]]["spouse"] == id
        assert [people[parent]["gender"] for parent in person["parents"]] in ([], ["female", "male"])
        for parent in person["parents"]:
            assert id in people[parent]["children"]
            older = date.fromisoformat(person["born"]) - date.fromisoformat(people[parent]["born"])
            assert older.days > 16 * 365.25
        if person["distractor"]:
            assert not (person["spouse"] or person["parents"] or person["children"] or person["friends"])
            assert person["name"].split()[0] in real_first_names


@pytest.mark.parametrize("seed", range(20))
def test_every_seed_has_every_template_and_no_key_too_large(world_of, seed):
    world = world_of(seed)
    check_people(world, 36)
    graph = PeopleGraph.from_facts(world.facts)
    sizes = {name: sum(1 for _ in template.instances(graph)) for name, template in TEMPLATES.items()}
    assert sizes["spouse-of-job"] >= 8
    assert min(sizes.values()) >= 8, sizes
    assert 5700 <= len(world.documents) <= 6000


@pytest.mark.parametrize("people", [20, 137, 3000])
def test_other_sizes_keep_the_promises(people):
    world = generate(people, 1, NO_QUESTIONS)
    check_people(world, 40)
    assert len(world.facts["people"]) == people + round(people / 10)


@pytest.mark.slow
def test_fifty_thousand_people_keep_the_promises():
    world = generate(50_000, 0)
    check_people(world, 40)
    assert 570_000 <= len(world.documents) <= 610_000
    assert world.splits == {"train": 150, "test_in": 100, "test_out": 50, "eval": 30}


def test_the_default_world(world_of):
    world = world_of(0)
    people = world.facts["people"]
    assert len(people) == 550
    assert len({person["job"] for person in people}) == 50
    assert len({person["hobby"] for person in people}) == 40
    assert len({person["city"] for person in people}) == 20
    assert sum(len(person["friends"]) for person in people) == 4 * 500
    rare = [n for n in Counter(person["job"] for person in people).values() if n <= 3]
    assert len(rare) >= 8


def test_a_relation_is_told_once_from_each_end(world_of):
    reader = SentenceReader(document.text for document in world_of(0).documents)
    for child, parents in reader.child_of.items():
        assert set(parents) == {reader.get("mother", child), reader.get("father", child)}
    assert sum(map(len, reader.child_of.values())) == sum(map(len, reader.children.values()))
    for name, friends in list(reader.friends.items()):
        assert all(reader.friends[friend].count(name) == 1 for friend in friends)
    assert all(reader.get("spouse", spouse) == name for name, spouse in reader.one["spouse"].items())


def test_documents_say_what_kind_they_are_and_whom_they_are_about(world_of):
    world = world_of(0)
    name = {person["id"]: person["name"] for person in world.facts["people"]}
    for document in world.documents:
        assert document.text.startswith(name[document.about[0]])
        assert all(name[id] in document.text for id in document.about)
        assert len(document.about) == (2 if document.kind in ("spouse", "child-of", "parent-of", "friend") else 1)


def test_a_distractor_is_never_asked_about_nor_an_answer(world_of):
    world = world_of(0)
    distractors = {person["name"] for person in world.facts["people"] if person["distractor"]}
    for name in TEMPLATES:
        for question in universe.pool(world, name):
            assert not distractors & {*question.golds, *(key.value for key in question.keys)}


def test_vocabularies_are_unique_well_formed_and_apart():
    sizes = {"women": 700, "men": 700, "surnames": 1040, "cities": 6000, "jobs": 15000, "hobbies": 12000}
    large = {kind: vocabulary(kind, count) for kind, count in sizes.items()}
    everything = [value for values in large.values() for value in values]
    assert len(set(everything)) == len(everything)
    for kind, values in large.items():
        for value in values:
            assert value == " ".join(value.split())
            if kind in ("jobs", "hobbies"):
                assert value == value.lower() and value.replace(" ", "").isalpha()
            else:
                assert value.isalpha() and value == value.capitalize()
    with pytest.raises(BadInput, match="cities"):
        vocabulary("cities", 10**6)


def test_a_loaded_world_is_the_same_world_with_the_same_pools(tmp_path):
    world = generate(100, 3, Sizes(20, 20, 20, 5, 5))
    world.save(tmp_path / "w")
    loaded = World.load(tmp_path / "w")
    assert loaded == world and loaded.hash == world.hash
    for name in ("common-friend", "oldest-child"):
        assert list(universe.pool(loaded, name)) == list(universe.pool(world, name))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"people": -1}, "at least 20 people"),
        ({"people": 0}, "at least 20 people"),
        ({"people": 10**6}, "at most 150000 people"),
        ({"sizes": Sizes(train=100_000)}, "split train wants 40000 easy questions"),
        ({"sizes": Sizes(test_out=100_000)}, "split test_out wants 40000 easy questions"),
    ],
)
def test_bad_arguments_are_named(arguments, says):
    with pytest.raises(BadInput, match=says):
        generate(**{"people": 60, **arguments})


def test_a_split_has_no_negative_size():
    with pytest.raises(BadInput):
        Sizes(train=-1)


def test_a_template_without_instances_is_an_error_not_a_gap():
    problems = []
    for seed in range(40):
        try:
            generate(20, seed, Sizes(5, 5, 5, 0, 0))
        except BadInput as error:
            problems.append(str(error))
    assert problems, "some tiny world lacks a template"
    assert all("has no instance of" in problem or "the pool has only" in problem for problem in problems)


def test_a_pool_of_something_else_is_refused():
    with pytest.raises(BadInput, match="no template 'job'"):
        universe.pool(generate(20, 0, NO_QUESTIONS), "job")
    with pytest.raises(BadInput, match="does not describe a people world"):
        universe.pool(World((), (), {"kind": "corpus"}), "job-of")


def test_a_hard_world_has_large_classes_and_a_small_budget(tmp_path):
    world = generate(500, 0, hard=True)
    cities = Counter(person["city"] for person in world.facts["people"])
    assert len(cities) == 5 and min(cities.values()) > 80 and world.facts["forward_budget"] == 8
    assert len({person["job"] for person in world.facts["people"]}) == 25
    world.save(tmp_path / "w")
    with kbgym.open(tmp_path / "w") as opened:
        assert opened.settings.forward_budget == 8
    with kbgym.open(tmp_path / "w", forward_budget=12) as opened:
        assert opened.settings.forward_budget == 12
    assert training_settings(world, tmp_path / "run", embedder="hash").forward_budget == 8
