"""The description of a PhantomWiki world matches its sentences."""

import re

import pytest

from kbgym.worlds.kinds import description_of, kind_of
from kbgym.worlds.phantomwiki import build


@pytest.fixture(scope="module")
def world(folder, small):
    return build(folder, small)[0]


def test_every_sentence_has_one_of_the_forms(world):
    said = description_of(world)
    shapes = [re.compile(re.sub("[A-Z]{4,}", "[^,]+", re.escape(form.form))[:-2] + r".*\.") for form in said.forms]
    assert len(shapes) == 6
    assert all(any(shape.fullmatch(document.text) for shape in shapes) for document in world.documents)
    assert all(any(shape.fullmatch(form.example) for shape in shapes) for form in said.forms)
    assert not any("Sample" in document.text for document in world.documents), "an example gives nothing away"


def test_nothing_of_it_is_stored_and_it_has_no_oracle(world):
    assert world.description is None and kind_of(world).oracle(world) is None
    assert kind_of(world).lists_answers and kind_of(world).title == "PhantomWiki"
