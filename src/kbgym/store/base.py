"""Documents somebody else keeps, which never change, and a store's changes on top of them.

A store of millions need not be held: what it began with is read when asked for, and what was done to it since is kept
here. `LayeredRecords`, `LayeredInbound` and `LayeredTexts` stand where a store has plain dictionaries, and answer as
those would, order included. Who keeps the documents, and how, it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any, Protocol

import msgspec

from kbgym.store.record import Record


class Tally(msgspec.Struct, frozen=True):
    """How many documents have each flag, how many originals a document carries, how many of them several do, and how
    many texts there are, normalised."""

    untouched: int
    edited: int
    authored: int
    carried: int
    shared: int
    texts: int


class Counts(msgspec.Struct, frozen=True):
    """What is known of all documents of a store together."""

    documents: int
    links: int
    origins: int
    issued: int
    coded: bool
    fingerprint: str
    tally: Tally


class Base(Protocol):
    """What a store began with: documents in an order, the first of them number 1."""

    @property
    def counts(self) -> Counts: ...

    def get(self, id: str) -> Record | None: ...

    def fetch(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Have at hand what will be asked for: documents by id, and who says some texts, which are normalised."""

    def number(self, id: str) -> int:
        """Where a document of the base stands in its order."""

    def inbound(self, id: str) -> tuple[str, ...]:
        """The documents that link to this one, in order."""

    def saying(self, text: str) -> Sequence[tuple[int, str]]:
        """The number and the id of every document with this text, once both are normalised, in order."""

    def carriers(self, origin: str) -> Sequence[str]:
        """The documents that stand for an original or absorbed it, in order."""

    def __iter__(self) -> Iterator[Record]: ...


class LayeredRecords(MutableMapping[str, Record]):
    """Documents by id: those of the base as they are now, then those that came since."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.changed: dict[str, Record | None] = {}  # of the base's, None where one is gone
        self.later: dict[str, Record] = {}
        self._gone = 0

    def copy(self) -> LayeredRecords:
        twin = LayeredRecords(self.base)
        twin.changed, twin.later, twin._gone = dict(self.changed), dict(self.later), self._gone
        return twin

    def fetch(self, ids: Iterable[str], texts: Iterable[str]) -> None:
        wanted = [id for id in dict.fromkeys(ids) if id not in self.changed and id not in self.later]
        self.base.fetch(wanted, list(dict.fromkeys(texts)))

    def _find(self, id: str) -> Record | None:
        if (record := self.later.get(id)) is not None:
            return record
        return self.changed[id] if id in self.changed else self.base.get(id)

    def __getitem__(self, id: str) -> Record:
        if (record := self._find(id)) is None:
            raise KeyError(id)
        return record

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._find(id) is not None

    def __setitem__(self, id: str, record: Record) -> None:
        # One that was gone comes last when it comes again, as in any dictionary.
        fresh = id in self.later or (self.changed[id] is None if id in self.changed else self.base.get(id) is None)
        if fresh:
            self.later[id] = record
        else:
            self.changed[id] = record

    def __delitem__(self, id: str) -> None:
        if id in self.later:
            del self.later[id]
        elif id in self:
            self.changed[id] = None
            self._gone += 1
        else:
            raise KeyError(id)

    def __len__(self) -> int:
        return self.base.counts.documents - self._gone + len(self.later)

    def __iter__(self) -> Iterator[str]:
        return (record.id for record in self.values())

    def values(self) -> Any:
        """Every document in order; those of the base are read one after the other."""
        return self._all()

    def _all(self) -> Iterator[Record]:
        for record in self.base:
            now = self.changed.get(record.id, record)
            if now is not None:
                yield now
        yield from list(self.later.values())

    def since(self) -> list[Record]:
        """What was changed and what came, as it is now."""
        return [*(record for record in self.changed.values() if record is not None), *self.later.values()]

    def touched(self) -> set[str]:
        """The documents that may be other than the base's."""
        return {*self.changed, *self.later}


class LayeredInbound(MutableMapping[str, dict[str, None]]):
    """Which documents link to each: where a link came or went, as it is now."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self._changed: dict[str, dict[str, None]] = {}

    def copy(self) -> LayeredInbound:
        twin = LayeredInbound(self.base)
        twin._changed = dict(self._changed)
        return twin

    def __getitem__(self, id: str) -> dict[str, None]:
        """Of a document whose links came or went."""
        return self._changed[id]

    def get(self, id: str, default: Any = None) -> Any:
        return self._changed[id] if id in self._changed else dict.fromkeys(self.base.inbound(id))

    def __setitem__(self, id: str, sources: dict[str, None]) -> None:
        self._changed[id] = sources

    def __delitem__(self, id: str) -> None:
        self._changed[id] = {}  # or the base's would show

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("whoever wants all links asks the documents")

    def __len__(self) -> int:
        raise NotImplementedError("whoever wants all links asks the documents")


class LayeredTexts(MutableMapping[str, dict[str, None]]):
    """Which documents say what, each text looked up when it is first asked for.

    The documents of one text stand as they would if all had been looked through when this was made: in the order of the
    store then, and what came to say it later behind them.
    """

    def __init__(self, records: LayeredRecords, normalised: Callable[[str], str]) -> None:
        self._base = records.base
        self._known: dict[str, dict[str, None]] = {}
        self._then: dict[str, list[tuple[int, str]]] = {}
        self._touched = records.touched()
        behind = records.base.counts.documents + 1
        for id, record in records.changed.items():
            if record is not None:
                self._then.setdefault(normalised(record.text), []).append((self._base.number(id), id))
        for place, record in enumerate(records.later.values(), behind):
            self._then.setdefault(normalised(record.text), []).append((place, record.id))

    def __getitem__(self, text: str) -> dict[str, None]:
        if text not in self._known:
            untouched = [(place, id) for place, id in self._base.saying(text) if id not in self._touched]
            self._known[text] = {id: None for _, id in sorted([*untouched, *self._then.get(text, ())])}
        return self._known[text]

    def get(self, text: str, default: Any = None) -> Any:
        return self[text]

    def setdefault(self, text: str, default: Any = None) -> Any:
        return self[text]

    def __setitem__(self, text: str, ids: dict[str, None]) -> None:
        self._known[text] = ids

    def __delitem__(self, text: str) -> None:
        """Nobody says it any more: what the base says of it is not asked again."""
        self._known[text] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
