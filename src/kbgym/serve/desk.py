"""The agenda of a served store, kept in step with its trace, and what it holds in words.

Beside what the reference agenda knows (keys named, indexes unfinished, siblings) it watches for indexes whose facts
changed: an original under them was edited, or imported anew, after they were made.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kbgym.actions import Added, Delete, Deleted, Edited, Linked, Opened, Unlinked
from kbgym.agents.reference.agenda import Agenda
from kbgym.agents.reference.language import Key, index_key
from kbgym.policy import Errand
from kbgym.store import Store
from kbgym.tools import render
from kbgym.trace.events import Acted, Began, Event, Imported, RolledBack

What = Literal["changed", "unfinished", "not indexed", "sibling"]


class Item(msgspec.Struct, frozen=True):
    """One thing worth doing: `changed` and `unfinished` have an index, the others none yet."""

    what: What
    kind: str
    value: str
    known: int
    then: str = ""
    index: str | None = None


class Desk:
    """Follows the trace; `errands` is what an idle pass is given."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.agenda = Agenda()
        self._authored: dict[str, None] = {}
        self._changed: dict[str, dict[str, None]] = {}

    def __call__(self, event: Event, store: Store) -> None:
        match event:
            case Began(_, "forward", _, _, text):
                self.agenda.note_question(text)
            case Acted(_, _, _, action, result):
                self.agenda.note_turn(action, render(result, lambda id: store[id].text))
                match result:
                    case Added(id):
                        self._authored[id] = None
                    case Edited(id):
                        self._changed.pop(id, None)
                        self._doubt(id, store)
                    case Linked(index) | Unlinked(index) | Deleted(index):
                        self._changed.pop(index, None)
                    case Opened(index) if event.phase != "forward":  # a curator has looked at it
                        self._changed.pop(index, None)
            case Imported(_, _, edited):
                for document in edited:
                    self._doubt(document.id, store)
            case RolledBack():
                for id in [id for id in self._authored if id not in store]:
                    del self._authored[id]
                    self.agenda.note_turn(Delete(id), "")

    def _doubt(self, id: str, store: Store) -> None:
        for source in store.inbound(id):
            if store[source].flag == "authored":
                self._changed.setdefault(source, {})[id] = None

    def _stale(self, store: Store) -> dict[str, Key]:
        """Indexes whose facts changed and whose key is known."""
        keys = {index: index_key(store[index].text) for index in self._changed if index in store}
        return {index: key for index, key in keys.items() if key is not None}

    def errands(self, store: Store, question: str = "") -> tuple[Errand, ...]:
        """What to work on, best first: indexes whose facts changed, to be gone over again, then the agenda."""
        stale = self._stale(store)
        anew = (Errand(key.kind, key.value, "unfinished", then=key.then) for key in stale.values())
        return (*anew, *(errand for errand in self.agenda.errands(question) if errand.index not in stale))

    def items(self, store: Store) -> list[Item]:
        stale = self._stale(store)
        items = [
            Item("changed", key.kind, key.value, len(self._changed[index]), key.then, index)
            for index, key in stale.items()
        ]
        for errand in self.errands(store)[len(stale) :]:
            what: What = "sibling" if errand.reason == "sibling" else "not indexed"
            if errand.index is not None:
                what = "unfinished"
            items.append(Item(what, errand.kind, errand.value, len(errand.known), errand.then, errand.index))
        return items
