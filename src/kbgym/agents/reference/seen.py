"""Everything that earlier passes were shown: documents, the facts they state, and their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kbgym.agents.reference.expected import Expected
from kbgym.agents.reference.kept_lists import Dependencies
from kbgym.agents.reference.language import ATTRIBUTES, facts, keys_of, shared_key, tells
from kbgym.agents.reference.memory import Memory
from kbgym.index_keys import IndexKey, KeyVocabulary, worded_key

BASE = (*ATTRIBUTES, "person")


class SeenDocuments:
    """Documents by id as last shown, with their facts; questions and indexes are excluded."""

    def __init__(self, readings: Dependencies) -> None:
        self._readings = readings
        self.texts: dict[str, str] = {}
        self.memory = Memory(readings)
        self.expected = Expected(readings)
        self.vocabulary = KeyVocabulary()
        self.members: dict[IndexKey, dict[str, None]] = {}  # values and persons with documents seen
        self.values: Counter[str] = Counter()  # number of those of each kind
        self.new: list[IndexKey] = []  # those added since the last call; the caller clears it
        self._states: dict[tuple[str, str], str] = {}

    def see(self, id: str, text: str) -> None:
        if self.texts.get(id) == text:
            return
        self.forget(id)
        self.texts[id] = text
        stated = self.memory.learn(text)
        self.expected.learn(stated)
        for key in keys_of(stated):
            if key not in self.members:
                self.members[key] = {}
                self.values[key.kind] += 1
                self.new.append(key)
            self.members[key][id] = None
            self._readings.changed(key)
            self.vocabulary.know(key.kind, key.value)
        for fact in stated:
            if fact.relation in ATTRIBUTES:
                self._states[fact.relation, fact.subject] = id
                self._readings.changed((fact.relation, fact.subject))

    def forget(self, id: str) -> None:
        stated = facts(self.texts.pop(id, ""))
        self.expected.forget(stated)
        for key in keys_of(stated):
            self.members[key].pop(id, None)
            self._readings.changed(key)
        for fact in stated:
            self._states.pop((fact.relation, fact.subject), None)
            self._readings.changed((fact.relation, fact.subject))

    # -- queries -------------------------------------------------------------------------------------------------------

    def __contains__(self, key: IndexKey) -> bool:
        """Return True if documents of this value or person were seen."""
        self._readings.read(key)
        return key in self.members

    def key_of(self, text: str, targets: Sequence[str] = ()) -> IndexKey | None:
        """Return the key of an index with these words and links, as far as the documents seen show."""
        linked = [self.texts[id] for id in targets if id in self.texts]
        return self.vocabulary.key(text, shared_key(linked)) or worded_key(text)

    def has_stated(self, attribute: str, person: str) -> bool:
        self._readings.read((attribute, person))
        return (attribute, person) in self._states

    def people(self, key: IndexKey) -> list[str]:
        """Return the people with an attribute or in a relation."""
        return self.memory.members(key.base)

    def under(self, key: IndexKey) -> list[str]:
        """Return the documents that belong under a key."""
        if key.then:
            stated = (person for person in self.people(key) if self.has_stated(key.then, person))
            return [self._states[key.then, person] for person in stated]
        own = key if key.kind in BASE else IndexKey("person", key.value)
        self._readings.read(own)
        if key.kind in BASE:
            return list(self.members.get(key, ()))
        return [id for id in self.members.get(own, ()) if tells(self.texts[id], key.kind, key.value)]
