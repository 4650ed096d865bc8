"""The grammar of sentences in people worlds: `write` converts a population to documents, `parse` reads a sentence.

Every relation is stated once from either end.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kbgym.chronicle.wordings import iso, spoken
from kbgym.codes import code
from kbgym.worlds.people.population import Person
from kbgym.worlds.world import Document

PARENT = {"female": "mother", "male": "father"}


class Sentence(NamedTuple):
    """A parsed sentence: `value` is a name, a value or an ISO date; `gender` is set for mothers and fathers."""

    kind: str
    subject: str
    value: str
    gender: str = ""


_FORMS = {
    "job": "{}'s job is {}.",
    "hobby": "{}'s hobby is {}.",
    "city": "{} lives in the city of {}.",
    "birth": "{} was born on {}.",
    "spouse": "{} is married to {}.",
    "child-of": "{} is a child of {}.",
    "mother": "{} is the mother of {}.",
    "father": "{} is the father of {}.",
    "friend": "{} is a friend of {}.",
}
_SHAPES = {form: re.compile(re.escape(text).replace(r"\{\}", "(.+)")) for form, text in _FORMS.items()}
_GENDER = {word: gender for gender, word in PARENT.items()}


def write(people: Sequence[Person], seed: int) -> tuple[Document, ...]:
    """Return the documents in random order."""
    told = list(statements(people))
    random.Random(f"{seed}:documents").shuffle(told)
    return tuple(Document(code(number), *one) for number, one in enumerate(told, 1))


def statements(people: Sequence[Person]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the text, kind and people of every document, person by person."""
    names = {person.id: person.name for person in people}
    for person in people:
        values = {"job": person.job, "hobby": person.hobby, "city": person.city, "birth": spoken(person.born)}
        for kind, value in values.items():
            yield _FORMS[kind].format(person.name, value), kind, (person.id,)
        related = {
            "spouse": () if person.spouse is None else (person.spouse,),
            "child-of": person.parents,
            "parent-of": person.children,
            "friend": person.friends,
        }
        for kind, others in related.items():
            for other in others:
                form = _FORMS[PARENT[person.gender] if kind == "parent-of" else kind]
                yield form.format(person.name, names[other]), kind, (person.id, other)


def parse(text: str) -> Sentence | None:
    """Return the fact that a sentence states, or None if it is not in this grammar."""
    for form, shape in _SHAPES.items():
        if match := shape.fullmatch(text):
            subject, value = match.groups()
            if form in _GENDER:
                return Sentence("parent-of", subject, value, _GENDER[form])
            if form == "birth" and not (value := _date(value)):
                return None
            return Sentence(form, subject, value)
    return None


def _date(value: str) -> str:
    """Return a date in words as an ISO date, or "" if it is none."""
    return iso(value) if re.fullmatch(r"\w+ \d+, \d+", value) else ""


def fact_ids(documents: Iterable[Document]) -> dict[tuple[str, ...], str]:
    """Map each fact (kind, subject[, object]) to the id of the document that states it."""
    return {(document.kind, *document.about): document.id for document in documents}
