"""Ground truth of keys: the documents that belong under a key, resolved from a world's facts and not from texts.

`people/kind.py`, `people3/kind.py` and `phantomwiki/kind.py` complete `Truth`. Any document that names a person may be
under that person, but only documents with the person as subject are required, since every relation is also stated from
the other end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from kbgym.worlds.world import Document, Key

GROUPS = ("city", "job or hobby", "birth date", "person", "one-hop relation", "two-hop relation", "joined attributes")
ATTRIBUTES = ("city", "job", "hobby")

# People by id, each with the documents that state their facts; None for a fact that no document states.
Told = Mapping[str, Sequence[str | None]]
Serving = Mapping[str, frozenset[str]]


def group_of(key: Key) -> str:
    """Return the row of the audit table that counts a key."""
    if key.kind == "city":
        return "city"
    if key.kind in ATTRIBUTES:
        return "job or hobby"
    if key.kind in ("person", "birth"):
        return "person" if key.kind == "person" else "birth date"
    if key.kind.partition(".")[0] in ATTRIBUTES:  # cities of people whose job is tanner
        return "joined attributes"
    return "two-hop relation" if "." in key.kind else "one-hop relation"


class Truth(ABC):
    """The truth of a world of named people. A relation key's kind is its path: `child.child`.

    Members of a key are identified by strings that are consistent within the key.

    Attributes:
        asked: Attributes that may be the last step of a path.
        names: People by name, the possible subjects of a single-entity hub.
        values: The attribute values by kind.
    """

    asked: ClassVar[Iterable[str]]

    def __init__(
        self, documents: Iterable[Document], name_of: Mapping[str, str], values: Mapping[str, Iterable[str]]
    ) -> None:
        self.names = {name: id for id, name in name_of.items()}
        self.values = values
        self._name_of = name_of
        self._about = {document.id: document.about for document in documents}
        self._own: dict[str, list[str]] = {}
        for document, about in self._about.items():
            if about:
                self._own.setdefault(about[0], []).append(document)
        self._serving: dict[Key, tuple[frozenset[str], Serving]] = {}

    @abstractmethod
    def _holders(self, key: Key) -> Iterable[str]:
        """Return the people with an attribute's value."""

    @abstractmethod
    def _document(self, person: str, kind: str) -> str | None:
        """Return the document that states an attribute of a person."""

    @abstractmethod
    def _step(self, person: str, relation: str) -> Told:
        """Return the people in a relation to a person, with the documents that state it, from either end."""

    def members(self, key: Key) -> frozenset[str]:
        """Return the members that a complete index of this key leads to."""
        return self._resolved(key)[0]

    def serves(self, key: Key, document: str) -> frozenset[str]:
        """Return the members that a source document leads to, empty if it does not belong under the key."""
        return self._resolved(key)[1].get(document, frozenset())

    def belongs(self, key: Key, document: str) -> bool:
        """Return True if a source document belongs under this key."""
        if key.kind == "person":
            return self.names.get(key.value) in self._about.get(document, ())
        return bool(self.serves(key, document))

    def recitable(self, key: Key) -> frozenset[str]:
        """Return the names that an index text of this key must not list: its members, or those a person's own
        documents name."""
        if key.kind != "person":
            return self.members(key)
        person = self.names.get(key.value, "")
        others = {other for document in self._own.get(person, ()) for other in self._about[document]}
        return frozenset(self._name_of[other] for other in others if other != person)

    def _resolved(self, key: Key) -> tuple[frozenset[str], Serving]:
        if key not in self._serving:
            self._serving[key] = self._resolve(key)
        return self._serving[key]

    def _resolve(self, key: Key) -> tuple[frozenset[str], Serving]:
        kind, _, asked = key.kind.partition(".")
        if kind in self.values:
            return self._gathered(
                {id: [self._document(id, asked or kind)] for id in self._holders(Key(kind, key.value))}
            )
        person = self.names.get(key.value)
        if person is None:
            return frozenset(), {}
        if key.kind == "person":
            own = self._own.get(person, [])
            return frozenset(own), {document: frozenset((document,)) for document in own}
        return self._gathered(self._walk(person, key.kind.split(".")))

    def _gathered(self, found: Told) -> tuple[frozenset[str], Serving]:
        """Return the members' names, and the members each document leads to."""
        serving: dict[str, frozenset[str]] = {}
        for id, documents in found.items():
            for document in documents:
                if document is not None:
                    serving[document] = serving.get(document, frozenset()) | {self._name_of[id]}
        return frozenset(self._name_of[id] for id in found), serving

    def _walk(self, start: str, path: Sequence[str]) -> Told:
        """Return the people at the end of a path, with the documents that state the last step."""
        reached: dict[str, list[str | None]] = {start: []}
        for step in path:
            if step in self.asked:
                reached = {id: [self._document(id, step)] for id in reached}
                continue
            further: dict[str, list[str | None]] = {}
            for id in reached:
                for other, documents in self._step(id, step).items():
                    further.setdefault(other, []).extend(documents)
            reached = further
        if len(path) > 1:
            reached.pop(start, None)  # a path back to its start is not a relation
        return reached
