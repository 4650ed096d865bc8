"""Check of the documents found under a question's keys against the expected answer.

A wrong answer and the expected one show what to repair: the answer's own document is searched for, and belongs under
the key. A key whose documents contradict the answer is incomplete or misunderstood, and gets no index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kbgym.agents.reference.expected import lookup_of
from kbgym.agents.reference.language import Fact, facts, tells
from kbgym.agents.reference.memory import Memory
from kbgym.agents.reference.questions import Both, CountEach, Having, NamedPerson, Names, People, Query, Related, Value
from kbgym.agents.reference.searching import query_about
from kbgym.gym.actions import Search
from kbgym.gym.observations import documents
from kbgym.gym.policy import Steps
from kbgym.index_keys import IndexKey
from kbgym.index_keys.vocabulary import PATHS


class AnswerCheck:
    """Checks the documents found for a key against the expected answer."""

    def __init__(self, query: Query, golds: Sequence[str], may_search: Callable[[], bool]) -> None:
        self._query, self._gold, self._may_search = query, golds[0] if golds else "", may_search

    def confirms(self, key: IndexKey, shown: dict[str, str]) -> Steps[bool]:
        """Return False if the documents found, after one more search for what is missing, contradict the answer."""
        for about, query in (yield from self._wanted(key)):
            if not any(about(fact) for text in shown.values() for fact in facts(text)):
                if not self._may_search():
                    return True
                shown.update(documents((yield Search(query))))
                if not any(about(fact) for text in shown.values() for fact in facts(text)):
                    return False
        match self._query:
            case CountEach(relation, NamedPerson(name)) if key == IndexKey("person", name) and relation not in PATHS:
                return str(sum(tells(text, relation, name) for text in shown.values())) == self._gold
        return True

    def _wanted(self, key: IndexKey) -> Steps[list[tuple[Callable[[Fact], bool], str]]]:
        """Return the statements that must be under a key if the answer is right, each with a search for it."""
        match self._query:
            case Value(attribute, NamedPerson(name)) if key == IndexKey("person", name):
                told = (attribute, name, self._gold)
                return [(lambda fact: (fact.relation, fact.subject, fact.value) == told, query_about(attribute, name))]
            case Names(of):
                people = re.split(r", | and ", self._gold)
                if isinstance(of, Related) and not isinstance(of.of, NamedPerson) and self._may_search():
                    memory, relation = Memory(), of.relation  # in reverse, from the answer
                    for _, text in documents((yield Search(query_about(relation, people[0])))):
                        memory.learn(text)
                    of, people = of.of, memory.related(relation, people[0]) or people
                return [one for part in _parts(of) for person in people for one in _told(part, person, key)]
        return []


def _parts(of: People) -> list[People]:
    return [*_parts(of.one), *_parts(of.other)] if isinstance(of, Both) else [of]


def _told(part: People, person: str, key: IndexKey) -> list[tuple[Callable[[Fact], bool], str]]:
    """Return the statement required of a person who meets one condition of a question, if the key gathers it."""
    match part:
        case Having(attribute, value) if key == IndexKey(attribute, value):
            told = (attribute, person, value)
            return [(lambda fact: (fact.relation, fact.subject, fact.value) == told, query_about(attribute, person))]
        case Related(relation, NamedPerson(name)) if key == IndexKey("person", name) and relation not in PATHS:
            search = lookup_of(name, (relation, person)).query
            return [(lambda fact: {fact.subject, fact.value} == {name, person}, search)]
    return []
