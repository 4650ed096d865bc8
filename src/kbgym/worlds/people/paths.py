"""The easy classes, QC1 to QC5: walk from one person, count, or notice that there is nothing to walk to.

Each function solves one kind of question over the graph: the golds and the facts they rest on, or None where the
question may not be asked. It knows no texts and no document ids.


The hard classes, QC6 to QC10: joins, intersections, deep counts, comparisons, reverse look-ups.

For each template an enumerator of all slots that may be asked and a solver over the graph. A join must hold for exactly
one person of the whole world, distractors included, and never for a distractor. It knows no texts and no document ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

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


Slots = tuple[str, ...]
Enumerate = Callable[[PeopleGraph], Iterator[Slots]]


def each_match(*fields: str, married: bool = False) -> Enumerate:
    """Values that together belong to exactly one person, who is no distractor (and, if asked, is married)."""

    def instances(graph: PeopleGraph) -> Iterator[Slots]:
        members = graph.members(fields)
        for person in graph.asked:
            values = graph.values(person, fields)
            if len(members[values]) == 1 and (person.spouse is not None or not married):
                yield values

    return instances


def match(*fields: str, spouse: bool = False) -> Solve:
    """Who has all these values, or who is married to them."""

    def solve(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
        found = graph.members(fields).get(tuple(slots), [])
        if len(found) != 1 or found[0].distractor:
            return None
        person = found[0]
        facts: list[Fact] = [(field, person.id) for field in fields]
        if not spouse:
            return (person.name,), facts
        return _married(graph, person, facts)

    return solve


def _married(graph: PeopleGraph, person: Person, facts: list[Fact]) -> Solution | None:
    other = graph.spouse(person)
    return None if other is None else ((other.name,), [*facts, ("spouse", person.id, other.id)])


def each_rare_job(graph: PeopleGraph) -> Iterator[Slots]:
    """Jobs with exactly one married holder: one person is the answer, however many unmarried holders there are."""
    for (job,), holders in graph.members(("job",)).items():
        if sum(holder.spouse is not None for holder in holders) == 1:
            yield (job,)


def spouse_of_job(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    holders = [holder for holder in graph.members(("job",)).get((slots[0],), []) if holder.spouse is not None]
    return _married(graph, holders[0], [("job", holders[0].id)]) if len(holders) == 1 else None


def each_common_friend(graph: PeopleGraph) -> Iterator[Slots]:
    """Unordered pairs with one or two friends in common."""
    for place, person in enumerate(graph.asked):
        common = Counter(other for friend in person.friends for other in graph.person[friend].friends)
        yield from ((person.id, other) for other, n in common.items() if n <= 2 and graph.place[other] > place)


def common_friend(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    one, other = slots
    common = [
        graph.person[friend].name for friend in graph.person[one].friends if friend in graph.person[other].friends
    ]
    facts = graph.friendships(one) + graph.friendships(other)
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
    children = graph.person[slots[0]].children
    further = [fact for child in children for fact in graph.childhood(child)]
    return (number(len(further)), graph.childhood(slots[0]) + further) if further else None


def each_friends_job(graph: PeopleGraph) -> Iterator[Slots]:
    for person in graph.asked:
        for job in dict.fromkeys(graph.person[friend].job for friend in person.friends):
            yield person.id, job


def friends_with_job(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    id, job = slots
    friends = graph.person[id].friends
    count = sum(graph.person[friend].job == job for friend in friends)
    facts = graph.friendships(id) + [("job", friend) for friend in friends]
    return (number(count), facts) if count else None


def spouse_friends(graph: PeopleGraph, slots: Sequence[str]) -> Solution | None:
    spouse = graph.spouse(graph.person[slots[0]])
    if spouse is None or not spouse.friends:
        return None
    return number(len(spouse.friends)), [("spouse", slots[0], spouse.id), *graph.friendships(spouse.id)]


def each_pair_of_friends(graph: PeopleGraph) -> Iterator[Slots]:
    """Every friendship once; who is named first says nothing about who is older."""
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
