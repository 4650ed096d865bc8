"""Everything earlier passes were shown: documents, what they state, the keys they belong under."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbgym.agents.reference.expected import Expected
from kbgym.agents.reference.language import ATTRIBUTES, facts
from kbgym.agents.reference.members import keys_of, shared_key, tells
from kbgym.agents.reference.memory import Memory
from kbgym.naming import IndexKey, KeyVocabulary, worded_key

BASE = (*ATTRIBUTES, "person")


class SeenDocuments:
    """Documents by id as they were last shown, and what follows from them; nothing of questions and indexes."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.memory = Memory()
        self.expected = Expected()
        self.vocabulary = KeyVocabulary()
        self._members: dict[IndexKey, dict[str, None]] = {}
        self._states: dict[tuple[str, str], str] = {}

    def see(self, id: str, text: str) -> None:
        if self.texts.get(id) == text:
            return
        self.forget(id)
        self.texts[id] = text
        stated = self.memory.learn(text)
        self.expected.learn(stated)
        for key in keys_of(stated):
            self._members.setdefault(key, {})[id] = None
            self.vocabulary.know(key.kind, key.value)
        for fact in stated:
            if fact.relation in ATTRIBUTES:
                self._states[fact.relation, fact.subject] = id

    def forget(self, id: str) -> None:
        stated = facts(self.texts.pop(id, ""))
        self.expected.forget(stated)
        for key in keys_of(stated):
            self._members[key].pop(id, None)
        for fact in stated:
            self._states.pop((fact.relation, fact.subject), None)

    # -- looking ------------------------------------------------------------------------------------------------------

    def all_keys(self) -> Iterator[IndexKey]:
        """Every value and person documents were seen of."""
        return iter(self._members)

    def key_of(self, text: str, targets: Sequence[str] = ()) -> IndexKey | None:
        """The key of an index with these words and links, as far as one can tell from what was seen."""
        linked = [self.texts[id] for id in targets if id in self.texts]
        return self.vocabulary.key(text, shared_key(linked)) or worded_key(text)

    def has_stated(self, attribute: str, person: str) -> bool:
        return (attribute, person) in self._states

    def people(self, key: IndexKey) -> list[str]:
        """Everybody with an attribute, or in a relation to somebody."""
        return self.memory.members(key.base)

    def under(self, key: IndexKey) -> list[str]:
        """The documents that belong under a key."""
        if key.then:
            states = (self._states.get((key.then, person)) for person in self.people(key))
            return [id for id in states if id is not None]
        if key.kind in BASE:
            return list(self._members.get(key, ()))
        own = self._members.get(IndexKey("person", key.value), ())
        return [id for id in own if tells(self.texts[id], key.kind, key.value)]
