"""The reference curator: after the gold, it makes sure every key the question named has a complete index.

For each key it searches with the words an index would use, checks of every result whether it truly belongs, and only
then writes: an index that points and never recites, one key at a time. An index it finds is completed; one with nothing
under it is deleted; where all is complete nothing changes. An index is a promise, so a key whose members cannot all be
found within the budget is left for another question.
"""

from __future__ import annotations

from collections.abc import Generator

from kbgym.actions import Action, Add, Delete, Done, LinkMany, Read, Search, Unlink
from kbgym.agents.base import Plan, PlannedPolicy, documents
from kbgym.agents.reference.kinship import path
from kbgym.agents.reference.language import ATTRIBUTES, Key, facts, index_text, is_index
from kbgym.agents.reference.questions import CountEach, named_keys, parse_question
from kbgym.agents.reference.wording import query_for
from kbgym.policy import Backward, View
from kbgym.tools import MOST_TARGETS

# Reading the old index, adding the new one, linking, saying done.
RESERVE = 4

Working = Generator[Action, str, None]
Shown = tuple[str, str]


class ReferenceCurator(PlannedPolicy):
    def __init__(self) -> None:
        super().__init__(self._plan_pass, lambda view: Done())
        self._remaining = 0

    async def act(self, view: View) -> Action:
        self._remaining = view.remaining
        return await super().act(view)

    def _plan_pass(self, view: View) -> Plan:
        for key in self._keys(view):
            if self._remaining <= RESERVE:
                break
            yield from self._complete(key)
        return Done()

    def _keys(self, view: View) -> list[Key]:
        """The keys a question named, and the derived relation it counted, each once."""
        assert isinstance(view.task, Backward)
        query = parse_question(view.task.question)
        if query is None:
            return []
        keys = list(named_keys(query))
        if isinstance(query, CountEach) and path(query.relation) and keys and keys[0].kind == "person":
            keys = [Key(query.relation, keys[0].value), *keys]
        return list(dict.fromkeys(keys))

    # -- one key ------------------------------------------------------------------------------------------------------

    def _complete(self, key: Key) -> Working:
        """Find every member, then build the index or bring it up to date."""
        if key.kind not in (*ATTRIBUTES, "person"):
            return
        index: str | None = None
        members: dict[str, None] = {}
        page = 1
        while True:
            if self._remaining <= RESERVE:
                return
            found = documents((yield Search(query_for(key), page)))
            index = index or next((id for id, text in found if is_index(text, key)), None)
            members.update((id, None) for id, text in found if belongs(text, key))
            if any(facts(text) for _, text in found) and not any(concerns(text, key) for _, text in found):
                break
            if not found:
                break
            page += 1
        if index is None and members:
            added = documents((yield Add(index_text(key))))
            index = added[0][0] if added else None
            if index is not None:
                yield from self._link(index, list(members))
        elif index is not None:
            yield from self._mend(index, members, key)

    def _mend(self, index: str, members: dict[str, None], key: Key) -> Working:
        """Link what is missing, unlink what does not belong, delete an index nothing is left under."""
        linked = dict(documents((yield Read(index)))[1:])
        wrong = [id for id, text in linked.items() if facts(text) and not belongs(text, key)]
        missing = [id for id in members if id not in linked]
        if not members and len(wrong) == len(linked):
            yield Delete(index)
            return
        for id in wrong:
            if self._remaining > RESERVE:
                yield Unlink(index, id)
        if missing:
            yield from self._link(index, missing)

    def _link(self, index: str, members: list[str]) -> Working:
        for start in range(0, len(members), MOST_TARGETS):
            if self._remaining > 1:
                yield LinkMany(index, tuple(members[start : start + MOST_TARGETS]))


def belongs(text: str, key: Key) -> bool:
    """Whether a document is a member of a key: it gives somebody that attribute, or it is about that person."""
    stated = facts(text)
    if key.kind == "person":
        return any(fact.about == key.value for fact in stated)
    return any(fact.relation == key.kind and fact.value == key.value for fact in stated)


def concerns(text: str, key: Key) -> bool:
    """Whether a result says that more may follow: it is a member, or at least names the person."""
    if key.kind != "person":
        return belongs(text, key)
    return any(key.value in (fact.about, fact.subject, fact.value) for fact in facts(text))
