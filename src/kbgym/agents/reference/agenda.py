"""The agenda: what is worth indexing next, worked out from what earlier passes asked and saw, and from nothing else.

It is fed every question and every observation in the order of the trace, live or replayed, so it needs no state of its
own on disk. First come indexes that miss a document seen since, and keys questions named that nobody finished. Then
siblings: values seen in documents, of the kinds questions ask for, in the order of what an action on them is worth:
how often that kind was asked, over how many values it has, over what an index of it costs. Narrower keys (the cities
of everybody with a job; the friends of a person) cost no search at all once everything under them has been seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from kbgym.actions import Action, Add, Delete, LinkMany, Search
from kbgym.agents.reference.language import ATTRIBUTES, IndexKey, facts, index_key, index_text
from kbgym.agents.reference.levels import holds, stated_value
from kbgym.agents.reference.members import keys_of, tells
from kbgym.agents.reference.memory import Memory
from kbgym.agents.reference.questions import further_keys, named_keys, parse_question
from kbgym.agents.reference.wording import query_for
from kbgym.observations import documents
from kbgym.policy import Errand

LENGTH = 16
# Actions an index costs: about five pages, adding and linking; only the last two where everything was seen already.
# One relation of a person saves a reader characters but no action, so it waits for whatever saves actions.
_COST, _COST_SEEN, _COST_RELATION = 7, 2, 20

_BASE = (*ATTRIBUTES, "person")

Reason = Literal["named", "unfinished", "sibling"]


class ReferenceAgenda:
    def __init__(self) -> None:
        self._asked: Counter[tuple[str, str]] = Counter()
        self._named: dict[IndexKey, None] = {}
        self._named_further: dict[IndexKey, None] = {}
        self._memory = Memory()
        self._seen: dict[str, str] = {}
        self._members: dict[IndexKey, dict[str, None]] = {}
        self._states: dict[tuple[str, str], str] = {}
        self._pages: Counter[str] = Counter()
        self._index: dict[IndexKey, str] = {}
        self._linked: dict[str, set[str]] = {}
        self._parts: dict[IndexKey, dict[IndexKey, None]] = {}
        self._folded: set[IndexKey] = set()  # keys whose index the guard took for another one: not worth trying again

    # -- feeding ------------------------------------------------------------------------------------------------------

    def note_question(self, text: str) -> None:
        query = parse_question(text)
        for key in dict.fromkeys(named_keys(query)) if query is not None else ():
            self._asked[key.kind, ""] += 1
            self._named[key] = None
        for key in dict.fromkeys(further_keys(query)) if query is not None else ():
            self._asked[key.kind, key.then] += 1
            self._named_further[key] = None

    def note_turn(self, action: Action, observation: str) -> None:
        """Take in one action and what came back."""
        if isinstance(action, Delete):
            self._forget(action.id)
            return
        shown = documents(observation)
        for id, text in shown:
            self._see(id, text)
        if isinstance(action, Search) and shown and action.page == self._pages[action.query] + 1:
            self._pages[action.query] = action.page
        if isinstance(action, Add) and shown and (key := index_key(action.text)) is not None:
            if index_key(shown[0][1]) == key:
                self._index[key] = shown[0][0]
                self._linked.setdefault(shown[0][0], set())
                if key.part is not None:
                    self._parts.setdefault(key.whole, {})[key] = None
            else:
                self._folded.add(key)
        if isinstance(action, LinkMany) and action.source in self._linked:
            self._linked[action.source].update(action.targets)

    def _see(self, id: str, text: str) -> None:
        if self._seen.get(id) == text:
            return
        self._forget(id)
        self._seen[id] = text
        for key in keys_of(facts(text)):
            self._members.setdefault(key, {})[id] = None
        for fact in self._memory.learn(text):
            if fact.relation in ATTRIBUTES:
                self._states[fact.relation, fact.subject] = id

    def _forget(self, id: str) -> None:
        stated = facts(self._seen.pop(id, ""))
        for key in keys_of(stated):
            self._members[key].pop(id, None)
        for fact in stated:
            self._states.pop((fact.relation, fact.subject), None)
        if id in self._linked:
            del self._linked[id]
            for key in [key for key, index in self._index.items() if index == id]:
                del self._index[key]
                self._parts.get(key.whole, {}).pop(key, None)

    # -- asking -------------------------------------------------------------------------------------------------------

    def errands(self, question: str) -> tuple[Errand, ...]:
        """What to work on after this question, best first. A key whose index misses nothing seen is no errand."""
        query = parse_question(question)
        named = dict.fromkeys(named_keys(query)) if query is not None else {}
        chosen = [self._errand(key, "named") for key in named if key not in self._index]
        chosen += [self._errand(key, "unfinished") for key in self._incomplete()]
        chosen += [self._errand(key, "unfinished") for key in self._named if key not in named | self._index]
        further = (key for key in self._named_further if key not in self._index and self._is_ready(key))
        chosen += [self._errand(key, "unfinished") for key in further]
        chosen += [self._errand(key, "sibling") for key in islice(self._siblings(), LENGTH)]
        return tuple(chosen[:LENGTH])

    def errand_of(self, text: str) -> Errand | None:
        key = index_key(text)
        return None if key is None else Errand(key.kind, key.value, "unfinished", then=key.then)

    def index_text(self, errand: Errand) -> str:
        return index_text(IndexKey(errand.kind, errand.value, errand.then))

    def _errand(self, key: IndexKey, reason: Reason) -> Errand:
        index = self._index.get(key)
        linked = self._linked[index] if index is not None else set()
        known = tuple((id, self._seen[id]) for id in self._wanted(key) if id not in linked)
        return Errand(key.kind, key.value, reason, known, self._pages[query_for(key)] + 1, index, key.then, key.part)

    def _incomplete(self) -> Iterator[IndexKey]:
        """Indexes that do not link a document which was seen and belongs under them."""
        return (key for key, index in self._index.items() if not self._linked[index].issuperset(self._wanted(key)))

    def _siblings(self) -> Iterator[IndexKey]:
        """Keys of the kinds questions ask for that have no index and were not named, the most useful action first."""
        values = Counter(key.kind for key in self._members)
        worth: dict[tuple[str, str], float] = {}
        for (kind, then), asked in self._asked.items():
            cost = _COST_SEEN if then else _COST if kind in _BASE else _COST_RELATION
            worth[kind, then] = asked / max(1, values[kind] or values["person"]) / cost
        for kind, then in sorted(worth, key=lambda pair: (-worth[pair], pair)):
            open_keys = [key for key in self._of_kind(kind, then) if key not in self._index and key not in self._named]
            yield from sorted(open_keys, key=lambda key: (-len(self._under(key)), key.value))

    def _of_kind(self, kind: str, then: str) -> Iterator[IndexKey]:
        if not then and kind in _BASE:
            yield from (key for key in self._members if key.kind == kind)
            return
        starts_from = kind if kind in ATTRIBUTES else "person"
        for base in self._members:
            if base.kind == starts_from:
                key = IndexKey(kind, base.value, then)
                if key not in self._index and self._is_ready(key):
                    yield key

    def _people(self, key: IndexKey) -> list[str]:
        if key.kind in ATTRIBUTES:
            return self._memory.having(key.base)
        return self._memory.related(key.kind, key.value)

    def _is_ready(self, key: IndexKey) -> bool:
        """Whether everything under a narrower key has been seen: its people are known, and what is asked of each."""
        base = key.base if key.kind in ATTRIBUTES else IndexKey("person", key.value)
        if base not in self._index or key in self._folded:
            return False
        if not key.then:
            return len(self._under(key)) > 1
        people = self._people(key)
        return len(people) > 1 and all((key.then, person) in self._states for person in people)

    def _wanted(self, key: IndexKey) -> list[str]:
        """What an index of the key should link: the documents under it, or its parts and what lies in none of them."""
        if not (parts := self._parts.get(key)):
            return self._under(key)
        values = ((id, stated_value(self._seen[id], key.then)) for id in self._under(key))
        loose = [id for id, value in values if not any(holds(part, value) for part in parts)]
        return [*(self._index[part] for part in parts), *loose]

    def _under(self, key: IndexKey) -> list[str]:
        """The documents seen so far that belong under a key."""
        if key.part is not None:
            return [id for id in self._under(key.whole) if holds(key, stated_value(self._seen[id], key.then))]
        if key.then:
            states = (self._states.get((key.then, person)) for person in self._people(key))
            return [id for id in states if id is not None]
        if key.kind in _BASE:
            return list(self._members.get(key, ()))
        own = self._members.get(IndexKey("person", key.value), ())
        return [id for id in own if tells(self._seen[id], key.kind, key.value)]
