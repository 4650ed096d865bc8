"""Indexes of derived relations ("Aunts of X"), for stores whose sentences list values: they use what a right answer
read.

A pass that answered correctly has read every step of the walk, so the documents of its last step ("The sisters of Y are
A, B." for an aunt) are complete, and no search is needed. Only those documents are linked, because earlier steps are
not about the people that the relation leads to.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbgym.agents.reference.language import Fact, facts, is_index
from kbgym.agents.reference.memory import Memory
from kbgym.agents.reference.questions import CountEach, Having, NamedPerson, People, Query, Related, parse_question
from kbgym.gym.observations import documents
from kbgym.gym.policy import Backward
from kbgym.index_keys import IndexKey
from kbgym.index_keys.vocabulary import HALVES, PATHS

Shown = tuple[str, str]


def derived_keys(task: Backward) -> list[tuple[IndexKey, tuple[str, ...]]]:
    """Return the derived relations at the start of the question, with the documents that belong under each."""
    query = parse_question(task.question)
    if query is None or task.verdict != "right" or (step := first_step(query)) is None:
        return []
    relation, start = step
    seen = dict(shown for turn in task.forward for shown in documents(turn.observation))
    memory = Memory()
    for text in seen.values():
        memory.learn(text)
    if relation not in PATHS or not memory.lists:
        return []
    found: list[tuple[IndexKey, tuple[str, ...]]] = []
    for person in memory.solve(start):
        key = IndexKey(relation, person)
        if not any(is_index(text, key) for text in seen.values()) and (members := _members(memory, seen, key)):
            found.append((key, members))
    return found


def first_step(query: Query) -> tuple[str, People] | None:
    """Return the first relation of a question and its people: "How many sons does the aunt of X have?" is X's aunts."""
    relation = query.relation if isinstance(query, CountEach) else None
    of: People = query.of
    while isinstance(of, Related):
        relation, of = of.relation, of.of
    return (relation, of) if relation is not None and isinstance(of, NamedPerson | Having) else None


def far_side(fact: Fact, relation: str) -> str:
    """Return the person a derived relation leads to, out of the two that its last step names."""
    last = PATHS.get(relation, (relation,))[-1]
    forwards = fact.relation == last or fact.relation in HALVES.get(last, ()) or last in HALVES.get(fact.relation, ())
    return fact.value if forwards else fact.subject


def _members(memory: Memory, seen: dict[str, str], key: IndexKey) -> tuple[str, ...]:
    """Return the lists of the walk's last step, or none if they do not name everyone the walk leads to."""
    steps: Sequence[str] = PATHS.get(key.kind, ())
    people = [key.value]
    for step in steps[:-1]:
        people = list(dict.fromkeys(other for one in people for other in memory.related(step, one)))
    last = (steps[-1], *HALVES.get(steps[-1], ()))
    wanted = set(memory.related(key.kind, key.value))
    named: set[str] = set()
    lists: list[str] = []
    for id, text in seen.items():
        told = [fact for fact in facts(text) if fact.relation in last and fact.subject in people]
        if told and {fact.value for fact in told} <= wanted:
            lists.append(id)
            named.update(fact.value for fact in told)
    return tuple(lists) if named == wanted else ()
