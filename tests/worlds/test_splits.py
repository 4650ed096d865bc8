"""Splits and training subsets: sizes, mix, disjointness, order."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from second_path import instance

from kbgym.errors import BadInput
from kbgym.worlds import splits
from kbgym.worlds.people import TEMPLATES, Sizes, generate
from kbgym.worlds.people.kind import PeopleKind
from kbgym.worlds.splits import interleave
from kbgym.worlds.world import Question

EASY = {"QC1", "QC2", "QC3", "QC4", "QC5"}
ALL = {f"QC{number}" for number in range(1, 11)}


def training_subset(questions, n):
    return splits.training_subset(questions, n, PeopleKind().difficulty)


def easy(questions):
    return sum(question.class_ in EASY for question in questions)


@pytest.mark.parametrize("seed", range(5))
def test_sizes_mix_and_templates(world_of, seed):
    world = world_of(seed)
    assert world.splits == {"train": 150, "test_in": 100, "test_out": 50, "eval": 30}
    assert [q.id for q in world.questions] == [f"q{number:04d}" for number in range(1, 331)]
    for split, easy_ones in (("train", 60), ("test_in", 40), ("test_out", 20), ("eval", 12)):
        questions = world.split(split)
        assert easy(questions) == easy_ones
        assert {q.class_ for q in questions} == ALL
        used = Counter(TEMPLATES[q.template].reserved for q in questions)
        assert used == {"train": {False: 150}, "test_in": {False: 100}, "test_out": {True: 50}}.get(
            split, {False: 20, True: 10}
        )
        if split != "eval":
            per_template = Counter((q.class_ in EASY, q.template) for q in questions)
            for group in (True, False):
                counts = [count for (is_easy, _), count in per_template.items() if is_easy == group]
                assert max(counts) - min(counts) <= 1
    assert {q.template for q in world.questions} == set(TEMPLATES)


def test_no_instance_stands_in_two_places(world_of):
    for seed in range(5):
        asked = Counter((q.template, instance(q.template, q.keys)) for q in world_of(seed).questions)
        assert max(asked.values()) == 1


def test_every_stretch_of_the_training_split_is_mixed(world_of):
    train = world_of(0).split("train")
    for start in range(0, 141, 10):
        assert 3 <= easy(train[start : start + 10]) <= 5


def test_the_paper_trains_on_100_of_150(world_of):
    subset = training_subset(world_of(0).split("train"), 100)
    assert (len(subset), easy(subset)) == (100, 40)
    assert {q.class_ for q in subset} == ALL


@given(n=st.integers(13, 150), reverse=st.booleans(), easy_first=st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_subset_keeps_the_mix_and_the_classes(n, reverse, easy_first):
    train = TRAIN[::-1] if reverse else TRAIN
    train = sorted(train, key=lambda q: q.class_ not in EASY) if easy_first else train
    subset = training_subset(train, n)
    assert len({q.id for q in subset}) == len(subset) == n
    assert abs(easy(subset) - 0.4 * n) < 1
    assert {q.class_ for q in subset} == ALL
    assert subset == training_subset(train, n)
    assert abs(easy(subset[: n // 2]) - 0.4 * (n // 2)) <= 1


TRAIN = generate(500, 0).split("train")


def test_a_subset_of_another_worlds_questions():
    questions = [Question(f"q{i}", "train", "kin", "aunt" if i < 8 else "uncle", "?", ("x",)) for i in range(12)]
    assert [q.template for q in training_subset(questions, 6)] == ["aunt", "uncle"] * 3
    assert training_subset(questions, 0) == () == training_subset([], 0)


@pytest.mark.parametrize("n", [-1, 151])
def test_a_subset_that_cannot_be_taken(n):
    with pytest.raises(BadInput, match=f"cannot take {n} of 150"):
        training_subset(TRAIN, n)


@given(st.lists(st.lists(st.integers(), max_size=20), max_size=4))
def test_interleaving_keeps_everything_and_every_order(lists):
    tagged = [[(place, item) for item in items] for place, items in enumerate(lists)]
    merged = list(interleave(tagged))
    assert [[pair for pair in merged if pair[0] == place] for place in range(len(lists))] == tagged


def test_an_exhausted_template_leaves_its_turns_to_the_others():
    world = generate(500, 0, Sizes(0, 0, 100, 0, 0))
    assert 8 <= Counter(q.template for q in world.questions)["spouse-of-job"] <= 12
    assert (len(world.questions), easy(world.questions)) == (100, 40)
