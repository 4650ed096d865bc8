"""The easy classes, QC1 to QC5: walk from one person, count, or notice that there is nothing to walk to.

Each function solves one kind of question over the graph: the golds and the facts they rest on, or None where the
question may not be asked. It knows no texts and no document ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kbgym.worlds.people.graph import Fact, PeopleGraph
from kbgym.worlds.people.population import Person

Solution = tuple[tuple[str, ...], list[Fact]]
Solve = Callable[[PeopleGraph, Sequence[str]], Solution | None]

UNKNOWN = ("unknown",)

_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty""".split()


def number(count: int) -> tuple[str, ...]:
    """A count as a digit and, where it has one short word, as that."""
    return (str(count), _WORDS[count]) if count < len(_WORDS) else (str(count),)


def _step(graph: PeopleGraph, person: Person, relation: str) -> tuple[Person | None, Fact]:
    """Follow one relation; the fact is the one told from the married person's or the parent's end."""
    if relation == "spouse":
        spouse = graph.spouse(person)
        return spouse, ("spouse", person.id, person.spouse or "")
    parent = graph.father(person) if relation == "father" else graph.mother(person)
    return parent, ("parent-of", parent.id if parent else "", person.id)


def attribute(field: str, *relations: str) -> Solve:
    """A field of whoever the relations lead to: ("hobby", "spouse", "father") is the hobby of P's spouse's father."""

    def solve(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
        person, facts = graph.person[slots[0]], []
        for relation in relations:
            reached, fact = _step(graph, person, relation)
            if reached is None:
                return None
            facts.append(fact)
            person = reached
        facts.append((field, person.id))
        return (getattr(person, field),), facts

    return solve


def count_children(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    facts = graph.childhood(slots[0])
    return (number(len(facts)), facts) if facts else None


def count_friends(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    facts = graph.friendships(slots[0])
    return (number(len(facts)), facts) if facts else None


def no_sibling(gender: str) -> Solve:
    """Unknown, if no sibling of P is known to be of this gender."""

    def solve(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
        siblings = graph.siblings(graph.person[slots[0]])
        return None if any(sibling.gender == gender for sibling in siblings) else (UNKNOWN, [])

    return solve


def no_spouse(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    return (UNKNOWN, []) if graph.person[slots[0]].spouse is None else None
