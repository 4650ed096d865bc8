"""The people of a PhantomWiki, its 45 relations, and its eight question templates with answers and supports.

Derived kinship is resolved as a path over stated relations, so every answer has its supporting sentences: those of the
forward path from the key, which a reader starting there would read (each relation is also stated from its other end).
The paths reach the same people as the Prolog rules of the package; neither the generator nor Prolog is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from kbgym.index_keys.vocabulary import HALVES, STEPS
from kbgym.index_keys.vocabulary import plural as plural_of
from kbgym.worlds.world import Key

# The generator's attribute names, ours, and the words of its sentences and questions.
PREDICATES = {"dob": "birth", "job": "job", "hobby": "hobby", "gender": "gender"}
ATTRIBUTES = {"birth": "date of birth", "job": "occupation", "hobby": "hobby"}

# A sentence of an article lists all people in one of these relations.
STATED = ("mother", "father", "sister", "brother", "son", "daughter", "wife", "husband", "friend")

# All other relations are unions of two stated ones, or paths. PhantomWiki writes "great_aunt" for "great-aunt".
_WORDS = {words.replace("-", "_").replace(" ", "_"): words for words in STEPS}

# The 45 relations in questions, which do not include "spouse".
RELATIONS = (*STATED, *(name for name in HALVES if name != "spouse"), *_WORDS)


def spoken(relation: str, plural: bool = False) -> str:
    """Return a relation in words: great_aunt, great-aunt; father_in_law, fathers-in-law."""
    words = _WORDS.get(relation, relation)
    return plural_of(words) if plural else words


# Templates by PhantomWiki's type number.
TEMPLATES = tuple(
    "relation-of-attribute relation-of who-has-attribute attribute-of-relation attribute-of-attribute "
    "count-of-relation count-of-attribute count-of".split()
)
# The form of the outermost question.
CLASSES = ("relation", "relation", "who", "attribute", "attribute", "count", "count", "count")

# People or answers, each with the documents on the path to it.
Found = Mapping[str, frozenset[str]]


class Stated(NamedTuple):
    """The content of a document: the people in a relation to a person, or the value of an attribute."""

    document: str
    kind: str
    subject: str
    values: tuple[str, ...]


class Instance(NamedTuple):
    """A valid question. `slots` are relation and attribute names; the key is named in the question.

    Several answers are correct together, except counts, which differ between several people that match the question.
    """

    type: int
    slots: tuple[str, ...]
    key: Key
    text: str
    answers: tuple[str, ...]
    support: frozenset[str]

    @property
    def template(self) -> str:
        return TEMPLATES[self.type]

    @property
    def tautology(self) -> bool:
        """Return True if the question asks for the value that it names."""
        return self.type == 4 and self.slots[0] == self.key.kind


class Wiki:
    def __init__(self, people: Iterable[str], stated: Iterable[Stated]) -> None:
        self.people = tuple(people)
        self._ids: dict[tuple[str, str], str] = {}
        self._values: dict[tuple[str, str], tuple[str, ...]] = {}
        self._reached: dict[tuple[str, str], Found] = {}
        for document, kind, subject, values in stated:
            self._ids[subject, kind] = document
            self._values[subject, kind] = values

    def reach(self, person: str, relation: str) -> Found:
        """Return the people in a relation to a person. A path of cousins back to the person is omitted."""
        found = self._reached.get((person, relation))
        if found is None:
            found = self._reached[person, relation] = dict(sorted(self._walk(person, relation).items()))
        return found

    def _walk(self, person: str, relation: str) -> dict[str, frozenset[str]]:
        if relation in STATED:
            others = self._values.get((person, relation), ())
            return {other: frozenset({self._ids[person, relation]}) for other in others}
        if relation in HALVES:
            first, second = HALVES[relation]
            return {**self.reach(person, first), **self.reach(person, second)}
        here: dict[str, frozenset[str]] = {person: frozenset()}
        for step in STEPS[spoken(relation)]:
            here = self._step(here, step)
        if "cousin" in relation:
            here.pop(person, None)
        return here

    @cached_property
    def holders(self) -> dict[Key, tuple[str, ...]]:
        """Return the people by attribute value."""
        holders: dict[Key, list[str]] = {}
        for person in self.people:
            for name in ATTRIBUTES:
                for value in self._values.get((person, name), ()):
                    holders.setdefault(Key(name, value), []).append(person)
        return {key: tuple(holders[key]) for key in sorted(holders)}

    def pool(self, type: int) -> Iterator[Instance]:
        """Yield all instances of a template that have an answer; counts that are 0 for all people are skipped."""
        if type in (1, 3, 5, 7):
            for person in self.people:
                yield from self._about(type, Key("person", person), {person: frozenset()})
        else:
            for key, people in self.holders.items():
                yield from self._about(type, key, {one: frozenset({self._ids[one, key.kind]}) for one in people})

    def _about(self, type: int, key: Key, start: Found) -> Iterator[Instance]:
        """Yield the instances of a template for one key, whose people are in `start`."""
        # Every relation that leads from these people to somebody, with those people.
        steps = (((relation,), led) for relation in RELATIONS if (led := self._step(start, relation)))
        for slots, people in steps if type in (0, 1, 3, 5) else [((), start)]:
            if type in (0, 1, 2):
                yield _instance(type, slots, key, people)
            elif type in (3, 4):
                for name in ATTRIBUTES:
                    if values := self._attribute(people, name):
                        yield _instance(type, (name, *slots), key, values)
            else:
                for counted in RELATIONS:
                    counts = self._counts(people, counted)
                    if any(number != "0" for number in counts):
                        yield _instance(type, (counted, *slots), key, counts)

    def _step(self, start: Found, relation: str) -> dict[str, frozenset[str]]:
        """Return the people reached over a relation, with the documents of all paths to them."""
        reached = ((seen, self.reach(person, relation)) for person, seen in start.items())
        return _gathered((other, seen | read) for seen, found in reached for other, read in found.items())

    def _attribute(self, start: Found, name: str) -> Found:
        return _gathered(
            (value, seen | {self._ids[person, name]})
            for person, seen in start.items()
            for value in self._values.get((person, name), ())
        )

    def _counts(self, start: Found, relation: str) -> Found:
        reached = ((seen, self.reach(person, relation)) for person, seen in start.items())
        return _gathered((str(len(found)), seen.union(*found.values())) for seen, found in reached)


def _gathered(found: Iterable[tuple[str, frozenset[str]]]) -> dict[str, frozenset[str]]:
    there: dict[str, frozenset[str]] = {}
    for one, read in found:
        there[one] = there.get(one, frozenset()) | read
    return there


def wording(type: int, slots: tuple[str, ...], key: Key) -> str:
    """Return the question in PhantomWiki's wording."""
    whom = key.value if key.kind == "person" else f"the person whose {ATTRIBUTES[key.kind]} is {key.value}"
    if type in (0, 1):
        return f"Who is the {spoken(slots[0])} of {whom}?"
    if type == 2:
        return f"Who is {whom}?"
    if type in (3, 5):
        whom = f"the {spoken(slots[1])} of {whom}"
    if type in (3, 4):
        return f"What is the {ATTRIBUTES[slots[0]]} of {whom}?"
    return f"How many {spoken(slots[0], plural=True)} does {whom} have?"


def _instance(type: int, slots: tuple[str, ...], key: Key, found: Found) -> Instance:
    support: frozenset[str] = frozenset().union(*found.values())
    return Instance(type, slots, key, wording(type, slots, key), tuple(sorted(found)), support)
