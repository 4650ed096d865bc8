"""The kind of people worlds: documents that belong under a key, the oracle's indexes, and the description.

    key                      its members                      documents that serve a member
    city, job, hobby = V     all people with V                the one that states this attribute of the person
    person = P               P's own documents                the document itself
    friend, child, ... of P  all people in that relation to P those that state the relation's last step, from either
    child.child ... of P                                      end: for a grandchild, "G is a child of C"
    friend.job of P          P's friends                      a friend's job document
    job.city = V             all people with the job V        the one that states this person's city

Members include distractors. A birthdate never belongs under a city. "P is the father of C" does not belong under P's
grandchildren, since it mentions no grandchild.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbgym.index_keys.vocabulary import GENDERED
from kbgym.worlds.kinds import WorldKind
from kbgym.worlds.people import pool
from kbgym.worlds.people.graph import Fact, PeopleGraph
from kbgym.worlds.people.sentences import fact_ids
from kbgym.worlds.people.templates import EASY, HARD
from kbgym.worlds.truth import ATTRIBUTES, Told, Truth
from kbgym.worlds.world import Key, Question, World


class PeopleTruth(Truth):
    """The truth of a people world, where every relation is stated from both ends."""

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
        relation, gender = GENDERED.get(relation, [relation, ""])
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


INDEX_TEXTS = {
    "job": "People whose job is {}",
    "hobby": "People whose hobby is {}",
    "city": "People who live in the city of {}",
}


# Two-step keys that a question of the benchmark asks; others would only take places on a page of results.
_ASKED_OF_JOBS = {"hobby": "Hobbies", "city": "Cities"}


def indexes(world: World) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (kind, text, ids of the documents under it) of every index that a perfect curator could build.

    There is a hub for each person with all documents about them, an index for each job, hobby and city, and one for
    each person's friends, children and grandchildren, empty if there are none. Two-step indexes have what a template
    asks of all people under one of these: the cities of people with a job, the jobs of a person's friends.
    """
    graph, told = PeopleGraph.from_facts(world.facts), fact_ids(world.documents)
    about: dict[str, list[str]] = {}
    for document in world.documents:
        for id in document.about:
            about.setdefault(id, []).append(document.id)
    for kind, text in INDEX_TEXTS.items():
        for (value,), people in sorted(graph.members((kind,)).items()):
            yield kind, text.format(value), [told[kind, person.id] for person in people]
            if kind == "job":
                for asked, plural in _ASKED_OF_JOBS.items():
                    found = [told[asked, person.id] for person in people if (asked, person.id) in told]
                    yield f"job.{asked}", f"{plural} of people whose job is {value}", found
                married = [told["spouse", one.id, one.spouse] for one in people if one.spouse is not None]
                yield "job.spouse", f"Spouses of people whose job is {value}", married
    for person in graph.people:
        yield "person", person.name, about.get(person.id, [])
        grandchildren = [fact for child in person.children for fact in graph.childhood(child)]
        relations = {
            "Friends": graph.friendships(person.id),
            "Children": graph.childhood(person.id),
            "Grandchildren": grandchildren,  # stated by their parents' documents
        }
        for relation, facts in relations.items():
            yield relation.lower(), f"{relation} of {person.name}", [told[fact] for fact in facts]
        yield "friend.job", f"Jobs of friends of {person.name}", [told["job", other] for other in person.friends]
        born = [told["birth", other] for other in person.children if ("birth", other) in told]
        yield "child.born", f"Birthdays of children of {person.name}", born if len(born) > 1 else []


class PeopleKind(WorldKind):
    """The kind of generated people worlds and of the paper's own universe."""

    name = "people"
    title = "People universe"
    has_pools = True

    pool = staticmethod(pool)
    truth = PeopleTruth
    oracle = staticmethod(indexes)

    def difficulty(self, question: Question) -> int:
        return 0 if question.class_ in EASY else 1 if question.class_ in HARD else 2
