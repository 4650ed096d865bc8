"""The facts that a reference agent has read in one pass, and the sets it knows to be complete.

All facts come from observations. Only obvious conclusions are drawn: friendship and marriage are symmetric, a child's
parent has that child, a father is a male parent.
"""

from __future__ import annotations

from collections.abc import Iterable

from kbgym.agents.reference.kept_lists import Dependencies
from kbgym.agents.reference.language import ATTRIBUTES, Fact, facts
from kbgym.agents.reference.questions import Both, Either, Having, NamedPerson, Oldest, People, Related
from kbgym.index_keys import IndexKey
from kbgym.index_keys.vocabulary import GENDERED, HALVES, PATHS

_MUTUAL = ("friend", "spouse", "sibling")
_LISTS = ("lists",)
_OPPOSITE = {"parent": "child", "child": "parent"}


class Memory:
    """Facts by subject and by value; `readings` is told what is read and what changes."""

    def __init__(self, readings: Dependencies | None = None) -> None:
        self._readings = readings or Dependencies()
        self._values: dict[tuple[str, str], dict[str, None]] = {}
        self._holders: dict[IndexKey, dict[str, None]] = {}
        self._settled: dict[tuple[str, str], tuple[str, ...]] = {}
        self.whole_people: set[str] = set()  # everything the store states about them was read
        self.whole_keys: set[IndexKey] = set()  # everyone with these attributes is known
        self._listed: set[tuple[str, str]] = set()

    # -- input ---------------------------------------------------------------------------------------------------------

    def learn(self, text: str) -> tuple[Fact, ...]:
        """Record a sentence and return the facts it states."""
        stated = facts(text)
        self.take(stated)
        return stated

    def take(self, stated: Iterable[Fact]) -> None:
        """Record facts."""
        for fact in stated:
            self._note(fact.relation, fact.subject, fact.value)
            if fact.whole:
                if not self._listed:
                    self._readings.changed(_LISTS)
                self._listed.add((fact.relation, fact.subject))

    def _note(self, relation: str, subject: str, value: str) -> None:
        known = self._values.setdefault((relation, subject), {})
        if value in known:
            return
        self._readings.changed((relation, subject))
        self._readings.changed(IndexKey(relation, value))
        known[value] = None
        if relation in ATTRIBUTES:
            self._holders.setdefault(IndexKey(relation, value), {})[subject] = None
        if relation in GENDERED:
            general, gender = GENDERED[relation]
            self._note("gender", value, gender)
            self._note(general, subject, value)
        if relation in _MUTUAL:
            self._note(relation, value, subject)
        if relation in _OPPOSITE:
            self._note(_OPPOSITE[relation], value, subject)

    def settle(self, relation: str, person: str, values: Iterable[str]) -> None:
        """Mark a set as complete."""
        self._settled[relation, person] = tuple(values)

    def settle_list(self, relation: str, person: str) -> None:
        """Mark a relation as complete: no sentence lists more of it than has been read."""
        self._listed.add((relation, person))
        self._listed.update((half, person) for half in HALVES.get(relation, ()))

    def credit(self, key: IndexKey, people: Iterable[str]) -> None:
        """Record that, according to an index, these people have an attribute or a relation to a person."""
        for person in people:
            self._note(key.kind, *((person, key.value) if key.kind in ATTRIBUTES else (key.value, person)))

    # -- queries -------------------------------------------------------------------------------------------------------

    def is_settled(self, relation: str, person: str) -> bool:
        return (relation, person) in self._settled

    @property
    def lists(self) -> bool:
        """Return True if this store's sentences state all values at once."""
        self._readings.read(_LISTS)
        return bool(self._listed)

    def is_listed(self, relation: str, person: str) -> bool:
        """Return True if the sentence that lists a relation was read, or all sentences that list it together."""
        if (relation, person) in self._listed:
            return True
        halves = [(half, person) in self._listed for half in HALVES.get(relation, ())]
        return any(halves) if relation == "spouse" else bool(halves) and all(halves)

    def unlisted(self, relation: str, person: str) -> list[str]:
        """Return the people known to be related to a person whom no list of that person names."""
        lists = [(name, person) for name in (relation, *HALVES.get(relation, ())) if (name, person) in self._listed]
        named = {value for place in lists for value in self._values.get(place, ())}
        return [one for one in self.related(relation, person) if one not in named]

    def related(self, relation: str, person: str) -> list[str]:
        """Return the people (or values) known to be related to a person."""
        self._readings.read((relation, person))
        if (relation, person) in self._settled:
            return list(self._settled[relation, person])
        if (steps := PATHS.get(relation)) is not None:
            reached = [person]
            for step in steps:
                reached = list(dict.fromkeys(other for one in reached for other in self.related(step, one)))
            return [other for other in reached if other != person]
        found = dict(self._values.get((relation, person), {}))
        if relation in GENDERED:
            general, gender = GENDERED[relation]
            for other in self.related(general, person):
                self._readings.read(("gender", other))
                if gender in self._values.get(("gender", other), {}):
                    found[other] = None
        if relation == "sibling":
            for parent in self.related("parent", person):
                found.update(dict.fromkeys(self.related("child", parent)))
            found.pop(person, None)
        return list(found)

    def members(self, key: IndexKey) -> list[str]:
        """Return the people with an attribute, or with a relation to a person."""
        return self.having(key) if key.kind in ATTRIBUTES else self.related(key.kind, key.value)

    def having(self, key: IndexKey) -> list[str]:
        self._readings.read(key)
        return list(self._holders.get(key, {}))

    def solve(self, people: People) -> list[str]:
        """Return the people that an expression denotes, as far as known."""
        match people:
            case NamedPerson(name):
                return [name]
            case Having(attribute, value):
                return self.having(IndexKey(attribute, value))
            case Related(relation, of):
                return list(dict.fromkeys(other for one in self.solve(of) for other in self.related(relation, one)))
            case Both(one, other):
                second = set(self.solve(other))
                return [person for person in self.solve(one) if person in second]
            case Either(one, other):
                return list(dict.fromkeys([*self.solve(one), *self.solve(other)]))
            case Oldest(of):
                dated = [(min(born), person) for person in self.solve(of) if (born := self.related("born", person))]
                return [min(dated)[1]] if dated else []
