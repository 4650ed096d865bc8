"""Statements about a person that other documents imply but that were not seen.

A person named as a friend, spouse, child or parent has a document of their own that says so. Further guesses are
worth one search each: couples share their children, the parents of a child are married, and a person has the attributes
that nearly everyone has. Nothing is expected of a store whose sentences list values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kbgym.agents.reference.kept_lists import Dependencies
from kbgym.agents.reference.language import WORDS, Fact, facts
from kbgym.agents.reference.memory import Memory
from kbgym.agents.reference.searching import query_about
from kbgym.gym.policy import Lookup

# The relation that a statement about one person implies in the document of the other.
_OTHER_END = {"friend": "friend", "spouse": "spouse", "parent": "child", "mother": "parent", "father": "parent"}
# One page of this query shows all children of a person, where a query per name would cost a search each.
CHILDREN: str = WORDS["about"]["child"]
_CHILD = ("mother", "father")

_FIRST = ("first with parents",)  # the fact read by tests that ask if a person is older than all of those

Told = tuple[str, str]  # a relation, and the related person; empty for an attribute


class Expected:
    """The statements in each person's own documents, and those that other documents imply."""

    def __init__(self, readings: Dependencies | None = None) -> None:
        self._readings = readings or Dependencies()
        self._own: dict[str, dict[Told, None]] = {}
        self._kinds: Counter[tuple[str, str]] = Counter()  # number of documents of each kind per person
        self._implied: dict[str, dict[Told, None]] = {}
        self._born: dict[str, str] = {}
        self._first_with_parents = ""  # the earliest birth of any person with a known parent

    def learn(self, stated: Iterable[Fact]) -> None:
        for fact in stated:
            own, told = self._own.setdefault(fact.about, {}), _own(fact)
            self._kinds[fact.about, told[0]] += told not in own
            own[told] = None
            self._readings.changed(fact.about)
            if fact.relation in _OTHER_END and not fact.whole:
                self._implied.setdefault(_other(fact), {})[_OTHER_END[fact.relation], fact.about] = None
                self._readings.changed(_other(fact))
            if fact.relation == "born":
                self._born[fact.about] = fact.value
            born = self._born.get(fact.about, "")
            earlier = not self._first_with_parents or born < self._first_with_parents
            if born and earlier and self.has(fact.about, "parent"):
                self._first_with_parents = born
                self._readings.changed(_FIRST)

    def forget(self, stated: Iterable[Fact]) -> None:
        for fact in stated:
            own, told = self._own.get(fact.about, {}), _own(fact)
            self._kinds[fact.about, told[0]] -= told in own
            own.pop(told, None)
            self._readings.changed(fact.about)

    def has(self, person: str, kind: str) -> bool:
        self._readings.read(person)
        return self._kinds[person, kind] > 0

    def is_too_old_for_parents(self, person: str) -> bool:
        """Return True if a person was born before everyone with known parents, as the founders of families are."""
        self._readings.read(person)
        self._readings.read(_FIRST)
        return self._born.get(person, "~") < self._first_with_parents

    def implied(self, person: str) -> list[Told]:
        """Return the statements that others' documents imply and the person's own lack, in the order seen."""
        self._readings.read(person)
        own = self._own.get(person, {})
        return [told for told in self._implied.get(person, ()) if told not in own]

    def is_missed(self, person: str, kinds: Iterable[str], texts: Iterable[str]) -> bool:
        """Return True if documents of these kinds that name a person were seen but are not among these texts."""
        self._readings.read(person)
        own, implied = self._own.get(person, ()), self._implied.get(person, ())
        seen = {(person, other) for kind, other in own if kind in kinds}
        seen |= {(other, person) for kind, other in implied if kind in kinds}
        return not seen <= {(fact.about, _other(fact)) for text in texts for fact in facts(text)}

    def guessed(self, person: str, memory: Memory, usual: Iterable[str]) -> list[Told]:
        """Return further likely statements."""
        self._readings.read(person)
        spouses, children = memory.related("spouse", person), memory.related("child", person)
        parents = memory.related("parent", person)
        guesses = [("child", child) for spouse in spouses for child in memory.related("child", spouse)]
        guesses += [("spouse", other) for child in children for other in memory.related("parent", child)]
        guesses += [("parent", other) for parent in parents for other in memory.related("spouse", parent)]
        own = self._own.get(person, {})
        found = [told for told in guesses if told not in own and told[1] != person]
        return list(dict.fromkeys([*found, *((kind, "") for kind in usual if not self.has(person, kind))]))


def gaps(texts: Iterable[str], person: str) -> list[str]:
    """Return sentences about a person that these texts imply and do not contain.

    A search for such a sentence costs one action; further paging might cost five.
    """
    expected = Expected()
    for text in texts:
        expected.learn(facts(text))
    return [lookup_of(person, told).query for told in expected.implied(person)]


def lookup_of(person: str, told: Told) -> Lookup:
    """Return the search that finds one document, and the beginning of its text."""
    relation, other = told
    if relation not in ("friend", "spouse", "parent", "child"):
        query = query_about(relation, person)
        return Lookup(query, seeks=(query,), most=1)
    wordings = [WORDS["sentences"][kind] for kind in (_CHILD if relation == "child" else (relation,))]
    sentences = tuple(wording.format(about=person, value=other).rstrip() for wording in wordings)
    query = f"{CHILDREN.format(person)} {other}" if relation == "child" else sentences[0]
    return Lookup(query, seeks=sentences, most=1)


def lookups_of(person: str, told: Iterable[Told]) -> list[Lookup]:
    """Return the searches for several documents, one search for all children first."""
    found = [(relation, lookup_of(person, (relation, other))) for relation, other in told]
    together = Lookup(CHILDREN.format(person), kinds=("child",), most=1)
    first = [together] if any(relation == "child" for relation, _ in found) else []
    return first + [lookup for _, lookup in found]


def _other(fact: Fact) -> str:
    return fact.value if fact.about == fact.subject else fact.subject


def _own(fact: Fact) -> Told:
    """Return a statement from its subject's point of view: the mother of C has the child C."""
    if fact.about == fact.subject:
        return fact.relation, fact.value if fact.relation in _OTHER_END else ""
    return "child", fact.subject
