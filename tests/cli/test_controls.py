"""Controls: what training would gain for other reasons than those claimed."""

from __future__ import annotations

import json

import pytest

from kbgym.agents.reference.language import index_text
from kbgym.errors import BadInput
from kbgym.experiments.controls import CONTROLS, controlled
from kbgym.index_keys import IndexKey
from kbgym.training.run import Settings
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.people import generate
from kbgym.worlds.world import Document, Question, World

SETTINGS = Settings(embedder="hash", questions=10, epochs=1, eval=False)


@pytest.fixture(scope="module")
def world():
    return generate(60, 1)


def plain():
    documents = tuple(Document(f"d{at}", f"The mill number {at} was built in the year {1800 + at}.") for at in range(9))
    asked = tuple(
        Question(f"q{at}", "train", "", "", f"When was mill {at} built?", (f"{1800 + at}",)) for at in range(4)
    )
    return World(documents, asked, {"kind": "corpus"})


def test_wrong_answers_are_the_same_answers_of_other_questions(world):
    made, settings, begins = controlled(world, "wrong-answers", SETTINGS)
    before, after = world.split("train"), made.split("train")
    assert [one.text for one in after] == [one.text for one in before] and settings == SETTINGS and begins is None
    assert sorted(one.golds for one in after) == sorted(one.golds for one in before)
    assert not [one.id for one, other in zip(before, after, strict=True) if one.golds == other.golds]
    assert made.split("test_in") == world.split("test_in") and made.documents == world.documents


@pytest.mark.parametrize("make", [lambda: generate(60, 1), plain])
def test_random_questions_are_about_something_else(make):
    world = make()
    made, *_ = controlled(world, "random-questions", SETTINGS)
    asked = {one.text for one in world.questions}
    assert len(made.split("train")) == len(world.split("train"))
    assert not [one.text for one in made.split("train") if one.text in asked]
    texts = {one.id: one.text for one in made.documents}
    for one in made.split("train"):
        assert one.golds and (not one.keys or one.template) and all(id in texts for id in one.support)


def test_controls_are_reproducible_and_named(world):
    for control in CONTROLS:
        first, second = (controlled(world, control, SETTINGS) for _ in range(2))
        assert first[0].hash == second[0].hash and first[1] == second[1]
    with pytest.raises(BadInput):
        controlled(world, "no-control", SETTINGS)


@pytest.mark.parametrize("control", CONTROLS)
def test_train_takes_a_control_and_goes_on(kbgym, world, tmp_path, control):
    world.save(tmp_path / "w")
    small = ("--questions", "6", "--epochs", "1", "--set", "embedder=hash", "--json")
    for _ in range(2):
        code, text, error = kbgym(
            "train", "--world", tmp_path / "w", "--out", tmp_path / "run", "--control", control, *small
        )
        assert code == 0, error
    found = json.loads(text)
    assert found["iterations"] == (0 if control == "no-questions" else 6) and found["links"] > 0
    assert kbgym("exam", tmp_path / "run", "--set", "test_in", "--quiet")[0] == 0


def test_the_oracle_has_every_two_step_index_under_the_name_a_curator_gives_it(world):
    found = {(kind, text): members for kind, text, members in kind_of(world).oracle(world)}
    truth = kind_of(world).truth(world)
    checked = 0
    for (kind, text), members in found.items():
        first, _, asked = kind.partition(".")
        if not asked or asked == "spouse" or not members:
            continue
        value = text.rpartition(f"{'friends' if first == 'friend' else ''} of ")[2]
        value = value.rpartition(" is ")[2].rpartition("city of ")[2]
        assert text == index_text(IndexKey(first, value, asked))
        checked += bool(truth.names)
    assert checked > 50
