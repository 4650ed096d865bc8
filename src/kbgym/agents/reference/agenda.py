"""The agenda: a ranking of the keys to index next, derived only from what earlier passes asked and saw.

It receives every question and every observation in trace order, live or replayed, so it stores no state on disk. The
keys of the current question come first; then indexes that lack a document seen since or implied by others, and
unfinished keys of earlier questions. Then come siblings: values seen in documents, of the kinds that questions ask for,
ranked by the frequency of their kind, divided by its number of values and by the cost of an index. Narrower keys (the
cities of everyone with a job; the friends of a person) cost no search once everything under them has been seen.

Lessons may run concurrently: a task lent to one lesson is not given to another until that lesson ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from kbgym.agents.reference.expected import lookups_of
from kbgym.agents.reference.indexes import Indexes
from kbgym.agents.reference.kept_lists import Dependencies, KeyList, Rank
from kbgym.agents.reference.language import ATTRIBUTES, INDEXED, index_text
from kbgym.agents.reference.questions import further_keys, named_keys, parse_question
from kbgym.agents.reference.searching import about_family, goes_on, is_doubtful, members_on, searches_for
from kbgym.agents.reference.seen import BASE, SeenDocuments
from kbgym.gym.actions import Action, Deleted, Error, Look, Result, Search, shown_by
from kbgym.gym.policy import IndexTask, Lookup, Reason
from kbgym.index_keys import IndexKey
from kbgym.index_keys.vocabulary import GENDERED

LENGTH = 32  # more than a pass has actions: some index tasks take a single search
SHARED = 6  # with concurrent lessons, so that no lesson reserves tasks it will not reach
# Actions per index: about five pages, adding and linking; only the last two if everything has been seen already.
# One relation of a person saves a reader characters but no action, so it ranks after tasks that save actions.
_COST, _COST_SEEN, _COST_RELATION = 7, 2, 20
# An attribute is expected of every person if this share of the people with an index, and this many, have it.
_USUAL, _ENOUGH = 0.9, 10
_MOST_HAVE = 0.5  # the share of people with a relation above which one search for a missing one pays
_USUAL_READ = ("usual",)  # the fact read by tests that ask what is expected of everyone


class LastPage(NamedTuple):
    """The last page read of a search: its number, its texts, the new ones among them, and the earlier pages."""

    number: int
    texts: tuple[str, ...] = ()
    new: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()


class ReferenceAgenda:
    def __init__(self) -> None:
        self._readings = Dependencies()
        self.seen = SeenDocuments(self._readings)
        self.indexes = Indexes(self.seen, self._readings)
        self._asked: Counter[tuple[str, str]] = Counter()
        self._named: dict[IndexKey, int] = {}  # and which it was
        self._named_further: dict[IndexKey, int] = {}
        self._pages: dict[str, LastPage] = {}  # how far each search was read
        self._under_way: dict[Hashable, dict[IndexKey, None]] = {}
        self._usual: list[str] = []
        listed, indexed = partial(KeyList, self._readings), self._indexed
        self._without = listed(lambda key: None if self._has_index(key) else self._named[key])
        self._ready = listed(
            lambda key: self._named_further[key] if not self._has_index(key) and self._is_ready(key) else None
        )
        self._incomplete = indexed(lambda key: not self.indexes.links(key).keys() >= {*self.seen.under(key)})
        # People only: other indexes are never doubtful, and lead to no others.
        self._people = indexed(lambda key: True)
        self._having = {kind: indexed(partial(self._has_stated, kind)) for kind in (*INDEXED, "parent")}
        self._owing = indexed(lambda key: bool(self._lookups(key)))
        self._cut_short = indexed(lambda key: self._doubtful(key) is not None)
        self._leading = indexed(lambda key: not self.indexes.links(key).keys() >= {*self._leads_on(key)})
        self._siblings_of: dict[tuple[str, str], KeyList] = {}

    def _indexed(self, test: Callable[[IndexKey], bool]) -> KeyList:
        """Return an incremental list of the indexed keys that pass a test, in the order in which they were indexed."""
        return KeyList(
            self._readings, lambda key: self.indexes.number(key) if self._has_index(key) and test(key) else None
        )

    # -- input ---------------------------------------------------------------------------------------------------------

    def note_question(self, text: str, lesson: Hashable = None) -> None:
        """Record a question; its lesson is active from now on."""
        query = parse_question(text)
        named = dict.fromkeys(named_keys(query))
        for key in named:
            self._asked[key.kind, ""] += 1
            self._named.setdefault(key, len(self._named))
            self._readings.changed(("named", key))
            self._without.doubt(key)
            self.seen.vocabulary.know(key.kind, key.value)
        for key in dict.fromkeys(further_keys(query)):
            self._asked[key.kind, key.then] += 1
            self._named_further.setdefault(key, len(self._named_further))
            self._ready.doubt(key)
        if lesson is not None:
            self._under_way[lesson] = {key: None for key in named if key not in self._lent(lesson)}

    def note_turn(self, action: Action, result: Result, look: Look) -> None:
        """Record an action and its result."""
        if isinstance(result, Error):
            if isinstance(action, Search) and action.query in self._pages:
                self._turned(action.query, LastPage(self._pages[action.query].number))
            return
        if isinstance(result, Deleted):
            self.seen.forget(result.id)
        shown = [(id, look(id)[0]) for id in shown_by(result)]
        if isinstance(action, Search):
            last = self._pages.get(action.query, LastPage(0))
            if action.page == last.number + 1:
                new = frozenset(text for id, text in shown if id not in self.seen.texts)
                texts = tuple(text for _, text in shown)
                self._turned(action.query, LastPage(action.page, texts, new, (*last.before, *last.texts)))
        for id, text in shown:
            self.seen.see(id, text)
        self.indexes.note(action, result)

    def _turned(self, query: str, page: LastPage) -> None:
        self._pages[query] = page
        self._readings.changed(("page", query))

    # -- queries -------------------------------------------------------------------------------------------------------

    def index_tasks(self, question: str, lesson: Hashable = None) -> tuple[IndexTask, ...]:
        """Return the tasks after this question, best first.

        A key is not a task if its index is complete, or if another lesson has reserved it. Tasks of a lesson stay
        reserved until it is released; a repeated call returns those still open, and more.
        """
        query = parse_question(question)
        named = dict.fromkeys(named_keys(query))
        further = set(further_keys(query))
        taken = self._lent(lesson)
        self._take_up()
        if (usual := self._usual_attributes()) != self._usual:
            self._usual = usual
            self._readings.changed(_USUAL_READ)
        chosen: dict[IndexKey, IndexTask] = {}
        for key, reason in self._open(named):
            if key in taken or key in chosen:
                continue
            index_task = self.index_task(key, "named" if key in further and reason == "asked" else reason)
            if index_task.known or index_task.lookups:
                chosen[key] = index_task
            if len(chosen) == (SHARED if self._under_way.keys() - {lesson} else LENGTH):
                break
        if lesson is not None:
            self._under_way[lesson] = dict.fromkeys(key for key in (*named, *chosen) if key not in taken)
        return tuple(chosen.values())

    def task_for(self, index: str) -> IndexTask | None:
        if (key := self.indexes.key.get(index)) is None:
            return None
        index_task = self.index_task(key, "changed")
        again = () if key.then or key.kind not in BASE else tuple(searches_for(key, self.seen.memory.lists))
        return msgspec.structs.replace(index_task, lookups=again)

    def release(self, lesson: Hashable) -> None:
        """End a lesson and release the keys reserved for it."""
        self._under_way.pop(lesson, None)

    def index_text(self, index_task: IndexTask) -> str:
        return index_text(IndexKey(index_task.kind, index_task.value, index_task.then))

    def index_task(self, key: IndexKey, reason: Reason) -> IndexTask:
        """Return what is known of a key, and the remaining work."""
        index, linked = self.indexes.of.get(key), self.indexes.links(key)
        belong = (*self.seen.under(key), *self._leads_on(key))
        known = tuple((id, self.seen.texts[id]) for id in belong if id not in linked)
        text = self.seen.texts[index] if index is not None else index_text(key)
        lookups = self._lookups(key)
        if not lookups and reason == "doubted" and (again := self._doubtful(key)) is not None:
            lookups = (again,)
        return IndexTask(key.kind, key.value, reason, known, lookups, index, key.then, text, tuple(linked))

    def _leads_on(self, key: IndexKey) -> list[str]:
        """Return indexes to link to: of parents with further children, and of children with children."""
        if key.kind != "person" or key.then or self.seen.memory.lists:
            return []
        related = self.seen.memory.related
        family = [one for one in related("parent", key.value) if len(related("child", one)) > 1]
        family += [one for one in related("child", key.value) if related("child", one)]
        found = (self.indexes.find(IndexKey("person", one)) for one in dict.fromkeys(family))
        return [index for index in found if index is not None]

    def _lent(self, lesson: Hashable) -> set[IndexKey]:
        """Return the keys that other lessons are working on."""
        return {key for other, keys in self._under_way.items() if other != lesson for key in keys}

    def _open(self, named: Iterable[IndexKey]) -> Iterator[tuple[IndexKey, Reason]]:
        yield from ((key, "named") for key in named if not self._has_index(key))
        yield from ((key, "incomplete") for key in self._incomplete)
        yield from ((key, "doubted") for key in self._owing)
        yield from ((key, "asked") for key in self._without)
        yield from ((key, "asked") for key in self._ready)
        yield from self._siblings()

    def _has_index(self, key: IndexKey) -> bool:
        return self.indexes.find(key) is not None

    def _has_stated(self, kind: str, key: IndexKey) -> bool:
        return self.seen.expected.has(key.value, kind)

    def _page(self, query: str) -> LastPage | None:
        self._readings.read(("page", query))
        return self._pages.get(query)

    def _take_up(self) -> None:
        """Update the lists by the keys that were seen or indexed since the last call."""
        for key in self.indexes.new:
            self._incomplete.doubt(key)
            if key.kind == "person" and not key.then:
                lists = (self._people, *self._having.values(), self._owing, self._cut_short, self._leading)
                for one in lists:
                    one.doubt(key)
        for key in dict.fromkeys((*self.indexes.new, *self.seen.new)):
            for (kind, then), siblings in self._siblings_of.items():
                if (sibling := _sibling(kind, then, key)) is not None:
                    siblings.doubt(sibling)
        self.indexes.new, self.seen.new = [], []

    # -- remaining searches --------------------------------------------------------------------------------------------

    def _lookups(self, key: IndexKey) -> tuple[Lookup, ...]:
        """Return the unfinished searches of a key; with an index only those for documents it should have."""
        if key.then or key.kind not in (*INDEXED, "person"):
            return ()
        lists = self.seen.memory.lists
        found = [] if self._has_index(key) else [self._left(lookup, key) for lookup in searches_for(key, lists)]
        if key.kind == "person" and not lists:
            found += [lookup for lookup in self._owed(key.value) if self._page(lookup.query) is None]
        return tuple(lookup for lookup in found if lookup is not None)

    def _left(self, lookup: Lookup, key: IndexKey) -> Lookup | None:
        """Return the remainder of a search, or None if it is finished or not needed."""
        if lookup.most and all(self.seen.expected.has(key.value, kind) for kind in lookup.kinds):
            return None
        if (page := self._page(lookup.query)) is None:
            return lookup
        if not goes_on(page.texts, page.number, members_on([*page.new], lookup, key), lookup, key):
            return None
        return self._next(lookup, key, page)

    def _doubtful(self, key: IndexKey) -> Lookup | None:
        """Return one more page of a search that may have ended too early."""
        for lookup in searches_for(key, self.seen.memory.lists):
            page = self._page(lookup.query)
            if page is None or not is_doubtful(page.texts, page.number, lookup, key):
                continue
            # Read further pages only if the search has not shown everything known from elsewhere.
            if page.number == 1 or self.seen.expected.is_missed(key.value, lookup.kinds, (*page.before, *page.texts)):
                return msgspec.structs.replace(self._next(lookup, key, page), most=page.number + 1)
        return None

    def _next(self, lookup: Lookup, key: IndexKey, page: LastPage) -> Lookup:
        members = members_on(page.texts, lookup, key)
        return msgspec.structs.replace(lookup, page=page.number + 1, members=members)

    def _owed(self, person: str) -> list[Lookup]:
        """Return searches for statements about a person that are expected but were not seen."""
        expected, usual = self.seen.expected, self._usual
        self._readings.read(_USUAL_READ)
        page = self._page(about_family(person))
        ends = page is not None and not all({*person.split()} <= {*re.findall(r"\w+", text)} for text in page.texts)
        no_index = page is None and not self._has_index(IndexKey("person", person))
        if ends or no_index or expected.is_too_old_for_parents(person):
            # If a page of parents ends in facts about others, there are none: the person named ranks first, preceded
            # only by others whose names contain the same words.
            usual = [kind for kind in usual if kind != "parent"]
        guessed = expected.guessed(person, self.seen.memory, usual)
        return lookups_of(person, dict.fromkeys([*expected.implied(person), *guessed]))

    def _usual_attributes(self) -> list[str]:
        """Return the attributes that nearly every indexed person has; and parents, if most people have some."""
        if (people := len(self._people)) < _ENOUGH:
            return []
        share = {kind: len(having) / people for kind, having in self._having.items()}
        usual = [kind for kind in INDEXED if share[kind] >= _USUAL]
        return [*usual, "parent"] if share["parent"] >= _MOST_HAVE else usual

    # -- siblings and narrower keys -----------------------------------------------------------------------------------

    def _siblings(self) -> Iterator[tuple[IndexKey, Reason]]:
        """Yield keys without an index of the kinds that questions ask for, the most useful action first.

        Once every person has an index, people whose search may have ended too early precede keys that only save more.
        """
        values = self.seen.values
        worth: dict[tuple[str, str], float] = {}
        for (kind, then), asked in self._asked.items():
            cost = _COST_SEEN if then else _COST if kind in BASE else _COST_RELATION
            worth[kind, then] = asked / max(1, values[kind] or values["person"]) / cost
        for kind, then in sorted(worth, key=lambda pair: (-worth[pair], pair)):
            yield from ((key, "sibling") for key in self._of_kind(kind, then))
            if (kind, then) == ("person", ""):
                yield from ((key, "doubted") for key in self._cut_short)
                yield from ((key, "incomplete") for key in self._leading)

    def _of_kind(self, kind: str, then: str) -> KeyList:
        """Return the keys of a kind that no question named and that have no index, those with most documents first."""
        if (kind, then) not in self._siblings_of:
            siblings = self._siblings_of[kind, then] = KeyList(self._readings, self._open_rank)
            for base in self.seen.members:
                if (key := _sibling(kind, then, base)) is not None:
                    siblings.doubt(key)
        return self._siblings_of[kind, then]

    def _open_rank(self, key: IndexKey) -> Rank | None:
        self._readings.read(("named", key))
        if key in self._named or self._has_index(key):
            return None
        if key.then or key.kind not in BASE:
            start = IndexKey(_starts_from(key.kind), key.value)
            if not self._is_ready(key) or start not in self.seen:
                return None
        return -len(self.seen.under(key)), key.value

    def _is_ready(self, key: IndexKey) -> bool:
        """Return True if everything under a narrower key has been seen: its people, and the attribute asked of each."""
        base = key.base if key.kind in ATTRIBUTES else IndexKey("person", key.value)
        if not self._has_index(base) or key in self.indexes.folded:
            return False
        if not key.then:
            return len(self.seen.under(key)) > 1
        people = self.seen.people(key)
        if not all(self.seen.has_stated(key.then, person) for person in people) or len(people) < 2:
            return False
        # A person's brothers are complete only if every sibling is known.
        memory = self.seen.memory
        if memory.lists or key.kind not in GENDERED:
            return True
        return all(memory.related("gender", other) for other in memory.related(GENDERED[key.kind][0], key.value))


def _starts_from(kind: str) -> str:
    """Return the broader kind of a narrower kind."""
    return kind if kind in ATTRIBUTES else "person"


def _sibling(kind: str, then: str, base: IndexKey) -> IndexKey | None:
    """Return the key of a kind with the value of another key, or None."""
    if base.then or base.kind != _starts_from(kind):
        return None
    return IndexKey(kind, base.value, then)
