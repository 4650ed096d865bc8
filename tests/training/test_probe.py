"""The gradient's groups: which keys count as touched, how many of each template, and what was never seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from kbgym.errors import BadInput
from kbgym.training.probe import gradient, held_out
from kbgym.worlds.people import generate, pool
from kbgym.worlds.world import Document, Question, World

GROUPS = ("trained", "both", "one", "neither")


@pytest.fixture(scope="module")
def world() -> World:
    return generate(people=80, seed=3)


def taught(world: World, **counts: int) -> list[Question]:
    """So many training questions of each template, in the order of the names given."""
    found: list[Question] = []
    for name, count in counts.items():
        template = name.replace("_", "-")
        found += [question for question in world.split("train") if question.template == template][:count]
    assert len(found) == sum(counts.values())
    return found


def keys_of(questions: Sequence[Question]) -> set[object]:
    return {key for question in questions for key in question.keys}


def test_a_key_is_touched_by_any_training_question_that_names_it_in_any_slot(world: World) -> None:
    two_slots = taught(world, common_friend=5, older_of_two=3, friends_with_job=2)
    one_slot = taught(world, count_grandchildren=4, job_of=3)
    probe = gradient(world, [*two_slots, *one_slot], None)
    touched = keys_of([*two_slots, *one_slot])
    for name, wanted in (("both", 2), ("one", 1), ("neither", 0)):
        assert [sum(key in touched for key in question.keys) for question in probe.groups[name]] == [wanted] * 10
    only_there = keys_of(one_slot) - keys_of(two_slots)
    assert only_there & keys_of(probe.groups["both"]) and only_there & keys_of(probe.groups["one"])
    for slot in (0, 1):
        assert any(question.keys[slot] in touched for question in probe.groups["one"]), "in either slot"


@pytest.mark.parametrize(
    ("n", "wanted"),
    [
        (4, {"common-friend": 2, "friends-with-job": 1, "older-of-two": 1}),  # 2, 0.8, 1.2
        (7, {"common-friend": 4, "friends-with-job": 1, "older-of-two": 2}),  # 3.5, 1.4, 2.1
        (6, {"common-friend": 3, "friends-with-job": 1, "older-of-two": 2}),  # 3, 1.2, 1.8
        (9, {"common-friend": 4, "friends-with-job": 2, "older-of-two": 3}),  # 4.5, 1.8, 2.7
        (2, {"common-friend": 1, "older-of-two": 1}),  # 1, 0.4, 0.6: none of the second
        (1, {"common-friend": 1}),
        (10, {"common-friend": 5, "friends-with-job": 2, "older-of-two": 3}),
        (None, {"common-friend": 5, "friends-with-job": 2, "older-of-two": 3}),
    ],
)
def test_the_largest_remainders_are_rounded_up(world: World, n: int | None, wanted: dict[str, int]) -> None:
    trained = taught(world, common_friend=5, older_of_two=3, friends_with_job=2, job_of=7)
    probe = gradient(world, trained, n)
    assert probe.wanted == probe.quota == wanted and probe.short == {}
    for name in GROUPS:
        assert Counter(question.template for question in probe.groups[name]) == wanted
        assert {question.split for question in probe.groups[name]} == {name}
    assert tuple(probe.groups) == GROUPS


def test_equal_remainders_go_by_name_and_too_many_are_refused(world: World) -> None:
    trained = taught(world, older_of_two=1, friends_with_job=1, common_friend=1)
    assert gradient(world, trained, 2).wanted == {"common-friend": 1, "friends-with-job": 1}
    assert sum(gradient(world, trained, 3).wanted.values()) == 3
    with pytest.raises(BadInput, match="4 questions a group are too many: training asked only 3"):
        gradient(world, trained, 4)
    with pytest.raises(BadInput):
        gradient(world, taught(world, job_of=3), 2)


def test_what_was_trained_on_here_or_elsewhere_is_in_no_unseen_group(world: World) -> None:
    trained = taught(world, common_friend=5, older_of_two=3, friends_with_job=2)
    probe = gradient(world, trained, 10)
    assert probe.overlap == {"trained": 10, "both": 0, "one": 0, "neither": 0}
    assert set(probe.groups["trained"]) <= {
        Question(q.id, "trained", q.class_, q.template, q.text, q.golds, q.keys, q.support) for q in trained
    }
    also = [question for name in GROUPS[1:] for question in probe.groups[name]]
    other = gradient(world, trained, 10, also=also)
    unseen = {question.text for name in GROUPS[1:] for question in other.groups[name]}
    assert len(unseen) == 30 and unseen.isdisjoint(question.text for question in also)
    assert other.overlap == {"trained": 10, "both": 0, "one": 0, "neither": 0}
    touched = keys_of(trained)
    assert all(sum(key in touched for key in q.keys) == 1 for q in other.groups["one"]), "the others touch no key here"


def test_a_pool_too_small_shortens_every_group_and_says_so(world: World) -> None:
    trained = taught(world, common_friend=5, older_of_two=3)
    touched = keys_of(trained)
    everything = [q for q in pool(world, "common-friend") if q.text not in {t.text for t in trained}]
    scarce = [q for q in everything if all(key in touched for key in q.keys)]
    probe = gradient(world, trained, 8, also=scarce[2:])
    assert probe.wanted == {"common-friend": 5, "older-of-two": 3}
    assert probe.quota == {"common-friend": 2, "older-of-two": 3}
    assert probe.short == {"common-friend": "2 of 5"}
    assert {len(group) for group in probe.groups.values()} == {5}
    assert {q.text for q in probe.groups["both"] if q.template == "common-friend"} == {q.text for q in scarce[:2]}


def test_the_draw_is_the_seeds_and_no_question_is_drawn_twice(world: World) -> None:
    trained = taught(world, common_friend=9, older_of_two=9)
    probe = gradient(world, trained, 6)
    assert gradient(world, trained, 6) == probe
    for name in GROUPS:
        other = gradient(world, trained, 6, seed=1).groups[name]
        assert {q.text for q in other} != {q.text for q in probe.groups[name]}
        assert len({question.text for question in probe.groups[name]}) == 6
    assert (
        len(gradient(world, world.split("train")).groups["trained"])
        <= 34
        == sum(gradient(world, world.split("train")).wanted.values())
    )


def test_questions_with_one_slot_have_no_both(world: World) -> None:
    single = World(world.documents, tuple(q for q in world.questions if len(q.keys) == 1), world.facts)
    trained = taught(single, job_of=5, hobby_of=4, count_children=3)
    probe = gradient(single, trained, 5)
    assert {name: len(group) for name, group in probe.groups.items()} == {"trained": 5, "one": 5, "neither": 5}
    for name, touched in (("one", True), ("neither", False)):
        assert all((question.keys[0] in keys_of(trained)) == touched for question in probe.groups[name])


def listed(name: str, *texts: str) -> list[Question]:
    return [Question(f"{name}{n}", name, "c", "t", text, ("gold",)) for n, text in enumerate(texts)]


def test_a_world_that_cannot_list_its_questions_is_asked_its_test_splits() -> None:
    """Both test splits, less what was trained on; a training question asked twice is one."""
    train = listed("train", "One?", "Two?", "One?", "Three?")
    tests = [*listed("test_in", "Three?", "Four?", "Five?"), *listed("test_out", "Six?"), *listed("eval", "Seven?")]
    world = World((Document("d", "D."),), (*train, *tests))
    probe = gradient(world, train, None)
    assert {q.text for q in probe.groups["trained"]} == {"One?", "Two?", "Three?"}
    assert {q.text for q in probe.groups["unseen"]} == {"Four?", "Five?", "Six?"}
    assert probe.overlap == {"trained": 3, "unseen": 0} and probe.short == {}
    assert {q.split for q in probe.groups["unseen"]} == {"unseen"}
    few = gradient(world, train, 2)
    assert few.quota == few.wanted == {"trained": 2, "unseen": 2}
    many = gradient(world, train, 5)
    assert many.wanted == {"trained": 5, "unseen": 5} and many.short == {"trained": "3 of 5", "unseen": "3 of 5"}
    assert {q.text for q in gradient(world, train, None, also=listed("x", "Six?")).groups["unseen"]} == {
        "Four?",
        "Five?",
    }
    world = World(world.documents, tuple(listed("test_in", *(f"{n}?" for n in range(50)))))
    assert held_out(world, train) == held_out(world, train, 34, 0) == gradient(world, train)
    with pytest.raises(BadInput):
        gradient(world, world.questions, 2)
