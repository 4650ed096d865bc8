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


def write(people: Sequence[Person], seed: int | None = None) -> tuple[Document, ...]:
    """Return the documents: numbered person by person or, with a seed, shuffled and with random ids."""
    names = {person.id: person.name for person in people}
    told = [fact for person in people for fact in _facts(person, names)]
    if seed is not None:
        random.Random(f"{seed}:documents").shuffle(told)
        return tuple(Document(code(number), text, kind, about) for number, (kind, about, text) in enumerate(told, 1))
    width = max(5, len(str(len(told))))
    return tuple(
        Document(id=f"d{number:0{width}d}", text=text, kind=kind, about=about)
        for number, (kind, about, text) in enumerate(told, 1)
    )


def _facts(person: Person, names: dict[str, str]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    me, name = person.id, person.name
    yield "job", (me,), f"{name}'s job is {person.job}."
    yield "hobby", (me,), f"{name}'s hobby is {person.hobby}."
    yield "city", (me,), f"{name} lives in the city of {person.city}."
    yield "birth", (me,), f"{name} was born on {spoken(person.born)}."
    if person.spouse is not None:
        yield "spouse", (me, person.spouse), f"{name} is married to {names[person.spouse]}."
    for parent in person.parents:
        yield "child-of", (me, parent), f"{name} is a child of {names[parent]}."
    for child in person.children:
        yield "parent-of", (me, child), f"{name} is the {PARENT[person.gender]} of {names[child]}."
    for friend in person.friends:
        yield "friend", (me, friend), f"{name} is a friend of {names[friend]}."


_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("job", r"(.+)'s job is (.+)\."),
        ("hobby", r"(.+)'s hobby is (.+)\."),
        ("city", r"(.+) lives in the city of (.+)\."),
        ("birth", r"(.+) was born on (\w+ \d+, \d+)\."),
        ("spouse", r"(.+) is married to (.+)\."),
        ("child-of", r"(.+) is a child of (.+)\."),
        ("parent-of", r"(.+) is the (?:mother|father) of (.+)\."),
        ("friend", r"(.+) is a friend of (.+)\."),
    )
)


def parse(text: str) -> Sentence | None:
    """Return the fact that a sentence states, or None if it is not in this grammar."""
    for kind, shape in _SHAPES:
        if match := shape.fullmatch(text):
            subject, value = match.groups()
            if kind == "birth":
                value = iso(value)
                return Sentence(kind, subject, value) if value else None
            gender = ("female" if " is the mother of " in text else "male") if kind == "parent-of" else ""
            return Sentence(kind, subject, value, gender)
    return None


def fact_ids(documents: Iterable[Document]) -> dict[tuple[str, ...], str]:
    """Map each fact (kind, subject[, object]) to the id of the document that states it."""
    return {(document.kind, *document.about): document.id for document in documents}
