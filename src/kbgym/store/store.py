"""The store: a dictionary of documents and the links between them, as an exact state machine.

It uses no files, clock, search or model. The same operations give the same bytes, and the cost of an operation does not
depend on the size of the store. An invalid operation raises `Refused` with one sentence for the agent and changes
nothing.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from copy import copy
from typing import Any, Self

import msgspec

from kbgym.codes import code, number_of
from kbgym.errors import BadInput
from kbgym.store.record import MODULUS, Base, Flag, Layer, Record, normalised, weight

Ids = tuple[str, ...]


class Refused(Exception):
    """An operation that the store rejects; the agent reads the message."""


class Store:
    """Documents by id. Records are immutable values, so a copy of a store shares them and costs one dictionary."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records: MutableMapping[str, Record] = {}
        self._inbound: MutableMapping[str, dict[str, None]] = {}
        self.layer: Layer | None = None  # the changes to a base, if a backend keeps the initial documents
        self._own: set[str] | None = None  # documents whose inbound links no copy shares; None for all
        self._by_text: MutableMapping[str, dict[str, None]] | None = None
        self._leading: dict[Flag, dict[str, None]] | None = None  # index documents and corrections by flag
        self.tuned: Mapping[str, Any] = {}  # search settings chosen for this store; not part of the fingerprint
        self._issued = 0
        self._sum = 0
        self.links = 0
        self.merges = 0
        self.frozen = False
        origins: set[str] = set()
        # A stripped-down `_put` for each record, which halves the time to open a store of a million documents.
        total = 0
        for record in records:
            id, links = record.id, record.links
            if id in self._records:
                raise BadInput(f"document id {id!r} occurs twice.")
            self._records[id] = record
            total += weight(record)
            if links:
                if id in links or len(set(links)) < len(links):
                    raise BadInput(f"document {id!r} links to itself, or to another document twice.")
                for target in links:
                    self._inbound.setdefault(target, {})[id] = None
                self.links += len(links)
            if id[:1] == "n":
                self._issued = max(self._issued, _number(id))
            if record.origin is not None:
                origins.add(record.origin)
            if record.absorbed:
                origins.update(record.absorbed)
        self._sum = total % MODULUS
        # A store whose document ids are codes issues codes; the counter is determined when the next id is needed.
        self.coded = number_of(next(iter(self._records), "")) > 0
        self.origins = len(origins)
        for target in self._inbound:
            if target not in self._records:
                raise BadInput(f"a link points to {target!r}, which is not a document.")

    @classmethod
    def over(cls, base: Base) -> Self:
        """Return a store over the documents of a backend, which reads them on demand."""
        made, counts = cls(), base.counts
        made._use(base.layer())
        made._issued, made._sum, made.coded = counts.issued, int(counts.fingerprint, 16), counts.coded
        made.origins, made.links = counts.origins, counts.links
        return made

    def _use(self, layer: Layer) -> None:
        self.layer, self._records, self._inbound, self._own = layer, layer.records, layer.inbound, set()

    # -- reading ------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Store, {len(self):,} documents, {self.links:,} links>"

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, id: object) -> bool:
        return id in self._records

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def __getitem__(self, id: str) -> Record:
        return self._records[id]

    def look(self, id: str) -> tuple[str, tuple[str, ...]]:
        """Return the parts of a document that an agent may see: its text and its links."""
        record = self[id]
        return record.text, record.links

    def get(self, id: str) -> Record:
        """Return a document. Raise `Refused` if there is none."""
        try:
            return self._records[id]
        except KeyError:
            raise Refused(f"there is no document {_short(id)}.") from None

    def fetch(self, ids: Iterable[str], texts: Iterable[str] = ()) -> None:
        """Prefetch documents by id, and those with texts about to be added, from a base with one query."""
        if self.layer is not None:
            self.layer.fetch(ids, texts)

    def inbound(self, id: str) -> tuple[str, ...]:
        """Return the documents that link to this one."""
        return tuple(self._inbound.get(id, ()))

    def superseded_by(self, id: str) -> tuple[str, ...]:
        """Return the corrections that supersede a document, oldest first."""
        corrections = self.corrections()
        return tuple(source for source in self.inbound(id) if source in corrections) if corrections else ()

    def corrections(self) -> Collection[str]:
        """Return the ids of all corrections."""
        return self._leads()["correction"]

    def same_text(self, text: str, other_than: str | None = None) -> str | None:
        """Return the first document whose normalised text equals this one's, or None."""
        if self._by_text is None and self.layer is not None:
            self._by_text = self.layer.texts()
        elif self._by_text is None:
            self._by_text = {}
            for record in self:
                self._by_text.setdefault(normalised(record.text), {})[record.id] = None
        return next((id for id in self._by_text.get(normalised(text), ()) if id != other_than), None)

    @property
    def fingerprint(self) -> str:
        """Return a hash of every byte of the state, link order included, at constant cost.

        It is the sum of the documents' own hashes, so it does not depend on the order in which documents were added.
        """
        return f"{self._sum:064x}"

    def copy(self) -> Store:
        """Return an independent, unfrozen copy; unchanged parts stay shared."""
        twin = copy(self)
        if self.layer is not None:
            twin._use(self.layer.copy())
        else:
            twin._records, twin._inbound = dict(self._records), dict(self._inbound)
        self._own, twin._own = set(), set()
        twin._by_text, twin.frozen = None, False
        if self._leading is not None:
            twin._leading = {flag: dict(ids) for flag, ids in self._leading.items()}
        return twin

    @property
    def base(self) -> Base | None:
        """Return the backend's initial documents, or None if the store holds them itself."""
        return None if self.layer is None else self.layer.base

    def authored(self) -> list[Record]:
        """Return the documents written by agents; a base that has none is not read."""
        return [record for record in self._made() if record.flag == "authored"]

    def _made(self) -> Iterable[Record]:
        """Return the documents that may have been written by agents or people."""
        if self.layer is not None and not self.layer.base.counts.tally.authored:
            return self.layer.since()[1]
        return self

    @property
    def indexes(self) -> Mapping[str, None]:
        """Return the ids of index documents (written by an agent, with at least one link) and of all corrections."""
        leads = self._leads()
        return ChainMap(leads["correction"], leads["authored"])  # the last mapping is iterated first

    def _leads(self) -> dict[Flag, dict[str, None]]:
        if self._leading is None:
            self._leading = {"authored": {}, "correction": {}}
            for record in self._made():
                self._file(record.id, record)
        return self._leading

    def unlike(self, other: Store) -> Iterable[str]:
        """Return the ids of all documents that may differ between two stores."""
        mine, theirs = self.layer, other.layer
        if mine is not None and theirs is not None and mine.base is theirs.base:
            return dict.fromkeys((*mine.touched(), *theirs.touched()))
        return dict.fromkeys((*other._records, *self._records))

    def since_base(self) -> tuple[list[str], list[Record]]:
        """Return the ids of the base that were changed or removed, and all changed and new documents."""
        return ([], list(self)) if self.layer is None else self.layer.since()

    def as_frozen(self) -> Store:
        """Return a frozen store with the same content, leaving this store unchanged."""
        return self if self.frozen else self.copy().freeze()

    # -- changing -----------------------------------------------------------------------------------------------------

    def tune(self, settings: Mapping[str, Any]) -> None:
        """Update search settings of this store; other settings are unchanged."""
        self.tuned = {**self.tuned, **settings}

    def freeze(self) -> Store:
        """Reject all further changes."""
        self.frozen = True
        return self

    def add(self, text: str, flag: Flag = "authored") -> str:
        """Add a document written by an agent and return its id."""
        self._check_open()
        self._issued = self.issued + 1
        while (id := code(self._issued) if self.coded else f"n{self._issued}") in self._records:
            self._issued += 1
        self._put(Record(id=id, text=text, flag=flag))
        return id

    def correct(self, text: str, supersedes: Iterable[str]) -> str:
        """Add a correction that supersedes documents and return its id."""
        targets = tuple(dict.fromkeys(self.get(target).id for target in supersedes))
        id = self.add(text, "correction")
        self._set_links(id, targets)
        return id

    def edit(self, id: str, text: str) -> None:
        """Replace a document's text; an untouched document becomes edited."""
        self._check_open()
        record = self.get(id)
        flag: Flag = "edited" if record.flag == "untouched" else record.flag
        self._put(msgspec.structs.replace(record, text=text, flag=flag))

    def delete(self, id: str) -> None:
        """Remove a document and every link from or to it."""
        self._check_open()
        record = self.get(id)
        for source in self.inbound(id):
            self._set_links(source, tuple(target for target in self._records[source].links if target != id))
        self._set_links(id, ())
        self._drop(record.id)

    def link(self, id: str, targets: Iterable[str]) -> tuple[Ids, Ids, Ids, bool]:
        """Link to every target that exists and is not linked yet.

        Return the linked, the unknown and the already linked targets, and True if the document itself is one.
        """
        self._check_open()
        record = self.get(id)
        present = dict.fromkeys(record.links)
        wanted = dict.fromkeys(targets)
        others = [target for target in wanted if target != id]
        known = [target for target in others if target in self._records]
        linked = tuple(target for target in known if target not in present)
        self._set_links(id, (*record.links, *linked))
        unknown = tuple(target for target in others if target not in self._records)
        return linked, unknown, tuple(target for target in known if target in present), id in wanted

    def unlink(self, id: str, target: str) -> None:
        """Remove a link; raise `Refused` if there is none."""
        self._check_open()
        record = self.get(id)
        if target not in record.links:
            raise Refused(f"{id} has no link to {_short(target)}.")
        self._set_links(id, tuple(other for other in record.links if other != target))

    def merge(self, survivor: str, other: str) -> None:
        """Merge one document into another, which keeps its text.

        The survivor absorbs the other's origins and outgoing links. Documents that linked to the other link to the
        survivor instead, at the same position, without duplicates or self-links.
        """
        self._check_open()
        kept, gone = self.get(survivor), self.get(other)
        if survivor == other:
            raise Refused(f"{survivor} cannot be merged with itself.")
        for source in self.inbound(other):
            moved = (survivor if target == other else target for target in self._records[source].links)
            self._set_links(source, tuple(dict.fromkeys(moved)))  # a self-link of the survivor is removed below
        united = dict.fromkeys((*self._records[survivor].links, *gone.links))
        self._set_links(other, ())
        self._set_links(survivor, tuple(target for target in united if target not in (survivor, other)))
        absorbed = tuple(dict.fromkeys(o for o in (*kept.absorbed, *gone.origins) if o != kept.origin))
        self._put(msgspec.structs.replace(self._records[survivor], absorbed=absorbed))
        self._drop(other)
        self.merges += 1

    def apply_import(
        self,
        removed: Iterable[str],
        edited: Iterable[tuple[str, str]],
        restored: Iterable[tuple[str, str]],
        added: Iterable[tuple[str, str]],
    ) -> None:
        """Apply changes of the user's own files. `edited`, `restored` and `added` map ids to their current text.

        A removed original is withdrawn from the document that carries it; its own document is deleted, any other stays.
        An edited document becomes an original again and drops absorbed origins, which applied to the old text. A
        restored original, merged or deleted before, becomes a document again. An added document is new.
        """
        self._check_open()
        carriers = self._carriers()
        for origin in removed:
            self._uncarry(carriers, origin)
            if carriers(origin) == origin:
                self.delete(origin)
            self.origins -= 1
        for id, text in edited:
            self._put(msgspec.structs.replace(self.get(id), text=text, flag="untouched", absorbed=()))
        for id, text in restored:
            self._uncarry(carriers, id)
            self._insert(id, text)
        for id, text in added:
            self._insert(id, text)
            self.origins += 1

    def _carriers(self) -> Callable[[str], str | None]:
        """Return a function from an origin to the document that carries it."""
        if self.layer is not None:
            return self.layer.carrier()
        return {origin: record.id for record in self for origin in record.origins}.get

    def _insert(self, id: str, text: str) -> None:
        if id in self._records:
            raise Refused(f"there is a document {_short(id)} already.")
        self._put(Record(id=id, text=text, origin=id))
        self._issued = max(self.issued, number_of(id) if self.coded else _number(id))

    def _uncarry(self, carriers: Callable[[str], str | None], origin: str) -> None:
        """Remove an absorbed origin from the document that carries it."""
        record = self._records.get(carriers(origin) or origin)
        if record is not None and origin in record.absorbed:
            kept = tuple(other for other in record.absorbed if other != origin)
            self._put(msgspec.structs.replace(record, absorbed=kept))

    def never_reissue(self, other: Store) -> Self:
        """Never issue an id that a later state of this store has issued."""
        self._issued = max(self.issued, other.issued)
        return self

    @property
    def issued(self) -> int:
        """Return the number of the last issued id."""
        if self.coded and not self._issued:
            self._issued = max(map(number_of, self._records), default=0)
        return self._issued

    # -- the only places that touch the state -------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.frozen:
            raise Refused("the store is frozen: it can be searched and read, not edited.")

    def _put(self, record: Record) -> None:
        """Insert or replace a record and update links, texts and the fingerprint."""
        old = self._records.get(record.id)
        if old is not None:
            self._sum -= weight(old)
        self._records[record.id] = record
        self._sum = (self._sum + weight(record)) % MODULUS
        if old is None or old.links is not record.links:
            before = () if old is None else old.links
            for target in set(before).difference(record.links):
                self._sources(target).pop(record.id)
            for target in record.links:
                self._sources(target)[record.id] = None
            self.links += len(record.links) - len(before)
        self._file(record.id, record)
        if self._by_text is not None and (old is None or old.text != record.text):
            if old is not None:
                self._forget_text(old)
            self._by_text.setdefault(normalised(record.text), {})[record.id] = None

    def _file(self, id: str, record: Record | None) -> None:
        """Update the ids of index documents and corrections."""
        for flag, ids in (self._leading or {}).items():
            if record is not None and record.flag == flag and (record.links or flag == "correction"):
                ids[id] = None
            else:
                ids.pop(id, None)

    def _sources(self, target: str) -> dict[str, None]:
        """Return the inbound links of a document for modification, copied if another store shares them."""
        if self._own is None:
            return self._inbound.setdefault(target, {})
        if target not in self._own:
            self._own.add(target)
            self._inbound[target] = dict(self._inbound.get(target, ()))
        return self._inbound[target]

    def _set_links(self, id: str, links: tuple[str, ...]) -> None:
        record = self._records[id]
        if links != record.links:
            self._put(msgspec.structs.replace(record, links=links))

    def _drop(self, id: str) -> None:
        """Remove a record that has no links left in either direction."""
        record = self._records.pop(id)
        self._sum = (self._sum - weight(record)) % MODULUS
        self._inbound.pop(id, None)
        self._file(id, None)
        if self._own is not None:
            self._own.discard(id)
        self._forget_text(record)

    def _forget_text(self, record: Record) -> None:
        """Remove a document from the index of texts."""
        if self._by_text is not None:
            key = normalised(record.text)
            self._by_text[key].pop(record.id)
            if not self._by_text[key]:
                del self._by_text[key]


def _number(id: str) -> int:
    """Return the number of an id that `add` could have issued, else 0."""
    digits = id[1:]
    return int(digits) if id[:1] == "n" and len(digits) < 19 and digits.isascii() and digits.isdecimal() else 0


def _short(id: str) -> str:
    """Return an id for a message, shortened and printable."""
    shown = id if len(id) <= 60 else id[:60] + "…"
    return shown if shown.isprintable() and shown else repr(shown)
