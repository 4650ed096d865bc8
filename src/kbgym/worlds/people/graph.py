"""The graph of people, with a solver for each kind of question and an enumerator of its valid slots.

A fact is a tuple (kind, subject[, object]) of person ids, like a document's kind and `about`. A solver returns the
golds and the facts that support them, or None if the question is invalid. A join must match exactly one person in the
world, distractors included, and that person must not be a distractor. `questions` adds texts and document ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from kbgym.chronicle.questions import UNKNOWN, numeral
from kbgym.errors import Damaged
from kbgym.worlds.people.population import Person

Fact = tuple[str, ...]
Slots = tuple[str, ...]
Solution = tuple[tuple[str, ...], list[Fact]]


class PeopleGraph:
    """Read-only lookups over a population. Distractors are members of keys, but no question starts from one."""

    def __init__(self, people: Sequence[Person]) -> None:
        self.people = people
        self.person = {person.id: person for person in people}
        self.named = {person.name: person.id for person in people}
        self.asked = [person for person in people if not person.distractor]
        self.place = {person.id: place for place, person in enumerate(self.asked)}
        self._members: dict[tuple[str, ...], dict[tuple[str, ...], list[Person]]] = {}

    @classmethod
    def from_facts(cls, facts: Any) -> PeopleGraph:
        """Read the people of a `world.json`."""
        try:
            return cls(msgspec.convert(facts["people"], tuple[Person, ...]))
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise Damaged(f"world.json does not describe a people world: {error}.") from error

    def spouse(self, person: Person) -> Person | None:
        return None if person.spouse is None else self.person[person.spouse]

    def parent(self, person: Person, gender: str) -> Person | None:
        parents = (self.person[parent] for parent in person.parents)
        return next((parent for parent in parents if parent.gender == gender), None)

    def siblings(self, person: Person) -> Iterator[Person]:
        """Yield every other child of either parent."""
        ids = dict.fromkeys(child for parent in person.parents for child in self.person[parent].children)
        return (self.person[id] for id in ids if id != person.id)

    @staticmethod
    def values(person: Person, fields: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(getattr(person, field) for field in fields)

    def members(self, fields: tuple[str, ...]) -> dict[tuple[str, ...], list[Person]]:
        """Return all people, distractors included, grouped by their values of these fields."""
        if fields not in self._members:
            found: dict[tuple[str, ...], list[Person]] = {}
            for person in self.people:
                found.setdefault(self.values(person, fields), []).append(person)
            self._members[fields] = found
        return self._members[fields]

    def childhood(self, parent: str) -> list[Fact]:
        """Return the facts "parent is the mother/father of child" of a person."""
        return [("parent-of", parent, child) for child in self.person[parent].children]

    def friendships(self, id: str) -> list[Fact]:
        return [("friend", id, friend) for friend in self.person[id].friends]


Solve = Callable[[PeopleGraph, Sequence[str]], Solution | None]
Enumerate = Callable[[PeopleGraph], Iterator[Slots]]


def count(facts: list[Fact]) -> Solution | None:
    return (numeral(len(facts)), facts) if facts else None


# -- easy classes, QC1 to QC5 -----------------------------------------------------------------------------------------


def _step(graph: PeopleGraph, person: Person, relation: str) -> tuple[Person | None, Fact]:
    """Follow one relation; the fact is stated from the end of the married person or the parent."""
    if relation == "spouse":
        return graph.spouse(person), ("spouse", person.id, person.spouse or "")
    parent = graph.parent(person, "male" if relation == "father" else "female")
    return parent, ("parent-of", parent.id if parent else "", person.id)


def attribute(field: str, *relations: str) -> Solve:
    """Ask for a field at the end of a path: ("hobby", "spouse", "father") is the hobby of P's spouse's father."""

    def solve(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
        person, facts = graph.person[slots[0]], []
        for relation in relations:
            reached, fact = _step(graph, person, relation)
            if reached is None:
                return None
            facts.append(fact)
            person = reached
        return (getattr(person, field),), [*facts, (field, person.id)]

    return solve


def no_sibling(gender: str) -> Solve:
    """Return a solver that answers "unknown" if no sibling of P is known to be of this gender."""

    def solve(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
        siblings = graph.siblings(graph.person[slots[0]])
        return None if any(sibling.gender == gender for sibling in siblings) else (UNKNOWN, [])

    return solve


def each_without_sibling(gender: str) -> Enumerate:
    """Yield people with documented parents whose siblings are all known to be of the other gender.

    This is stricter than the solver, since in an imported world a sibling of unknown gender might match.
    """

    def instances(graph: PeopleGraph) -> Iterator[Slots]:
        for person in graph.asked:
            if person.parents and all(sibling.gender not in ("", gender) for sibling in graph.siblings(person)):
                yield (person.id,)

    return instances


# -- hard classes, QC6 to QC10: joins, intersections, deep counts, comparisons, reverse lookups ----------------------


def each_match(*fields: str, married: bool = False) -> Enumerate:
    """Yield values that together belong to exactly one person, who is not a distractor and, if asked, is married."""

    def instances(graph: PeopleGraph) -> Iterator[Slots]:
        members = graph.members(fields)
        for person in graph.asked:
            values = graph.values(person, fields)
            if len(members[values]) == 1 and (person.spouse is not None or not married):
                yield values

    return instances


def match(*fields: str, spouse: bool = False) -> Solve:
    """Ask for the person with all these values, or for their spouse."""

    def solve(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
        found = graph.members(fields).get(tuple(slots), [])
        if len(found) != 1 or found[0].distractor:
            return None
        facts: list[Fact] = [(field, found[0].id) for field in fields]
        return _spouse_of(graph, found[0], facts) if spouse else ((found[0].name,), facts)

    return solve


def _spouse_of(graph: PeopleGraph, person: Person, facts: list[Fact]) -> Solution | None:
    other = graph.spouse(person)
    return None if other is None else ((other.name,), [*facts, ("spouse", person.id, other.id)])


def each_rare_job(graph: PeopleGraph) -> Iterator[Slots]:
    """Yield jobs with exactly one married holder, and thus one answer, and any number of unmarried holders."""
    for (job,), holders in graph.members(("job",)).items():
        if sum(holder.spouse is not None for holder in holders) == 1:
            yield (job,)


def spouse_of_job(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    holders = [holder for holder in graph.members(("job",)).get((slots[0],), []) if holder.spouse is not None]
    return _spouse_of(graph, holders[0], [("job", holders[0].id)]) if len(holders) == 1 else None


def each_common_friend(graph: PeopleGraph) -> Iterator[Slots]:
    """Yield unordered pairs with one or two friends in common."""
    for place, person in enumerate(graph.asked):
        common = Counter(other for friend in person.friends for other in graph.person[friend].friends)
        yield from ((person.id, other) for other, n in common.items() if n <= 2 and graph.place[other] > place)


def common_friend(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    one, other = (graph.person[slot] for slot in slots)
    common = [graph.person[friend].name for friend in one.friends if friend in other.friends]
    facts = graph.friendships(one.id) + graph.friendships(other.id)
    if len(common) == 1:
        return (common[0],), facts
    if len(common) == 2:
        return (f"{common[0]} and {common[1]}", f"{common[1]} and {common[0]}"), facts
    return None


def each_child_and_friend(graph: PeopleGraph) -> Iterator[Slots]:
    for person in graph.asked:
        befriended = Counter(friend for child in person.children for friend in graph.person[child].friends)
        yield from ((person.id, friend) for friend, n in befriended.items() if n == 1 and friend != person.id)


def child_and_friend(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    parent, friend = slots
    found = [child for child in graph.person[parent].children if child in graph.person[friend].friends]
    if len(found) != 1:
        return None
    return (graph.person[found[0]].name,), graph.childhood(parent) + graph.friendships(friend)


def count_grandchildren(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    children = graph.childhood(slots[0])
    further = [fact for _, _, child in children for fact in graph.childhood(child)]
    return (numeral(len(further)), children + further) if further else None


def each_friends_job(graph: PeopleGraph) -> Iterator[Slots]:
    for person in graph.asked:
        for job in dict.fromkeys(graph.person[friend].job for friend in person.friends):
            yield person.id, job


def friends_with_job(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    id, job = slots
    friends = graph.person[id].friends
    count = sum(graph.person[friend].job == job for friend in friends)
    facts = graph.friendships(id) + [("job", friend) for friend in friends]
    return (numeral(count), facts) if count else None


def spouse_friends(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    spouse = graph.spouse(graph.person[slots[0]])
    if spouse is None or not spouse.friends:
        return None
    return numeral(len(spouse.friends)), [("spouse", slots[0], spouse.id), *graph.friendships(spouse.id)]


def each_pair_of_friends(graph: PeopleGraph) -> Iterator[Slots]:
    """Yield every friendship once; the order of the pair does not depend on age."""
    for place, person in enumerate(graph.asked):
        for friend in person.friends:
            further = graph.place[friend]
            if further > place:
                yield (person.id, friend) if (place + further) % 2 else (friend, person.id)


def older_of_two(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    one, other = (graph.person[slot] for slot in slots)
    if other.id not in one.friends or one.born == other.born:
        return None
    older = one if one.born < other.born else other
    return (older.name,), [("birth", one.id), ("birth", other.id)]


def oldest_child(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    children = [graph.person[child] for child in graph.person[slots[0]].children]
    if len(children) < 2:
        return None
    oldest = min(children, key=lambda child: child.born)
    return (oldest.name,), graph.childhood(slots[0]) + [("birth", child.id) for child in children]
