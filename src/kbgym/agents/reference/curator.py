"""The reference curator: given the expected answer, it completes the index of every key in the question.

For each key it searches with the words of an index, checks that every result is a member, and only then writes an
index, which links to members without reciting them. Existing indexes are completed, empty ones deleted, and complete
ones left unchanged. An index must be complete, so a key whose members cannot all be found within the budget is left to
another question. Without an agenda the members are checked against the expected answer: missing ones are searched for,
and a key that does not lead to the answer is not written.
"""

from __future__ import annotations

from collections.abc import Callable

from kbgym.agents.reference.answer_check import AnswerCheck
from kbgym.agents.reference.derived import derived_keys
from kbgym.agents.reference.expected import CHILDREN, gaps
from kbgym.agents.reference.language import INDEXED, belongs, concerns, facts, index_text, is_index
from kbgym.agents.reference.questions import named_keys, parse_question
from kbgym.agents.reference.searching import goes_on, is_found, listing_query, members_on, query_for, searches_for
from kbgym.gym.actions import Action, Add, Delete, Done, Read, Search, Unlink
from kbgym.gym.observations import documents
from kbgym.gym.policy import Backward, IndexTask, Lookup, PlannedCurator, Steps, View
from kbgym.index_keys import IndexKey

# Actions reserved while searching: reading the old index, adding the new one, linking, finishing. With an agenda
# only the last is reserved: a later pass knows what was seen and not yet written.
RESERVE, RESERVE_WITH_AGENDA = 4, 1

# Number of pages without a member that ends an enumeration. Indexes must be complete, so it is two pages: recall
# rises from 99.4% to 99.9% for one action per key. An agenda has better ways to ask again, see `searching`.
PATIENCE = 2

Working = Steps[None]
Shown = tuple[str, str]


class ReferenceCurator(PlannedCurator):
    """Completes the keys of the agenda if the task has one, else those of the question."""

    def __init__(self) -> None:
        super().__init__()
        self._has_agenda = False
        self._check: AnswerCheck | None = None

    def _plan_pass(self, view: View) -> Steps[Action]:
        assert isinstance(view.task, Backward)
        for key, lists in derived_keys(view.task):
            yield from self._write(key, list(lists))
        query = parse_question(view.task.question)
        if query is not None and not view.task.agenda:
            self._check = AnswerCheck(query, view.task.golds, self._may_search)
        for index_task in self._index_tasks(view):
            if not self._may_search():
                break
            if index_task.kind == "born" and index_task.index is None and not index_task.then:
                if members := (yield from find_born(index_task, view.task, self._may_search)):
                    yield from self._write(IndexKey("born", index_task.value), members)
            else:
                yield from self._complete(index_task)
        return Done()

    def _index_tasks(self, view: View) -> tuple[IndexTask, ...]:
        assert isinstance(view.task, Backward)
        if view.task.agenda:
            self._has_agenda = True
            return view.task.agenda
        keys = dict.fromkeys(named_keys(parse_question(view.task.question)))
        return tuple(IndexTask(key.kind, key.value, "named") for key in keys)

    def _may_search(self) -> bool:
        return self.remaining > (RESERVE_WITH_AGENDA if self._has_agenda else RESERVE)

    # -- one key ------------------------------------------------------------------------------------------------------

    def _complete(self, index_task: IndexTask) -> Working:
        """Build or update the index of a key."""
        key = IndexKey(index_task.kind, index_task.value, index_task.then)
        shown = dict(index_task.known)
        if key.kind in (*INDEXED, "person") and not key.then:
            if not (yield from self._gather(key, index_task, shown)):
                return
            agrees = self._check is None or (yield from self._check.confirms(key, shown))
            known = dict(index_task.known)  # keys of the agenda belong here, including the index of a person's child
            members = [id for id, text in shown.items() if id in known or belongs(text, key)]
            if members and not agrees:
                return
        else:
            members = list(shown)
        index = index_task.index or next((id for id, text in shown.items() if is_index(text, key)), None)
        if index is None:
            if members:
                yield from self._write(key, members)
        elif index_task.index is None or index_task.reason == "changed":
            yield from self._mend(index, members, key)
        else:
            yield from self._link(index, [id for id in members if id not in index_task.linked])

    def _gather(self, key: IndexKey, index_task: IndexTask, shown: dict[str, str]) -> Steps[bool]:
        """Find every member of a key; return False if the budget ran out."""
        searched: set[str] = set()
        # An index task without precomputed work says nothing about searches; one of the agenda lists them all.
        for lookup in index_task.lookups if index_task.text else self._searches(key):
            if any(is_found(lookup, text) for text in shown.values()):
                continue
            searched.add(lookup.query)
            if not (yield from self._page_through(lookup, key, shown)):
                return False
        # Links of an index are not shown here, so only the agenda knows which are missing.
        for sentence in gaps(shown.values(), key.value) if key.kind == "person" and index_task.index is None else ():
            if self._may_search() and sentence not in searched:
                shown.update(documents((yield Search(sentence))))
        return True

    def _searches(self, key: IndexKey) -> list[Lookup]:
        if self._has_agenda:
            return searches_for(key, lists=False)
        children = [Lookup(CHILDREN.format(key.value), kinds=("child",), most=1)] if key.kind == "person" else []
        return [Lookup(query_for(key)), *children]

    def _page_through(self, lookup: Lookup, key: IndexKey, shown: dict[str, str]) -> Steps[bool]:
        number, empty = lookup.page, 0
        while self._may_search():
            found = documents((yield Search(lookup.query, number)))
            page, new = [text for _, text in found], [text for id, text in found if id not in shown]
            shown.update(found)
            if any(map(facts, page)):
                empty = 0 if any(concerns(text, key) for text in page) else empty + 1
            if self._has_agenda:
                over = not goes_on(page, number, members_on(new, lookup, key), lookup, key)
            else:
                over = not found or empty == PATIENCE or number == lookup.most
            if over:
                return True
            number += 1
        return False

    def _write(self, key: IndexKey, members: list[str]) -> Steps[str | None]:
        """Add an index and link it; return its id, or None if the budget does not allow both."""
        if self.remaining <= 2:
            return None
        shown = documents((yield Add(index_text(key))))
        if not shown or not is_index(shown[0][1], key):  # the guard may have merged it into another index
            return None
        yield from self._link(shown[0][0], members)
        return shown[0][0]

    def _mend(self, index: str, members: list[str], key: IndexKey) -> Working:
        """Link missing members, unlink non-members, and delete an index without members."""
        linked = dict(documents((yield Read(index)))[1:])
        wrong = [id for id, text in linked.items() if facts(text) and not belongs(text, key)]
        missing = [id for id in members if id not in linked]
        if not members and len(wrong) == len(linked):
            yield Delete(index)
            return
        for id in wrong:
            if self.remaining > 2:
                yield Unlink(index, id)
        if missing:
            yield from self._link(index, missing)


def find_born(index_task: IndexTask, task: Backward, may_go_on: Callable[[], bool]) -> Steps[list[str]]:
    """Find the documents that give this date of birth; none if there is an index already, or none was found in time.

    Embeddings do not sort dates, so the curator first uses what the agenda or the forward pass already saw, then the
    births of everyone in the answer, and only then pages through a search for the date.
    """
    key = IndexKey(index_task.kind, index_task.value)
    seen = [shown for turn in task.forward for shown in documents(turn.observation)]
    if any(is_index(text, key) for _, text in seen):
        return []
    members = [id for id, text in (*index_task.known, *seen) if belongs(text, key)]
    names = [name for gold in task.golds for name in gold.split(", ") if name[:1].isupper()]
    asked = [Search(listing_query(key.kind, name)) for name in names] if index_task.reason == "named" else []
    page = index_task.lookups[0].page if index_task.lookups else 1
    while not members and may_go_on():
        if not asked:
            asked, page = [Search(query_for(key), page)], page + 1
        found = documents((yield asked.pop(0)))
        members = [id for id, text in found if belongs(text, key)]
        if not found:
            break
    return list(dict.fromkeys(members))
