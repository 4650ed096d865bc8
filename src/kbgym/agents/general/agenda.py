"""The agenda of any text: fields, values and names worth an index, from what passes asked and saw, and nothing else.

First indexes that miss a document seen since, then what this question names, then fields that recur across pages (those
that questions ask for first), values that more pages share than one page of results shows, of fields whose values were
asked for, then pages of titles that were seen, the fuller first. An index is known by its words or by what it links. It
is fed the trace's questions and turns in order, live or replayed, and keeps nothing on disk. It knows no world and no
gold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from kbgym.agents.general.hops import SHARED_BY
from kbgym.agents.general.keys import (
    TextKey,
    belongs,
    cased,
    field_of,
    index_text,
    is_statement,
    label_words,
    names_in,
    page_of,
    plain,
    query_of,
    titled,
    value_of,
)
from kbgym.agents.general.text import content_words
from kbgym.gym.actions import (
    Action,
    Add,
    Deleted,
    Edit,
    Error,
    Linked,
    Look,
    Opened,
    Result,
    Search,
    Unlinked,
    shown_by,
)
from kbgym.gym.policy import IndexTask, Lookup, Reason

LENGTH = 16
ENOUGH = 3  # documents seen of a page or a name before it is worth an index
SHARED = 6  # documents of one value: more than one page of results shows
MOST_MEMBERS = 60  # documents under one key; a name in more of them tells nothing
MOST_A_PAGE = 3  # documents of one field, on average: what a page has twenty of ("releases") is a table, not a field
MOST_OF_FIELD = 150  # more than one read should show


class ReadSoFar(NamedTuple):
    """The last page of a search that was looked at, and what on it nobody had seen before."""

    page: int
    new: tuple[str, ...]


class GeneralAgenda:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._under: dict[TextKey, dict[str, None]] = {}  # documents by page, field and asked name
        self._pages_with: dict[str, set[str]] = {}  # pages that have a field
        self._asked: Counter[str] = Counter()  # words of questions
        self._names: dict[TextKey, None] = {}  # of questions and of pages
        self._asked_names: set[TextKey] = set()
        self._written: set[str] = set()  # whatever its words, what was added is no statement
        self._by_links: dict[TextKey, str] = {}  # indexes that only their links tell
        self._index: dict[str, str] = {}  # an index's id by its plain text
        self._links: dict[str, dict[str, None]] = {}
        self._read: dict[str, ReadSoFar] = {}
        self._with_word: dict[str, dict[str, None]] = {}  # documents by word, capitals as they are
        self._by_word: dict[str, dict[TextKey, None]] = {}  # names by their rarest word
        self._lent: dict[Hashable, set[TextKey]] = {}

    # -- feeding ------------------------------------------------------------------------------------------------------

    def note_question(self, text: str, lesson: Hashable = None) -> None:
        self._asked.update(set(content_words(text)))
        for name in names_in(text):
            if len(name.split()) > 1:
                self._asked_names.add(TextKey("name", name))
                self._want(TextKey("name", name))
        if lesson is not None:
            self._lent.setdefault(lesson, set())

    def _want(self, key: TextKey) -> None:
        words = cased(key.value).split()
        if key not in self._names and words:
            self._names[key] = None
            telling = min(words, key=lambda word: (len(self._with_word.get(word, ())), -len(word)))
            self._by_word.setdefault(telling, {})[key] = None
            having = self._with_word.get(telling, {})
            self._under[key] = {id: None for id in having if id in self.texts and belongs(self.texts[id], key)}

    def note_turn(self, action: Action, result: Result, look: Look) -> None:
        if isinstance(result, Error):
            if isinstance(action, Search):
                self._read[action.query] = ReadSoFar(action.page, ())
            return
        shown = [(id, look(id)[0]) for id in shown_by(result)]
        match action:
            case Search(query, page):
                if page == self._read.get(query, ReadSoFar(0, ())).page + 1:
                    self._read[query] = ReadSoFar(page, tuple(text for id, text in shown if id not in self.texts))
            case Add():
                self._written.add(shown[0][0])
            case Edit(id) if id in self._written:
                self._index[plain(shown[0][1])] = id
        match result:
            case Opened(id, links):
                self._links[id] = dict.fromkeys(links)
            case Linked(source, linked, _, already):
                self._links.setdefault(source, {}).update(dict.fromkeys((*linked, *already)))
                self._name(source)
            case Unlinked(source, target):
                self._links.get(source, {}).pop(target, None)
            case Deleted(id):
                self.texts.pop(id, None)
                for members in self._under.values():
                    members.pop(id, None)
        for id, text in shown:
            if id not in self.texts:
                self._see(id, text)

    def _see(self, id: str, text: str) -> None:
        self.texts[id] = text
        if id in self._written or not is_statement(text):
            self._index.setdefault(plain(text), id)
            return
        if titled(text):
            self._want(TextKey("name", page_of(text)))
            if label := field_of(text):
                for key in _stated(text):
                    self._under.setdefault(key, {})[id] = None
                self._pages_with.setdefault(label, set()).add(page_of(text))
        elif page := page_of(text):
            self._want(TextKey("name", page))
        for word in dict.fromkeys(cased(text).split()):
            self._with_word.setdefault(word, {})[id] = None
            for key in self._by_word.get(word, ()):
                if belongs(text, key):
                    self._under[key][id] = None

    def _name(self, id: str) -> None:
        """Of which key a written document is the index, by what most of its documents state: the narrowest there is."""
        linked = [self.texts[target] for target in self._links[id] if target in self.texts]
        counts = Counter(key for text in linked for key in _stated(text))
        if id not in self._written or not counts:
            return
        key, most = max(counts.items(), key=lambda one: (one[1], one[0].kind == "value"))
        if 2 * most > len(linked) and 2 * most >= len(self._under.get(key, ())):
            self._by_links.setdefault(key, id)

    # -- asking -------------------------------------------------------------------------------------------------------

    def index_tasks(self, question: str, lesson: Hashable = None) -> tuple[IndexTask, ...]:
        taken = {key for other, keys in self._lent.items() if other != lesson for key in keys}
        chosen: dict[TextKey, IndexTask] = {}
        for key, reason in self._open(question):
            if key in taken or key in chosen:
                continue
            index_task = self._errand(key, reason)
            if index_task.lookups or len(index_task.known) > (index_task.index is None):
                chosen[key] = index_task
            if len(chosen) == LENGTH:
                break
        if lesson is not None:
            self._lent[lesson] = set(chosen)
        return tuple(chosen.values())

    def release(self, lesson: Hashable) -> None:
        self._lent.pop(lesson, None)

    def task_for(self, index: str) -> IndexTask | None:
        key = next((key for key in self._under if self._index_of(key) == index), None)
        return self._errand(key, "changed") if key is not None else None

    def index_text(self, index_task: IndexTask) -> str:
        return index_task.text

    def _index_of(self, key: TextKey) -> str | None:
        return self._index.get(plain(index_text(key))) or self._by_links.get(key)

    def _errand(self, key: TextKey, reason: Reason) -> IndexTask:
        index = self._index_of(key)
        linked = self._links.get(index, {}) if index is not None else {}
        known = tuple((id, self.texts[id]) for id in self._under.get(key, ()) if id not in linked)
        query = query_of(key)
        read = self._read.get(query)
        over = index is not None or (read is not None and not any(belongs(text, key) for text in read.new))
        lookups = () if over else (Lookup(query, read.page + 1 if read else 1),)
        return IndexTask(key.kind, key.value, reason, known, lookups, index, "", index_text(key), tuple(linked))

    def _open(self, question: str) -> Iterator[tuple[TextKey, Reason]]:
        usual = [key for key in self._under if self._is_usual(key)]
        open_keys = [key for key in usual if self._index_of(key) is None]
        for key in usual:
            index = self._index_of(key)
            if index is not None and index in self._links and not self._links[index].keys() >= self._under[key].keys():
                yield key, "incomplete"
        yield from ((key, "named") for key in self._named(open_keys, question))
        by_kind: dict[str, list[TextKey]] = {"field": [], "value": [], "name": []}
        for key in open_keys:
            by_kind[key.kind].append(key)
        by_kind["field"].sort(key=lambda key: (-self._asked_for(key), -len(self._pages_with[key.value]), key.value))
        wanted = {_label(key) for key in usual if key.kind == "value" and self._asked_for(key)}
        by_kind["value"] = [key for key in by_kind["value"] if _label(key) in wanted]
        for kind in ("value", "name"):
            by_kind[kind].sort(key=lambda key: (-len(self._under[key]), key.value))
        for key in (key for keys in by_kind.values() for key in keys):
            asked = key in self._asked_names if key.kind == "name" else self._asked_for(key)
            yield key, "asked" if asked else "sibling"

    def _named(self, keys: list[TextKey], question: str) -> list[TextKey]:
        """What a question names, values before the names and fields they are of."""
        text, words = plain(question), frozenset(content_words(question))
        named = [
            key
            for key in keys
            if (plain(key.value) in text if key.kind == "name" else words >= {*label_words(key.value)})
        ]
        return sorted(named, key=lambda key: ("value", "name", "field").index(key.kind))

    def _asked_for(self, key: TextKey) -> int:
        return min((self._asked[word] for word in label_words(key.value)), default=0)

    def _is_usual(self, key: TextKey) -> bool:
        if key.kind == "field":
            pages, members = len(self._pages_with.get(key.value, ())), len(self._under[key])
            return pages >= SHARED_BY and members <= min(MOST_A_PAGE * pages, MOST_OF_FIELD)
        if key.kind == "value":
            return SHARED <= len(self._under[key]) <= MOST_MEMBERS
        return (ENOUGH if key not in self._names else 1) <= len(self._under[key]) <= MOST_MEMBERS


def _stated(text: str) -> list[TextKey]:
    """The field and the value a document states."""
    found = (("field", field_of(text)), ("value", value_of(text)))
    return [TextKey(kind, value) for kind, value in found if value]  # type: ignore[arg-type]


def _label(key: TextKey) -> str:
    return key.value.partition(": ")[0]
