"""The agenda: what is worth indexing next, worked out from what earlier passes asked and saw, and from nothing else.

It is fed every question and every observation in the order of the trace, live or replayed, so it needs no state of its
own on disk. Keys questions named and nobody finished come first; then siblings: values seen in documents, of the kinds
questions ask for, the kind with the most questions a value first. One key of a job serves more questions than one
person, so jobs, hobbies and cities are completed before people. When nothing is left to open, indexes nobody asked
about are returned to and their search is read a little further.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Literal

from kbgym.actions import Action, Add, Delete, LinkMany, Search
from kbgym.agents.base import documents
from kbgym.agents.reference.language import Key, facts, index_key
from kbgym.agents.reference.members import keys_of
from kbgym.agents.reference.questions import named_keys, parse_question
from kbgym.agents.reference.wording import query_for
from kbgym.policy import Errand

LENGTH = 12


class Agenda:
    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._named: dict[Key, None] = {}
        self._members: dict[Key, dict[str, None]] = {}
        self._pages: dict[str, int] = {}
        self._index: dict[str, Key] = {}
        self._finished: dict[Key, int] = {}
        self._seen: dict[str, str] = {}

    # -- feeding ------------------------------------------------------------------------------------------------------

    def note_question(self, text: str) -> None:
        query = parse_question(text)
        for key in dict.fromkeys(named_keys(query)) if query is not None else ():
            self._asked[key.kind] += 1
            self._named[key] = None

    def note_turn(self, action: Action, observation: str) -> None:
        """Take in one action and what came back."""
        if isinstance(action, Delete):
            self._forget(action.id)
            return
        shown = documents(observation)
        for id, text in shown:
            self._see(id, text)
        if isinstance(action, Search) and shown and action.page == self._pages.get(action.query, 0) + 1:
            self._pages[action.query] = action.page
        if isinstance(action, Add) and shown and (key := index_key(shown[0][1])) is not None:
            self._index[shown[0][0]] = key
        if isinstance(action, LinkMany) and action.source in self._index:
            key = self._index[action.source]
            self._finished.setdefault(key, self._pages.get(query_for(key), 0))

    def _see(self, id: str, text: str) -> None:
        if self._seen.get(id) == text:
            return
        self._forget(id)
        self._seen[id] = text
        for key in keys_of(facts(text)):
            self._members.setdefault(key, {})[id] = None

    def _forget(self, id: str) -> None:
        for key in keys_of(facts(self._seen.pop(id, ""))):
            self._members[key].pop(id, None)
        if id in self._index:
            self._finished.pop(self._index.pop(id), None)

    # -- asking -------------------------------------------------------------------------------------------------------

    def errands(self, question: str) -> tuple[Errand, ...]:
        """What to work on after this question, best first. A key that is finished is no errand."""
        query = parse_question(question)
        named = [key for key in dict.fromkeys(named_keys(query)) if key not in self._finished] if query else []
        left = [key for key in self._named if key not in self._finished and key not in named]
        chosen = [self._errand(key, "named") for key in named]
        chosen += [self._errand(key, "unfinished") for key in left[:LENGTH]]
        chosen += [self._errand(key, "sibling") for key in self._siblings() if key not in self._named]
        if len(chosen) < LENGTH:
            chosen += [self._errand(key, "unfinished") for key in self._unread()]
        return tuple(chosen[:LENGTH])

    def _errand(self, key: Key, reason: Literal["named", "unfinished", "sibling"]) -> Errand:
        known = tuple(self._members.get(key, ()))
        index = next((id for id, its_key in self._index.items() if its_key == key), None)
        return Errand(key.kind, key.value, reason, known, self._pages.get(query_for(key), 0) + 1, index)

    def _siblings(self) -> list[Key]:
        """Unfinished keys of the kinds that were asked for; the most questions a value first, the fullest key next."""
        open_keys = [key for key in self._members if key.kind in self._asked and key not in self._finished]
        values = Counter(key.kind for key in self._members)
        open_keys.sort(
            key=lambda key: (-self._asked[key.kind] / values[key.kind], key.kind, -len(self._members[key]), key.value)
        )
        return open_keys[:LENGTH]

    def _unread(self) -> list[Key]:
        """Indexes of siblings whose search was left at the first page without a member, and not returned to since."""
        quick = (key for key in self._finished if key not in self._named)
        unread = (key for key in quick if self._pages.get(query_for(key), 0) == self._finished[key])
        return list(islice(unread, LENGTH))
