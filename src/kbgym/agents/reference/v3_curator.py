"""The agenda and the curator of benchmark v3.

A key is a value ("People who live in the city of X"), the birthdays of the people with a value, or a person. Members
change, so a key is searched in two steps: pages of its members, then each member's latest report. Only then is its
index linked: an index is right, or it does not exist yet. Links that a later report made wrong are removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from kbgym.agents.reference.language import index_text
from kbgym.agents.reference.reports import Notes
from kbgym.agents.reference.v3 import ABOUT, MEMBERS
from kbgym.chronicle.asking import read
from kbgym.chronicle.questions import answer
from kbgym.chronicle.timeline import ATTRIBUTES
from kbgym.gym.actions import Action, Add, Done, Error, Look, Read, Result, Search, Unlink, shown_by
from kbgym.gym.observations import documents
from kbgym.gym.policy import Backward, IndexTask, Lookup, PlannedCurator, Reason, Steps, View
from kbgym.index_keys import IndexKey

LENGTH = 32  # tasks of a lesson
_PATIENCE = 2  # pages without a member that end a search
_MOST_PAGES = 40


class ReportAgenda(Notes):
    """Keys to index, derived from what was asked and read."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: Counter[str] = Counter()
        self._named: dict[IndexKey, None] = {}
        self._lent: dict[Hashable, set[IndexKey]] = {}

    # -- input ---------------------------------------------------------------------------------------------------------

    def note_question(self, text: str, lesson: Hashable = None) -> None:
        for key in named_keys(text):
            self._asked[key.kind] += 1
            self._named.setdefault(key)

    def note_turn(self, action: Action, result: Result, look: Look) -> None:
        if not isinstance(result, Error):
            self.saw(action, [(id, look(id)[0]) for id in shown_by(result)])
        elif isinstance(action, Search):
            self.saw(action, ())

    def release(self, lesson: Hashable) -> None:
        self._lent.pop(lesson, None)

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def index_tasks(self, question: str, lesson: Hashable = None) -> tuple[IndexTask, ...]:
        taken = {key for other, keys in self._lent.items() if other != lesson for key in keys}
        tasks: dict[IndexKey, IndexTask] = {}
        for key, reason in self._keys(question):
            if key not in tasks and key not in taken:
                task = self.task(key, reason)
                if task.known or task.stale or task.lookups:
                    tasks[key] = task
            if len(tasks) == LENGTH:
                break
        if lesson is not None:
            self._lent[lesson] = set(tasks)
        return tuple(tasks.values())

    def task_for(self, index: str) -> IndexTask | None:
        return next((self.task(key, "changed") for key in self._known_keys() if self.index(key) == index), None)

    def index_text(self, index_task: IndexTask) -> str:
        return index_text(IndexKey(index_task.kind, index_task.value, index_task.then))

    def index(self, key: IndexKey) -> str | None:
        return self.find(index_text(key))

    def task(self, key: IndexKey, reason: Reason) -> IndexTask:
        """Return the work on a key: links if nothing is left to search for, else searches."""
        index = self.index(key)
        linked = self.links.get(index, {}) if index is not None else {}
        belong, lookups = self.belonging(key), tuple(self.lookups(key, reason == "doubted"))
        known = () if lookups else tuple((id, self.texts[id]) for id in belong if id not in linked)
        stale = tuple(id for id in linked if id not in belong)
        return IndexTask(
            key.kind, key.value, reason, known, lookups, index, key.then, index_text(key), tuple(linked), stale
        )

    def belonging(self, key: IndexKey) -> dict[str, None]:
        """Return the documents under a key, as far as known."""
        if key.kind == "person":
            return dict.fromkeys(one.document for one in self.about(key.value))
        holders = self.timeline.holders(key.kind, key.value)
        if key.then:
            births = (self.timeline.current(key.then, person) for person in holders)
            return dict.fromkeys(one.document for one in births if one is not None)
        return dict.fromkeys(one.document for one in holders.values())

    def lookups(self, key: IndexKey, again: bool = False) -> Iterator[Lookup]:
        """Yield the searches of a key that are left; with `again`, second pages on every member too."""
        if key.kind == "person":
            for relation in ABOUT:
                yield from self._about(relation, key.value)
            return
        query = MEMBERS[key.kind].format(key.value)
        if not self.is_over(query, key):
            yield Lookup(query, len(self.pages.get(query, ())) + 1)
            return
        holders = self.timeline.holders(key.kind, key.value)
        for person, report in sorted(holders.items(), key=lambda one: one[1].date):
            if not key.then:
                yield from self._about(key.kind, person, report.document, again)
            elif self.timeline.current(key.then, person) is None:
                yield from self._about(key.then, person)

    def _about(self, relation: str, person: str, known: str = "", again: bool = False) -> Iterator[Lookup]:
        """Yield the search for a relation of a person, and its second page if the first lacks what is known."""
        query = ABOUT[relation].format(person)
        pages = self.pages.get(query, [])
        if not pages or (len(pages) == 1 and (again or (known and known not in pages[0]))):
            yield Lookup(query, len(pages) + 1, most=len(pages) + 1)

    def is_over(self, query: str, key: IndexKey) -> bool:
        """Return True if the last pages of a search reported no member; pages of indexes alone do not count."""
        pages = self.pages.get(query, [])
        members = {one.document for one in self.groups.get((key.kind, key.value), ())}
        told = [page for page in pages if any(id not in self.headings for id in page) or not page]
        last = told[-_PATIENCE:]
        ends = len(last) == _PATIENCE and not any(members & set(page) for page in last)
        return ends or len(pages) >= _MOST_PAGES or (bool(pages) and not pages[-1])

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _keys(self, question: str) -> Iterator[tuple[IndexKey, Reason]]:
        """Yield keys, the most useful first: values before people, since paging cannot finish a value."""
        named = list(named_keys(question))
        yield from ((key, "named") for key in named if key.kind != "person")
        known = self._known_keys()
        values = [key for key in known if key.kind != "person"]
        yield from ((key, "incomplete") for key in values if self.index(key) is not None)
        yield from ((key, "asked") for key in self._named if key.kind != "person")
        yield from ((key, "sibling") for key in values)
        yield from ((key, "doubted") for key in values if not key.then)
        yield from ((key, "asked") for key in (*named, *self._named) if key.kind == "person")
        yield from ((key, "sibling") for key in known if key.kind == "person")

    def _known_keys(self) -> list[IndexKey]:
        """Return the keys of all kinds that were asked for, those with most reports first."""
        often = Counter(IndexKey("person", one.subject) for one in self.reports)
        for group, told in self.groups.items():
            if isinstance(group, tuple) and group[0] in ATTRIBUTES:
                often[IndexKey(*group)] = len(told)
                often[IndexKey(*group, "born")] = len(told)
        asked = [key for key in often if self._asked[key.kind]]
        return sorted(asked, key=lambda key: (-often[key], key.kind, key.value, key.then))


def named_keys(question: str) -> Iterator[IndexKey]:
    """Yield the keys that a question names."""
    found = read(question)
    for kind, slot in zip(found[0].slots, found[1], strict=True) if found else ():
        if kind in (*ATTRIBUTES, "person"):
            yield IndexKey(kind, slot)
            if found and found[0].ask == "extreme":
                yield IndexKey(kind, slot, "born")


class ReportCurator(PlannedCurator):
    """One backward pass: link what is complete, then search for what is missing.

    Without an agenda it keeps its own for the pass, and links what it found in the keys of the question.
    """

    def __init__(self) -> None:
        super().__init__()
        self._notes = ReportAgenda()

    def _plan_pass(self, view: View) -> Steps[Action]:
        assert isinstance(view.task, Backward)
        if view.task.agenda:
            for task in view.task.agenda:
                yield from self._edit(task, [id for id, _ in task.known])
            for task in view.task.agenda:
                yield from self._search(task)
            return Done()
        for turn in view.task.forward:
            self._notes.saw(turn.action, documents(turn.observation))
        keys = list(dict.fromkeys(named_keys(view.task.question)))
        reserve = 1 + 2 * len(keys)
        while self.remaining > reserve and not self._agrees(view.task):
            left = [lookup for key in keys for lookup in self._notes.lookups(key)]
            if not left:
                break
            yield from self._page(left[0].query, left[0].page)
        for key in keys:
            index = self._notes.index(key)
            if index is not None and index not in self._notes.links:
                self._notes.saw(Read(index), documents((yield Read(index))))
            task = self._notes.task(key, "named")
            yield from self._edit(task, [id for id in self._notes.belonging(key) if id not in task.linked])
        return Done()

    def _agrees(self, task: Backward) -> bool:
        """Return True if the reports give the expected answer, which for a whole set needs its members."""
        found = read(task.question)
        if found is None or found[0].ask not in ("count", "list", "compare"):
            return False
        solution = answer(self._notes.timeline, *found)
        return solution is not None and bool({*solution.golds} & {*task.golds})

    def _search(self, task: IndexTask) -> Steps[None]:
        key = IndexKey(task.kind, task.value)
        for lookup in task.lookups:
            page = lookup.page
            while (yield from self._page(lookup.query, page)) and page != lookup.most:
                if not lookup.most and self._notes.is_over(lookup.query, key):
                    break
                page += 1

    def _page(self, query: str, page: int) -> Steps[bool]:
        """Read a page of a search; return False if it is empty."""
        shown = documents((yield Search(query, page)))
        self._notes.saw(Search(query, page), shown)
        return bool(shown)

    def _edit(self, task: IndexTask, members: Iterable[str]) -> Steps[None]:
        """Add an index if there is none, remove wrong links and add missing ones."""
        new, index, stale = list(members), task.index, task.stale
        if index is None and new and self.remaining > 2:
            shown = documents((yield Add(task.text)))
            index = shown[0][0] if shown and shown[0][1] == task.text else None
        if index is None:
            return
        if new and task.index is not None and not task.linked:  # an index of an earlier training
            linked = [id for id, _ in documents((yield Read(index)))[1:]]
            stale = tuple(id for id in linked if id not in new)
            new = [id for id in new if id not in linked]
        for id in stale:
            if self.remaining > 2:
                yield Unlink(index, id)
        yield from self._link(index, new)
