"""Changes on top of the documents of a store in PostgreSQL, which are read on demand.

`StoreLayer` supplies mappings that replace the dictionaries of a store and behave like them, order included.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kbgym.gym.environment import texts_in
from kbgym.gym.tools import is_editing
from kbgym.store.record import Record, Tally, normalised
from kbgym.trace.events import Acted, Event

if TYPE_CHECKING:
    from kbgym.backends.postgres.base import DatabaseBase

_BATCH = 5_000  # ids or texts a query


class StoreLayer:
    """The changes to one store. It implements `store.record.Layer`."""

    def __init__(self, base: DatabaseBase) -> None:
        self.base = base
        self.records, self.inbound = LayeredRecords(base), LayeredInbound(base)

    def copy(self) -> StoreLayer:
        twin = StoreLayer(self.base)
        twin.records, twin.inbound = self.records.copy(), self.inbound.copy()
        return twin

    def texts(self) -> LayeredTexts:
        return LayeredTexts(self.records)

    def fetch(self, ids: Iterable[str], texts: Iterable[str]) -> None:
        records = self.records
        wanted = [id for id in dict.fromkeys(ids) if id not in records.changed and id not in records.later]
        self.base.fetch(wanted, list(dict.fromkeys(map(normalised, texts))))

    def prefetch(self, events: Sequence[Event]) -> None:
        acted = [event for event in events if isinstance(event, Acted)]
        written = (text for event in acted if is_editing(event.action) for text in texts_in(event.action))
        self.fetch((id for event in acted for id in named_in(event)), written)

    def since(self) -> tuple[list[str], list[Record]]:
        changed = (record for record in self.records.changed.values() if record is not None)
        return list(self.records.changed), [*changed, *self.records.later.values()]

    def touched(self) -> set[str]:
        return {*self.records.changed, *self.records.later}

    def carrier(self) -> Callable[[str], str | None]:
        base, touched = self.base, self.touched()
        now = (record for id in touched if (record := self.records.get(id)) is not None)
        mine = {origin: record.id for record in now for origin in record.origins}

        def carrier(origin: str) -> str | None:
            found = next(reversed(base.carriers(origin)), None)
            return mine.get(origin) if origin in mine or found in touched else found

        return carrier

    def tally(self) -> Tally:
        base, (changed, now) = self.base, self.since()
        before: list[Record] = []
        for some in _batches(changed):
            base.fetch(some, ())
            before += [record for id in some if (record := base.get(id)) is not None]
        flags = Counter(record.flag for record in now)
        flags.subtract(record.flag for record in before)

        def carriers(origins: list[str]) -> list[int]:
            base.fetch(origins, ())
            return [len(base.carriers(origin)) for origin in origins]

        def sayers(texts: list[str]) -> list[int]:
            base.fetch((), texts)
            return [len(base.saying(text)) for text in texts]

        carried, shared = _difference(before, now, lambda record: set(record.origins), carriers)
        texts, _ = _difference(before, now, lambda record: {normalised(record.text)}, sayers)
        then = base.counts.tally
        authored = flags["authored"] + flags["correction"]
        more = (flags["untouched"], flags["edited"], authored, carried, shared, texts)
        return Tally(*map(operator.add, msgspec.structs.astuple(then), more))


class LayeredRecords(MutableMapping[str, Record]):
    """Documents by id: current versions of those of the base, then new ones."""

    def __init__(self, base: DatabaseBase) -> None:
        self.base = base
        self.changed: dict[str, Record | None] = {}  # documents of the base; None if removed
        self.later: dict[str, Record] = {}
        self._gone = 0

    def copy(self) -> LayeredRecords:
        twin = LayeredRecords(self.base)
        twin.changed, twin.later, twin._gone = dict(self.changed), dict(self.later), self._gone
        return twin

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
        # A removed document that returns comes last, as in a dictionary.
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
        """Yield every document in order, streaming those of the base."""
        for record in self.base:
            now = self.changed.get(record.id, record)
            if now is not None:
                yield now
        yield from list(self.later.values())


class LayeredInbound(MutableMapping[str, dict[str, None]]):
    """Inbound links by document, stored here if they changed."""

    def __init__(self, base: DatabaseBase) -> None:
        self.base = base
        self._changed: dict[str, dict[str, None]] = {}

    def copy(self) -> LayeredInbound:
        twin = LayeredInbound(self.base)
        twin._changed = dict(self._changed)
        return twin

    def __getitem__(self, id: str) -> dict[str, None]:
        """Return the current links to a document whose links changed."""
        return self._changed[id]

    def get(self, id: str, default: Any = None) -> Any:
        return self._changed[id] if id in self._changed else dict.fromkeys(self.base.inbound(id))

    def __setitem__(self, id: str, sources: dict[str, None]) -> None:
        self._changed[id] = sources

    def __delitem__(self, id: str) -> None:
        self._changed[id] = {}  # hides those of the base

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("iterate over the documents instead")

    def __len__(self) -> int:
        raise NotImplementedError("iterate over the documents instead")


class LayeredTexts(dict[str, dict[str, None]]):
    """Documents by normalised text, each text looked up on first use.

    Documents of one text are in the order of the store at creation, followed by later ones.
    """

    def __init__(self, records: LayeredRecords) -> None:
        super().__init__()
        self._base = records.base
        self._then: dict[str, list[tuple[int, str]]] = {}
        self._touched = {*records.changed, *records.later}
        behind = records.base.counts.documents + 1
        for id, record in records.changed.items():
            if record is not None:
                self._then.setdefault(normalised(record.text), []).append((self._base.number(id), id))
        for place, record in enumerate(records.later.values(), behind):
            self._then.setdefault(normalised(record.text), []).append((place, record.id))

    def __missing__(self, text: str) -> dict[str, None]:
        untouched = [(place, id) for place, id in self._base.saying(text) if id not in self._touched]
        self[text] = {id: None for _, id in sorted([*untouched, *self._then.get(text, ())])}
        return self[text]

    def get(self, text: str, default: Any = None) -> Any:
        return self[text]

    def setdefault(self, text: str, default: Any = None) -> Any:
        return self[text]

    def __delitem__(self, text: str) -> None:
        """Hide the documents of the base with this text, too."""
        self[text] = {}


def _difference(
    before: Iterable[Record],
    now: Iterable[Record],
    names_of: Callable[[Record], set[str]],
    held: Callable[[list[str]], list[int]],
) -> tuple[int, int]:
    """Return the increase over the base in the number of names with a document, and of names with several.

    `held` returns the number of documents of the base that have each name.
    """
    change = Counter(name for record in now for name in names_of(record))
    change.subtract(name for record in before for name in names_of(record))
    any_more = several_more = 0
    for names in _batches([name for name, by in change.items() if by]):
        for name, then in zip(names, held(names), strict=True):
            there = then + change[name]
            any_more += (there > 0) - (then > 0)
            several_more += (there > 1) - (then > 1)
    return any_more, several_more


def _batches(every: list[str]) -> Iterator[list[str]]:
    """Split names into batches of one query each."""
    return (every[start : start + _BATCH] for start in range(0, len(every), _BATCH))


def named_in(event: Acted) -> Iterator[str]:
    """Yield the strings in an action and its result that may be ids of documents."""
    for value in (*msgspec.structs.astuple(event.action), *msgspec.structs.astuple(event.result)):
        if isinstance(value, str) and value:
            yield value
        elif isinstance(value, tuple):
            for one in value:
                yield from (one,) if isinstance(one, str) else (one.index, *one.targets)
