"""Which documents belong under a key of the people universe, generated or imported, from its facts.

    key                      its members                        what serves a member
    city, job, hobby = V     everybody with V (distractors too) the document that gives this person this attribute
    person = P               P's own documents                  the document itself
    friend, child, ... of P  everybody in that relation to P    a document telling the relation's last step, from
    child.child ... of P                                        either end: for a grandchild, "G is a child of C"
    friend.job of P          P's friends                        a friend's job document

So a birth date does not belong under a city, whoever's it is; "P is the father of C" does not belong under P's
grandchildren, since it is about no grandchild.
"""

from __future__ import annotations

from collections.abc import Iterable

from kbgym.worlds.people.graph import Fact, PeopleGraph
from kbgym.worlds.people.sentences import fact_ids
from kbgym.worlds.truth import ATTRIBUTES, GENDERED, PersonTruth, Told
from kbgym.worlds.world import Key, World


class PeopleTruth(PersonTruth):
    """The truth of one people world. Every relation is told from both ends."""

    asked = (*ATTRIBUTES, "birth")

    def __init__(self, world: World) -> None:
        self.graph = PeopleGraph.from_facts(world.facts)
        values = {kind: dict.fromkeys(value for (value,) in self.graph.members((kind,))) for kind in ATTRIBUTES}
        super().__init__(world.documents, {person.id: person.name for person in self.graph.people}, values)
        self._told = fact_ids(world.documents)

    def _holders(self, key: Key) -> Iterable[str]:
        return (person.id for person in self.graph.members((key.kind,)).get((key.value,), ()))

    def _document(self, person: str, kind: str) -> str | None:
        return self._told.get((kind, person))

    def _step(self, person: str, relation: str) -> Told:
        relation, gender = GENDERED.get(relation, (relation, ""))
        me = self.graph.person[person]
        found: dict[str, list[Fact]] = {}
        if relation == "friend":
            found = {other: [("friend", person, other), ("friend", other, person)] for other in me.friends}
        elif relation == "spouse" and me.spouse is not None:
            found = {me.spouse: [("spouse", person, me.spouse), ("spouse", me.spouse, person)]}
        elif relation == "child":
            found = {other: self._born(other, person) for other in me.children}
        elif relation == "parent":
            found = {other: self._born(person, other) for other in me.parents}
        elif relation == "sibling":
            for parent in me.parents:
                for other in self.graph.person[parent].children:
                    if other != person:
                        found.setdefault(other, []).extend(self._born(other, parent))
        return {
            other: [self._told.get(fact) for fact in facts]
            for other, facts in found.items()
            if not gender or self.graph.person[other].gender == gender
        }

    @staticmethod
    def _born(child: str, parent: str) -> list[Fact]:
        return [("child-of", child, parent), ("parent-of", parent, child)]
