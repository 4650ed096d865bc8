"""An agenda for any text: values of the fields that questions ask by, derived from what earlier passes saw.

A field is asked by as soon as an index of one of its values was written ("category: tool"). Its other values that
several documents share are then worth an index each: first those of labels that most questions asked by, then those of
most documents. The agenda is fed the trace's turns
in order, live or replayed, and keeps nothing on disk.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator

from kbgym.agents.general.fields import Field, fields_of
from kbgym.gym.actions import (
    Action,
    Add,
    Deleted,
    Edit,
    Edited,
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

LENGTH = 8
_LETTER = re.compile(r"[^\W\d_]")
LEAST, MOST = 2, 60  # minimum and maximum number of documents for an index of a value


class GeneralAgenda:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._stating: dict[Field, dict[str, None]] = {}
        self._index: dict[Field, str] = {}
        self._written: dict[str, Field] = {}
        self._asked: Counter[str] = Counter()  # questions by label
        self._links: dict[str, dict[str, None]] = {}
        self._searched: set[str] = set()
        self._lent: dict[Hashable, set[Field]] = {}

    def note_question(self, text: str, lesson: Hashable = None) -> None:
        if lesson is not None:
            self._lent.setdefault(lesson, set())

    def note_turn(self, action: Action, result: Result, look: Look) -> None:
        if isinstance(result, Error):
            return
        shown = {id: look(id)[0] for id in shown_by(result)}
        match action:
            case Search(query, _):
                self._searched.add(query)
            case Add(text) | Edit(_, text):
                for id in shown:
                    self._name(id, text)
        match result:
            case Opened(id, links):
                self._links.setdefault(id, {}).update(dict.fromkeys(links))
            case Linked(source, linked, _, already):
                self._links.setdefault(source, {}).update(dict.fromkeys((*linked, *already)))
            case Unlinked(source, target):
                self._links.get(source, {}).pop(target, None)
            case Deleted(id) | Edited(id):
                self._forget(id, deleted=isinstance(result, Deleted))
        for id, text in shown.items():
            if id not in self._written and self._texts.get(id) != text:
                self._texts[id] = text
                for field in fields_of(text):
                    self._stating.setdefault(field, {})[id] = None

    def _name(self, id: str, text: str) -> None:
        """Record the field's value that a written document is the index of, by its first words."""
        label, colon, rest = text.partition(": ")
        field = Field(label, rest.partition(". ")[0].rstrip("."))
        if colon and field in self._stating:
            self._written[id] = field
            self._asked[label] += ". " in rest  # it was named by a question
            self._index.setdefault(field, id)

    def _forget(self, id: str, deleted: bool) -> None:
        for field in fields_of(self._texts.pop(id, "")):
            self._stating[field].pop(id, None)
        if deleted:
            self._links.pop(id, None)
            if (of := self._written.pop(id, None)) is not None and self._index.get(of) == id:
                del self._index[of]

    # -- queries ------------------------------------------------------------------------------------------------------

    def index_tasks(self, question: str, lesson: Hashable = None) -> tuple[IndexTask, ...]:
        taken = {field for other, fields in self._lent.items() if other != lesson for field in fields}
        chosen: dict[Field, IndexTask] = {}
        for field, reason in self._open():
            if field not in taken and len(chosen) < LENGTH:
                chosen[field] = self._task(field, reason)
        if lesson is not None:
            self._lent[lesson] = set(chosen)
        return tuple(chosen.values())

    def _open(self) -> Iterator[tuple[Field, Reason]]:
        for field, index in self._index.items():
            if not self._links.get(index, {}).keys() >= self._stating.get(field, {}).keys():
                yield field, "incomplete"
        labels = {field.label for field in self._index}
        values = [field for field in self._stating if field.label in labels and field not in self._index]
        for field in sorted(values, key=lambda one: (-self._asked[one.label], -len(self._stating[one]), one)):
            if LEAST <= len(self._stating[field]) <= MOST and _LETTER.search(field.value):  # no dates and numbers
                yield field, "sibling"

    def _task(self, field: Field, reason: Reason) -> IndexTask:
        index = self._index.get(field)
        linked = self._links.get(index, {}) if index is not None else {}
        known = tuple((id, self._texts[id]) for id in self._stating.get(field, ()) if id not in linked)
        lookups = () if field.text in self._searched else (Lookup(field.text),)
        return IndexTask(field.label, field.value, reason, known, lookups, index, "", field.text, tuple(linked))

    def release(self, lesson: Hashable) -> None:
        self._lent.pop(lesson, None)

    def task_for(self, index: str) -> IndexTask | None:
        field = self._written.get(index)
        return self._task(field, "changed") if field is not None else None

    def index_text(self, index_task: IndexTask) -> str:
        return index_task.text
