"""Which documents truly belong under a key, resolved from a world's facts and never from the words of a document.

    key                      its members                        what serves a member
    city, job, hobby = V     everybody with V (distractors too) the document that gives this person this attribute
    person = P               P's own documents                  the document itself
    friend, child, ... of P  everybody in that relation to P    a document telling the relation's last step, from
    child.child ... of P                                        either end: for a grandchild, "G is a child of C"
    friend.job of P          P's friends                        a friend's job document
    job.city = V             everybody with the job V           the document that gives this person's city

So a birth date does not belong under a city, whoever's it is; "P is the father of C" does not belong under P's
grandchildren, since it is about no grandchild. Under a person any document that names the person belongs, but only the
person's own documents (those it is the subject of) must be there: the same relation is told again from the other end.

That is the people universe; `phantomwiki/truth.py` says the same of a PhantomWiki, whose documents are lists. Neither
knows anything of stores, links and indexes. A world without facts of a kind known here has no truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kbgym.worlds.people.graph import Fact, Graph
from kbgym.worlds.people.population import Person
from kbgym.worlds.people.sentences import fact_ids
from kbgym.worlds.phantomwiki.truth import WikiTruth
from kbgym.worlds.world import Key, World

GROUPS = ("city", "job or hobby", "birth date", "person", "one-hop relation", "two-hop relation")
ATTRIBUTES = ("city", "job", "hobby")

# What a relation is called when the gender of its far end is known.
GENDERED = {
    "mother": ("parent", "female"),
    "father": ("parent", "male"),
    "daughter": ("child", "female"),
    "son": ("child", "male"),
    "sister": ("sibling", "female"),
    "brother": ("sibling", "male"),
    "wife": ("spouse", "female"),
    "husband": ("spouse", "male"),
}
RELATIONS = ("friend", "child", "parent", "spouse", "sibling", *GENDERED)
# The last step of a path may ask for something of the people reached.
ASKED = (*ATTRIBUTES, "birth")

Serving = Mapping[str, frozenset[str]]


class Truth(Protocol):
    """What an audit needs to know of a world. Members are named by strings, the same for one key every time."""

    @property
    def names(self) -> Iterable[str]:
        """Everything a single-entity hub can be about."""

    @property
    def values(self) -> Mapping[str, Iterable[str]]:
        """The attribute values by kind."""

    def members(self, key: Key) -> frozenset[str]:
        """What a whole index of this key leads to."""

    def serves(self, key: Key, document: str) -> frozenset[str]:
        """The members an original document leads to; none when it is not what this key is about."""

    def belongs(self, key: Key, document: str) -> bool:
        """Whether an original document is right under this key."""

    def recitable(self, key: Key) -> frozenset[str]:
        """The names an index of this key must not recite."""


def truth_of(world: World) -> Truth | None:
    """The truth of a world, None where its facts say nothing about keys."""
    match world.facts.get("kind"):
        case "people":
            return PeopleTruth(world)
        case "phantomwiki":
            return WikiTruth(world)
        case _:
            return None


def group_of(key: Key) -> str:
    """The row of the audit's table a key is counted in."""
    if key.kind == "city":
        return "city"
    if key.kind in ATTRIBUTES:
        return "job or hobby"
    if key.kind in ("person", "birth"):
        return "person" if key.kind == "person" else "birth date"
    return "two-hop relation" if "." in key.kind else "one-hop relation"


class PeopleTruth:
    """The people universe, generated or imported. A relation key's kind is its path: `friend`, `child.child`."""

    def __init__(self, world: World) -> None:
        self.graph = Graph.from_facts(world.facts)
        self._told = fact_ids(world.documents)
        self._about = {document.id: document.about for document in world.documents}
        self._own: dict[str, list[str]] = {}
        for document in world.documents:
            if document.about:
                self._own.setdefault(document.about[0], []).append(document.id)
        self.values = {kind: dict.fromkeys(value for (value,) in self.graph.members((kind,))) for kind in ATTRIBUTES}
        self._serving: dict[Key, tuple[frozenset[str], Serving]] = {}

    @property
    def names(self) -> Iterable[str]:
        return self.graph.named

    def members(self, key: Key) -> frozenset[str]:
        return self._resolved(key)[0]

    def serves(self, key: Key, document: str) -> frozenset[str]:
        return self._resolved(key)[1].get(document, frozenset())

    def belongs(self, key: Key, document: str) -> bool:
        if key.kind == "person":
            return self.graph.named.get(key.value) in self._about.get(document, ())
        return bool(self.serves(key, document))

    def recitable(self, key: Key) -> frozenset[str]:
        """For a person: whom the person's own documents name besides."""
        if key.kind != "person":
            return self.members(key)
        person = self.graph.named.get(key.value, "")
        others = {other for document in self._own.get(person, ()) for other in self._about[document]}
        return frozenset(self.graph.person[other].name for other in others if other != person)

    # -- resolving ----------------------------------------------------------------------------------------------------

    def _resolved(self, key: Key) -> tuple[frozenset[str], Serving]:
        if key not in self._serving:
            self._serving[key] = self._resolve(key)
        return self._serving[key]

    def _resolve(self, key: Key) -> tuple[frozenset[str], Serving]:
        kind, _, asked = key.kind.partition(".")
        if kind in ATTRIBUTES:
            holders = self.graph.members((kind,)).get((key.value,), [])
            return self._gathered((person, [(asked or kind, person.id)]) for person in holders)
        person = self.graph.named.get(key.value)
        if person is None:
            return frozenset(), {}
        if key.kind == "person":
            own = self._own.get(person, [])
            return frozenset(own), {document: frozenset((document,)) for document in own}
        return self._gathered(self._walk(self.graph.person[person], key.kind.split(".")))

    def _gathered(self, found: Iterable[tuple[Person, Sequence[Fact]]]) -> tuple[frozenset[str], Serving]:
        """Members by name, and for every document that tells one of their facts whom it serves."""
        members: set[str] = set()
        serving: dict[str, frozenset[str]] = {}
        for person, facts in found:
            members.add(person.name)
            for fact in facts:
                if (document := self._told.get(fact)) is not None:
                    serving[document] = serving.get(document, frozenset()) | {person.name}
        return frozenset(members), serving

    def _walk(self, start: Person, path: Sequence[str]) -> list[tuple[Person, list[Fact]]]:
        """Everybody at the end of a path, with the facts of the last step that lead there."""
        reached: dict[str, list[Fact]] = {start.id: []}
        for step in path:
            if step in ASKED:
                reached = {id: [(step, id)] for id in reached}
                continue
            further: dict[str, list[Fact]] = {}
            for id in reached:
                for other, facts in self._step(self.graph.person[id], step):
                    further.setdefault(other, []).extend(facts)
            reached = further
        if len(path) > 1:
            reached.pop(start.id, None)  # nobody is their own sibling, grandparent or friend's friend
        return [(self.graph.person[id], facts) for id, facts in reached.items()]

    def _step(self, person: Person, relation: str) -> list[tuple[str, list[Fact]]]:
        """Everybody in a relation to a person, with the facts that say so."""
        relation, gender = GENDERED.get(relation, (relation, ""))
        me = person.id
        found: list[tuple[str, list[Fact]]] = []
        if relation == "friend":
            found = [(other, [("friend", me, other), ("friend", other, me)]) for other in person.friends]
        elif relation == "spouse" and person.spouse is not None:
            found = [(person.spouse, [("spouse", me, person.spouse), ("spouse", person.spouse, me)])]
        elif relation == "child":
            found = [(other, [("parent-of", me, other), ("child-of", other, me)]) for other in person.children]
        elif relation == "parent":
            found = [(other, [("child-of", me, other), ("parent-of", other, me)]) for other in person.parents]
        elif relation == "sibling":
            parents = [(parent, set(self.graph.person[parent].children)) for parent in person.parents]
            for sibling in self.graph.siblings(person):
                shared = [parent for parent, children in parents if sibling.id in children]
                facts: list[Fact] = []
                for parent in shared:
                    facts += [("child-of", sibling.id, parent), ("parent-of", parent, sibling.id)]
                found.append((sibling.id, facts))
        return [(other, facts) for other, facts in found if not gender or self.graph.person[other].gender == gender]
