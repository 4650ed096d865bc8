"""Lessons taught by people: the aliases and corrections in a trace.

A lesson by a person begins with a note of kind `taught`, which records who taught it and when. The backward pass of its
question then adds an alias (an index in the question's words) or a correction (a document that supersedes others).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kbgym.gym.actions import Added, Corrected, Linked, Merged, Observation
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Graded, Noted

TAUGHT = "taught"
Kind = Literal["alias", "correction", "nothing"]


class Taught(msgspec.Struct, frozen=True, omit_defaults=True):
    """A lesson by a person and what it changed.

    Args:
        document: the alias or correction.
        links: documents the alias leads to.
        supersedes: documents the correction supersedes, with their texts at that time.
        made: the lesson added `document`; False if it only added links to an alias that existed.
    """

    question: str
    by: str
    on: str = ""
    note: str = ""
    text: str = ""
    answers: tuple[str, ...] = ()
    iteration: int = 0
    kind: Kind = "nothing"
    document: str = ""
    links: tuple[str, ...] = ()
    supersedes: dict[str, str] = {}
    made: bool = False

    def stands(self, store: Store) -> bool:
        """Return True if the store still has the alias or correction."""
        linked = self.document in store and (self.made or not set(self.links).isdisjoint(store[self.document].links))
        return self.kind != "nothing" and linked

    def changed_since(self, store: Store) -> list[str]:
        """Return the superseded documents that have been removed or changed since."""
        return [id for id, text in self.supersedes.items() if id not in store or store[id].text != text]


class Corrections:
    """A listener that collects the lessons of people by question, oldest first."""

    lessons_only = True

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.lessons: dict[str, Taught] = {}
        self._now = ""

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        match event:
            case Noted(_, "taught", data):
                lesson = msgspec.convert(data, Taught)
                self.lessons[lesson.question] = lesson
            case Graded(_, question, golds) if question in self.lessons:
                self._change(question, answers=golds)
            case Began(iteration, "backward", _, question, text) if question in self.lessons:
                self._now = question
                self._change(question, iteration=iteration, text=text)
            case Acted(_, "backward", _, _, result) if self._now:
                self._take(result, store)
            case Ended():
                self._now = ""

    def _take(self, result: Any, store: Store) -> None:
        match result:
            case Corrected(id, supersedes):
                texts = {target: store[target].text for target in supersedes}
                self._change(self._now, kind="correction", document=id, supersedes=texts, made=True)
            case Added(id) | Merged(id):
                self._change(self._now, document=id, made=isinstance(result, Added))
            case Linked(source, linked) if linked:
                self._change(self._now, kind="alias", document=source, links=linked)

    def _change(self, question: str, **fields: Any) -> None:
        self.lessons[question] = msgspec.structs.replace(self.lessons[question], **fields)

    def standing(self, store: Store) -> list[Taught]:
        """Return the lessons whose alias or correction the store still has, oldest first."""
        return [lesson for lesson in self.lessons.values() if lesson.stands(store)]
