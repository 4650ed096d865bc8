"""The agenda of a served store, kept in step with its trace, and what it holds in words.

Beside what the reference agenda knows (keys named, indexes unfinished, siblings) it watches for indexes whose facts
changed: an original under them was edited, or imported anew, after they were made.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kbgym.actions import Added, Delete, Edited, Linked, Unlinked
from kbgym.agents.reference.agenda import Agenda
from kbgym.agents.reference.language import index_key
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
    """A watcher of the trace; `errands` is what an idle pass is given."""

    def __init__(self) -> None:
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
                    case Linked(index) | Unlinked(index):
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

    def _stale(self, store: Store) -> list[Errand]:
        found = []
        for index in self._changed:
            key = index_key(store[index].text) if index in store else None
            if key is not None:
                found.append(Errand(key.kind, key.value, "unfinished", (), 1, index, key.then))
        return found

    def errands(self, store: Store, question: str = "") -> tuple[Errand, ...]:
        """What to work on, best first: indexes whose facts changed, then what the agenda holds."""
        stale = self._stale(store)
        known = {errand.index for errand in stale}
        return (*stale, *(e for e in self.agenda.errands(question) if e.index is None or e.index not in known))

    def items(self, store: Store) -> list[Item]:
        changed = set(self._changed)
        items: list[Item] = []
        for errand in self.errands(store):
            what: What = "sibling"
            if errand.index is not None:
                what = "changed" if errand.index in changed else "unfinished"
            elif errand.reason != "sibling":
                what = "not indexed"
            known = len(self._changed[errand.index]) if what == "changed" and errand.index else len(errand.known)
            items.append(Item(what, errand.kind, errand.value, known, errand.then, errand.index))
        return items
