"""The agenda of a served store, which follows its trace.

Beside the tasks of the reference agenda (keys named, indexes unfinished, siblings) it lists indexes whose facts
changed: an original under them was edited, or imported again, after they were made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from kbgym.agents.registry import make_agenda
from kbgym.gym.actions import Add, Added, Delete, Deleted, Edited, Linked, LinkMany, Observation, Opened, Read, Unlinked
from kbgym.gym.policy import Agenda, IndexTask
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Event, Imported, RolledBack

What = Literal["changed", "unfinished", "not indexed", "sibling"]


class Item(msgspec.Struct, frozen=True):
    """An item of the agenda; `changed` and `unfinished` items have an index, the others none yet."""

    what: What
    kind: str
    value: str
    known: int
    then: str = ""
    index: str | None = None


class AgendaFollower:
    """Follow the trace and rank the tasks of idle passes."""

    def __init__(self, agenda: Callable[[], Agenda] = make_agenda) -> None:
        self._new_agenda = agenda
        self.clear()

    def clear(self) -> None:
        self.agenda = self._new_agenda()
        self._authored: dict[str, None] = {}
        self._edited: dict[str, None] = {}
        self._changed: dict[str, set[str]] = {}  # index to its changed documents
        self._changes: list[tuple[int, str, str]] = []  # iteration, index, and the document, or "" once it is settled

    def __call__(self, event: Event, store: Store, observation: Observation) -> None:
        match event:
            case Began(_, "forward", _, _, text):
                self.agenda.note_question(text)
            case Acted(_, _, _, action, result):
                self.agenda.note_turn(action, result, store.look)
                match result:
                    case Added(id):
                        self._authored[id] = None
                    case Edited(id):
                        self._edited[id] = None
                        self._settle(id, event.iteration)
                        self._doubt(id, store, event.iteration)
                    case Linked(index) | Unlinked(index) | Deleted(index):
                        if isinstance(result, Deleted) and index not in self._authored:
                            self._edited[index] = None
                        self._settle(index, event.iteration)
                    case Opened(index) if event.phase != "forward":  # a curator has reviewed it
                        self._settle(index, event.iteration)
            case Imported(_, _, edited):
                for document in edited:
                    self._doubt(document.id, store, event.iteration)
            case RolledBack(_, to):
                self._see_again(store)
                kept = [change for change in self._changes if change[0] <= to]
                self._changed, self._changes = {}, []
                for change in kept:
                    self._change(*change)

    def _see_again(self, store: Store) -> None:
        """Record documents that agents wrote or changed, again after a rollback."""
        for id in (*self._authored, *self._edited):
            self.agenda.note_turn(Delete(id), Deleted(id), store.look)
            if id in store:
                text, links = store.look(id)
                if id in self._authored:
                    self.agenda.note_turn(Add(text), Added(id), store.look)
                else:
                    self.agenda.note_turn(Read(id), Opened(id, ()), store.look)
                self.agenda.note_turn(LinkMany(id, tuple(links)), Linked(id, tuple(links)), store.look)
        self._authored = {id: None for id in self._authored if id in store}

    def _doubt(self, id: str, store: Store, iteration: int) -> None:
        for source in store.inbound(id):
            if store[source].flag == "authored":
                self._change(iteration, source, id)

    def _settle(self, index: str, iteration: int) -> None:
        if index in self._changed:
            self._change(iteration, index, "")

    def _change(self, iteration: int, index: str, document: str) -> None:
        self._changes.append((iteration, index, document))
        if document:
            self._changed.setdefault(index, set()).add(document)
        else:
            self._changed.pop(index, None)

    def _stale(self, store: Store) -> dict[str, IndexTask]:
        """Return the tasks of revising indexes whose facts changed and whose key is known."""
        found = {index: self.agenda.task_for(index) for index in self._changed if index in store}
        return {index: index_task for index, index_task in found.items() if index_task is not None}

    def index_tasks(self, store: Store, question: str = "") -> tuple[IndexTask, ...]:
        """Return the tasks, best first: indexes whose facts changed, then the agenda."""
        stale = self._stale(store)
        return (*stale.values(), *(one for one in self.agenda.index_tasks(question) if one.index not in stale))

    def items(self, store: Store) -> list[Item]:
        stale, items = self._stale(store), list[Item]()
        for task in self.index_tasks(store):
            what: What = "sibling" if task.reason == "sibling" else "not indexed"
            known = len(task.known)
            if task.index in stale:
                what, known = "changed", len(self._changed[task.index])
            elif task.index is not None:
                what = "unfinished"
            items.append(Item(what, task.kind, task.value, known, task.then, task.index))
        return items
