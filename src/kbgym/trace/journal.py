"""A store that notes what changes in it, so that a copy elsewhere can be changed in the same way.

It does what a store does; what the notes are written to, it does not know. It can also give back so much of what it was
as is needed to see that events do to it what was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kbgym.store import Record, Store
from kbgym.store.store import normalised


class Journal(Store):
    """Since `clear`: the documents put or dropped (`before` is what they were), those that are new, and the links
    that came or went; all in the order in which it happened."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        super().__init__(records)
        self.clear()

    def clear(self) -> None:
        self.began = self._counts()
        self.before: dict[str, Record | None] = {}
        self.added: dict[str, None] = {}
        self.linked: dict[tuple[str, str], None] = {}
        self.unlinked: dict[tuple[str, str], None] = {}
        self.whole = False  # everything may have changed, its order too

    @classmethod
    def of(cls, store: Store) -> Journal:
        """A journal with the content of a store; the records are shared, nothing else is."""
        made = cls()
        made._take(store)
        made.clear()
        return made

    def become(self, store: Store) -> None:
        """Take on another state. Unless it is the same in every respect, all of it counts as changed."""
        alike = store.fingerprint == self.fingerprint and list(store._records) == list(self._records)
        if not alike or any(self.inbound(id) != store.inbound(id) for id in self._inbound):
            self.whole = True
        self._take(store)

    def _take(self, store: Store) -> None:
        twin, texts = store.copy(), store._by_text
        self._records, self._inbound, self._own = twin._records, twin._inbound, twin._own
        # Which of two equal texts came first is not in the records.
        self._by_text = None if texts is None else {text: dict(ids) for text, ids in texts.items()}
        self._issued, self._sum, self.coded = twin._issued, twin._sum, twin.coded
        self.origins, self.links, self.merges = twin.origins, twin.links, twin.merges

    def _counts(self) -> tuple[str, int, int, int, int]:
        return self.fingerprint, self.issued, self.links, self.merges, len(self)

    def earlier(self, ids: Iterable[str], texts: Iterable[str]) -> Store:
        """The store as it was at `clear`, with only what changed since, these documents and those with these texts.

        It counts and hashes as the whole store did, so events that name nothing else can be replayed on it. Which of
        several documents with one text came first it may not know.
        """
        asked = dict.fromkeys(ids)
        if self._by_text is not None:
            for text in texts:
                asked.update(self._by_text.get(normalised(text), {}))
        held = [self._records[id] for id in asked if id in self._records and id not in self.before]
        return _Part([*(old for old in self.before.values() if old is not None), *held], self.coded, *self.began)

    @property
    def issued(self) -> int:
        """The number of the last id given out."""
        return self._last_issued()

    def inbound_order(self) -> Mapping[tuple[str, str], int]:
        """Every link with its place among all, such that the documents linking to one come in the order they did."""
        numbers: dict[tuple[str, str], int] = {}
        for target, sources in self._inbound.items():
            for source in sources:
                numbers[source, target] = len(numbers)
        return numbers

    def restore(self, issued: int, merges: int, origins: int, links: Iterable[tuple[str, str]]) -> None:
        """What records alone do not say: counters, and the order in which links came."""
        self._issued, self.merges, self.origins = issued, merges, origins
        self._inbound, self._own = {}, None
        for source, target in links:
            self._inbound.setdefault(target, {})[source] = None

    def _put(self, record: Record) -> None:
        old = self._records.get(record.id)
        self.before.setdefault(record.id, old)
        if old is None:
            self.added.pop(record.id, None)
            self.added[record.id] = None
        before = () if old is None else old.links
        if before is not record.links:
            had, has = set(before), set(record.links)
            for target in before:
                if target not in has:
                    self._unlinking(record.id, target)
            for target in record.links:
                if target not in had:
                    self.linked[record.id, target] = None
        super()._put(record)

    def _drop(self, id: str) -> None:
        self.before.setdefault(id, self._records[id])
        self.added.pop(id, None)
        super()._drop(id)

    def _unlinking(self, source: str, target: str) -> None:
        if (source, target) in self.linked:
            del self.linked[source, target]
        else:
            self.unlinked[source, target] = None


class _Part(Store):
    """Some documents of a store, with the counts of the whole."""

    def __init__(
        self, records: list[Record], coded: bool, fingerprint: str, issued: int, links: int, merges: int, documents: int
    ) -> None:
        super().__init__()
        self.coded, self._issued, self._sum = coded, issued, int(fingerprint, 16)
        self.links, self.merges, self._others = links, merges, documents - len(records)
        for record in records:
            self._records[record.id] = record
            for target in record.links:
                self._inbound.setdefault(target, {})[record.id] = None

    def __len__(self) -> int:
        return super().__len__() + self._others
