"""The reference curator: after the gold, it makes sure every key the question named has a complete index.

For each key it searches with the words an index would use, checks of every result whether it truly belongs, and only
then writes: an index that points and never recites, one key at a time. An index it finds is completed; one with nothing
under it is deleted; where all is complete nothing changes. An index is a promise, so a key whose members cannot all be
found within the budget is left for another question.
"""

from __future__ import annotations

from collections.abc import Generator

from kbgym.actions import Action, Add, Delete, Done, LinkMany, Read, Search, Unlink
from kbgym.agents.base import Plan, PlannedPolicy
from kbgym.agents.reference.dates import find_born
from kbgym.agents.reference.derived import derived_keys
from kbgym.agents.reference.language import IndexKey, facts, index_text, is_index
from kbgym.agents.reference.levels import parts_for, split
from kbgym.agents.reference.members import INDEXED, belongs, concerns, gaps
from kbgym.agents.reference.questions import named_keys, parse_question
from kbgym.agents.reference.wording import query_for
from kbgym.observations import documents
from kbgym.policy import Backward, Errand, View
from kbgym.tools import MOST_TARGETS

# What is kept back while searching: reading the old index, adding the new one, linking, saying done. With an agenda
# nothing but the last is: what was seen and not yet written down, a later pass knows.
RESERVE, RESERVE_WITH_AGENDA = 4, 1

# How many pages without a member end an enumeration. An index is a promise, so one such page is not the end: recall
# rises from 99.4% to 99.9% for one action a key. With an agenda it is: what one pass misses a later one sees and mends,
# and the action is better spent on the next key (coverage after 100 passes 68% against 59%).
PATIENCE, PATIENCE_WITH_AGENDA = 2, 1

Working = Generator[Action, str, None]
Shown = tuple[str, str]


class ReferenceCurator(PlannedPolicy):
    """Works off the agenda where the task has one, else the keys the question named.

    With `levels`, a narrower key with more documents than that is given an index of indexes.
    """

    def __init__(self, levels: int = 0) -> None:
        super().__init__(self._plan_pass, lambda view: Done())
        self._levels = levels
        self._remaining = 0
        self._has_agenda = False

    async def act(self, view: View) -> Action:
        self._remaining = view.remaining
        return await super().act(view)

    def _plan_pass(self, view: View) -> Plan:
        assert isinstance(view.task, Backward)
        for key, lists in derived_keys(view.task):
            yield from self._write(key, list(lists))
        for errand in self._errands(view):
            if not self._may_search():
                break
            if errand.kind == "born" and errand.index is None and not errand.then:
                if members := (yield from find_born(errand, view.task, self._may_search)):
                    yield from self._write(IndexKey("born", errand.value), members)
            else:
                yield from self._complete(errand)
        return Done()

    def _errands(self, view: View) -> tuple[Errand, ...]:
        assert isinstance(view.task, Backward)
        if view.task.agenda:
            self._has_agenda = True
            return view.task.agenda
        query = parse_question(view.task.question)
        keys = dict.fromkeys(named_keys(query)) if query is not None else {}
        return tuple(Errand(key.kind, key.value, "named") for key in keys)

    def _may_search(self) -> bool:
        return self._remaining > (RESERVE_WITH_AGENDA if self._has_agenda else RESERVE)

    # -- one key ------------------------------------------------------------------------------------------------------

    def _complete(self, errand: Errand) -> Working:
        """Build the index of a key, or bring it up to date."""
        key = IndexKey(errand.kind, errand.value, errand.then, errand.part)
        known = [id for id, _ in errand.known]
        if errand.index is not None:
            yield from self._link(errand.index, known)
        elif key.kind in (*INDEXED, "person") and not key.then:
            yield from self._enumerate(key, errand)
        elif key.then and (len(known) > self._levels > 0 or parts_for(errand.known, key, None)):
            yield from self._write_levels(key, errand)
        elif known:
            yield from self._write(key, known)

    def _write_levels(self, key: IndexKey, errand: Errand) -> Working:
        """The parts first, the index of them last: a pass that ends in between leaves nothing that is not whole.

        The parts an earlier pass has written are among what is known, in place of their documents.
        """
        there = parts_for(errand.known, key, None)
        rest = [(id, text) for id, text in errand.known if id not in there]
        parts = split(key, rest, self._levels or MOST_TARGETS)
        if not there and len(parts) == 1:
            yield from self._write(key, parts[0][1])
            return
        for part, members in parts:
            written = yield from self._write(part, members)
            if written is None:
                return
            there.append(written)
        yield from self._write(key, there)

    def _enumerate(self, key: IndexKey, errand: Errand) -> Working:
        """Find every member of a key, then write or mend its index."""
        index: str | None = None
        shown = dict(errand.known)
        page, empty = errand.page, 0
        while self._may_search():
            found = documents((yield Search(query_for(key), page)))
            index = index or next((id for id, text in found if is_index(text, key)), None)
            if any(facts(text) for _, text in found):
                goes_on = belongs if self._has_agenda else concerns
                empty = 0 if any(goes_on(text, key) for _, text in found) else empty + 1
            shown.update(found)
            if not found or empty == (PATIENCE_WITH_AGENDA if self._has_agenda else PATIENCE):
                break
            page += 1
        else:
            return
        for sentence in gaps(shown.values(), key):
            if self._may_search():
                shown.update(documents((yield Search(sentence))))
        members = [id for id, text in shown.items() if belongs(text, key)]
        if index is not None:
            yield from self._mend(index, dict.fromkeys(members), key)
        elif members:
            yield from self._write(key, members)

    def _write(self, key: IndexKey, members: list[str]) -> Generator[Action, str, str | None]:
        """Add an index and link it, both or neither; gives its id."""
        if self._remaining <= 2:
            return None
        shown = documents((yield Add(index_text(key))))
        if not shown or not is_index(shown[0][1], key):  # the guard may have taken it for another index
            return None
        yield from self._link(shown[0][0], members)
        return shown[0][0]

    def _mend(self, index: str, members: dict[str, None], key: IndexKey) -> Working:
        """Link what is missing, unlink what does not belong, delete an index nothing is left under."""
        linked = dict(documents((yield Read(index)))[1:])
        wrong = [id for id, text in linked.items() if facts(text) and not belongs(text, key)]
        missing = [id for id in members if id not in linked]
        if not members and len(wrong) == len(linked):
            yield Delete(index)
            return
        for id in wrong:
            if self._remaining > 2:
                yield Unlink(index, id)
        if missing:
            yield from self._link(index, missing)

    def _link(self, index: str, members: list[str]) -> Working:
        for start in range(0, len(members), MOST_TARGETS):
            if self._remaining > 1:
                yield LinkMany(index, tuple(members[start : start + MOST_TARGETS]))
