"""Which documents are indexes, of which keys, and what they link to: by what curators did and what came back."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kbgym.actions import Action, Add, Delete, Edit, Link, LinkMany, Read, Unlink
from kbgym.agents.reference.seen import SeenDocuments
from kbgym.naming import IndexKey
from kbgym.observations import documents

_FOLDED = re.compile(r"\[([^\]\n]+)\] was folded into it")
_SKIPPED = re.compile(r"No such document, skipped: (.+?)\.(?: |$)")


class Indexes:
    """Follows a trace. An index is known by its words or, where they say nothing, by most of what it links to."""

    def __init__(self, seen: SeenDocuments) -> None:
        self._seen = seen
        self.of: dict[IndexKey, str] = {}
        self.key: dict[str, IndexKey] = {}
        self.folded: set[IndexKey] = set()  # keys whose index the guard took for another one: not worth trying again
        self._links: dict[str, dict[str, None]] = {}

    def links(self, key: IndexKey) -> dict[str, None]:
        """What the index of a key links to."""
        return self._links[self.of[key]] if key in self.of else {}

    def note(self, action: Action, observation: str) -> None:
        """Take in one action that was done."""
        match action:
            case Delete(id):
                self._drop(id)
            case Add(text):
                for id, there in documents(observation)[:1]:
                    self._written(id, there, text)
            case Edit(id):
                for gone in _FOLDED.findall(observation):
                    self._fold(gone, documents(observation)[0][0])
                if id in self._links:
                    self._name(id)
            case Read(id):
                (_, text), *linked = documents(observation) or [("", "")]
                targets = [target for target, _ in linked]
                if targets and (id in self._links or self._seen.key_of(text, targets) is not None):
                    self._links[id] = dict.fromkeys(targets)
                    self._name(id)
            case Link(source, target):
                self._link(source, (target,), observation)
            case LinkMany(source, targets):
                self._link(source, targets, observation)
            case Unlink(source, target):
                self._links.get(source, {}).pop(target, None)

    def _written(self, id: str, text: str, wanted: str) -> None:
        self._links.setdefault(id, {})
        self._name(id)
        asked = self._seen.key_of(wanted)
        if asked is not None and text != wanted and self.key.get(id) != asked:
            self.folded.add(asked)

    def _link(self, source: str, targets: Iterable[str], observation: str) -> None:
        if source in self._links:
            unknown = {id for names in _SKIPPED.findall(observation) for id in names.split(", ")}
            self._links[source].update(dict.fromkeys(target for target in targets if target not in unknown))
            self._name(source)

    def _name(self, id: str) -> None:
        """Work out of which key a document is the index; the first index of a key stays it."""
        key = self._seen.key_of(self._seen.texts.get(id, ""), list(self._links[id]))
        if key == self.key.get(id):
            return
        self._unname(id)
        if key is not None and key not in self.of:
            self.of[key], self.key[id] = id, key

    def _unname(self, id: str) -> None:
        if (key := self.key.pop(id, None)) is not None:
            del self.of[key]

    def _fold(self, gone: str, into: str) -> None:
        if gone in self._links and into in self._links:
            self._links[into].update(self._links[gone])
        self._drop(gone)

    def _drop(self, id: str) -> None:
        self._unname(id)
        self._links.pop(id, None)
        for links in self._links.values():
            links.pop(id, None)
