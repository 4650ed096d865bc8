"""Index documents, their keys and their links, followed through the actions of curators and their results."""

from __future__ import annotations

from collections.abc import Iterable

from kbgym.agents.reference.kept_lists import Dependencies
from kbgym.agents.reference.seen import SeenDocuments
from kbgym.gym.actions import Action, Add, Added, Deleted, Edited, Linked, Merged, Opened, Result, Unlinked
from kbgym.index_keys import IndexKey


class Indexes:
    """Index documents of a trace. An index is identified by its words, else by the key that most of its links share."""

    def __init__(self, seen: SeenDocuments, readings: Dependencies) -> None:
        self._seen, self._readings = seen, readings
        self.of: dict[IndexKey, str] = {}
        self.key: dict[str, IndexKey] = {}
        self.folded: set[IndexKey] = set()  # keys whose index the guard merged into another one: not worth retrying
        self.new: list[IndexKey] = []  # keys indexed since the last call; the caller clears it
        self._links: dict[str, dict[str, None]] = {}
        self._numbers: dict[IndexKey, int] = {}
        self._named = 0

    def find(self, key: IndexKey) -> str | None:
        """Return the index of a key, or None."""
        self._readings.read(("of", key))
        return self.of.get(key)

    def links(self, key: IndexKey) -> dict[str, None]:
        """Return the links of the index of a key."""
        index = self.find(key)
        return {} if index is None else self._links[index]

    def number(self, key: IndexKey) -> int:
        """Return the position of a key in the order in which keys got an index."""
        return self._numbers[key]

    def _changed(self, id: str) -> None:
        if (key := self.key.get(id)) is not None:
            self._readings.changed(("of", key))

    def note(self, action: Action, result: Result) -> None:
        """Record an action and its result."""
        match result:
            case Deleted(id):
                self._drop(id)
            case Added(id) | Merged(id, None) if isinstance(action, Add):
                self._written(id, self._seen.texts[id], action.text)
            case Merged(into, str(gone)):
                self._fold(gone, into)
            case Edited(id) if id in self._links:
                self._name(id)
            case Opened(id, targets):
                if targets and (id in self._links or self._seen.key_of(self._seen.texts[id], targets) is not None):
                    self._links[id] = dict.fromkeys(targets)
                    self._changed(id)
                    self._name(id)
            case Linked(source, linked, _, already):
                self._link(source, (*linked, *already))
            case Unlinked(source, target):
                self._links.get(source, {}).pop(target, None)
                self._changed(source)

    def _written(self, id: str, text: str, wanted: str) -> None:
        self._links.setdefault(id, {})
        self._name(id)
        asked = self._seen.key_of(wanted)
        if asked is not None and text != wanted and self.key.get(id) != asked:
            self.folded.add(asked)
            self._readings.changed(("of", asked))

    def _link(self, source: str, targets: Iterable[str]) -> None:
        if source in self._links:
            self._links[source].update(dict.fromkeys(targets))
            self._changed(source)
            self._name(source)

    def _name(self, id: str) -> None:
        """Determine the key of an index document; the first index of a key keeps it."""
        key = self._seen.key_of(self._seen.texts.get(id, ""), list(self._links[id]))
        if key == self.key.get(id):
            return
        self._unname(id)
        if key is not None and key not in self.of:
            self.of[key], self.key[id] = id, key
            self._named += 1
            self._numbers[key] = self._named
            self.new.append(key)
            self._changed(id)

    def _unname(self, id: str) -> None:
        self._changed(id)
        if (key := self.key.pop(id, None)) is not None:
            del self.of[key]

    def _fold(self, gone: str, into: str) -> None:
        if gone in self._links and into in self._links:
            self._links[into].update(self._links[gone])
            self._changed(into)
        self._drop(gone)

    def _drop(self, id: str) -> None:
        self._unname(id)
        self._links.pop(id, None)
        for other, links in self._links.items():
            if id in links:
                del links[id]
                self._changed(other)
