"""The people as a graph that can be walked, and facts named so that a document can be found for each.

A fact is a tuple (kind, subject[, object]) of person ids, the same shape as a document's kind and `about`. It knows no
document's text and no question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kbgym.errors import Damaged
from kbgym.worlds.people.population import Person

Fact = tuple[str, ...]


class PeopleGraph:
    """Read-only look-ups over a population; distractors are members of keys but are never walked from."""

    def __init__(self, people: Sequence[Person]) -> None:
        self.people = people
        self.person = {person.id: person for person in people}
        self.named = {person.name: person.id for person in people}
        self.asked = [person for person in people if not person.distractor]
        self.place = {person.id: place for place, person in enumerate(self.asked)}
        self._members: dict[tuple[str, ...], dict[tuple[str, ...], list[Person]]] = {}

    @classmethod
    def from_facts(cls, facts: Any) -> PeopleGraph:
        try:
            return cls(msgspec.convert(facts["people"], tuple[Person, ...]))
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise Damaged(f"world.json does not describe a people world: {error}.") from error

    def mother(self, person: Person) -> Person | None:
        return self._parent(person, "female")

    def father(self, person: Person) -> Person | None:
        return self._parent(person, "male")

    def spouse(self, person: Person) -> Person | None:
        return None if person.spouse is None else self.person[person.spouse]

    def _parent(self, person: Person, gender: str) -> Person | None:
        parents = (self.person[parent] for parent in person.parents)
        return next((parent for parent in parents if parent.gender == gender), None)

    def siblings(self, person: Person) -> Iterator[Person]:
        """Everybody else who shares a parent."""
        ids = dict.fromkeys(child for parent in person.parents for child in self.person[parent].children)
        return (self.person[id] for id in ids if id != person.id)

    @staticmethod
    def values(person: Person, fields: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(getattr(person, field) for field in fields)

    def members(self, fields: tuple[str, ...]) -> dict[tuple[str, ...], list[Person]]:
        """Everybody, distractors too, by what they have in these fields."""
        if fields not in self._members:
            found: dict[tuple[str, ...], list[Person]] = {}
            for person in self.people:
                found.setdefault(self.values(person, fields), []).append(person)
            self._members[fields] = found
        return self._members[fields]

    def childhood(self, parent: str) -> list[Fact]:
        """The facts 'parent is the mother/father of child', told from the parent's end."""
        return [("parent-of", parent, child) for child in self.person[parent].children]

    def friendships(self, id: str) -> list[Fact]:
        return [("friend", id, friend) for friend in self.person[id].friends]
