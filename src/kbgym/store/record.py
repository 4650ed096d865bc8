"""Values and interfaces of a store: a document, counts, and a base that keeps the initial documents elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from kbgym.canonical import encode

MODULUS = 1 << 256  # a fingerprint is a sum of hashes, so it does not depend on the order of documents
Flag = Literal["untouched", "edited", "authored", "correction"]


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):  # holds only text
    """A document of a store. Agents see `text` and `links`; provenance is visible to the environment only.

    A correction is a document in a person's words that supersedes the documents it links to.

    Attributes:
        id: The id.
        text: The text.
        links: The documents it links to, in order.
        origin: The original fact that it represents; None if an agent wrote it.
        flag: `untouched`, `edited`, `authored` or `correction`.
        absorbed: The origins that merges folded into it.
    """

    id: str
    text: str
    links: tuple[str, ...] = ()
    origin: str | None = None
    flag: Flag = "untouched"
    absorbed: tuple[str, ...] = ()

    @property
    def origins(self) -> tuple[str, ...]:
        """Return the origins that this document carries."""
        return self.absorbed if self.origin is None else (self.origin, *self.absorbed)


def weight(record: Record) -> int:
    """Return a document's contribution to the fingerprint of its store: a hash of all its bytes."""
    return int.from_bytes(hashlib.sha256(encode(record)).digest(), "big")


def fingerprint_of(records: Iterable[Record]) -> str:
    """Return the fingerprint of a store of these documents without building the store."""
    return f"{sum(map(weight, records)) % MODULUS:064x}"


def source(id: str, text: str) -> Record:
    """Return a document of an initial store."""
    return Record(id=id, text=text, origin=id)


def normalised(text: str) -> str:
    """Return a text without case, extra white space and final full stops; equal results are the same sentence."""
    return " ".join(text.casefold().split()).rstrip(".")


class Tally(msgspec.Struct, frozen=True):
    """Counts of documents by flag, of carried origins, of origins with several documents, and of distinct texts."""

    untouched: int
    edited: int
    authored: int
    carried: int
    shared: int
    texts: int


class Counts(msgspec.Struct, frozen=True):
    """Totals over all documents of a store."""

    documents: int
    links: int
    origins: int
    issued: int
    coded: bool
    fingerprint: str
    tally: Tally


class Base(Protocol):
    """Initial documents kept by a backend. They never change and are numbered from 1."""

    @property
    def counts(self) -> Counts: ...

    def layer(self) -> Layer:
        """Return an empty layer of changes on top of these documents."""

    def indexes(
        self, gone: Sequence[str], changed: Sequence[tuple[str, str]], embedder: Any, search: Any, tick: Any = None
    ) -> Any:
        """Return an index of vectors and one of words (see `search`) over these documents and changes to them.

        `gone` are the ids of documents that were changed or removed, `changed` the texts of changed and new ids.
        """


class Layer(Protocol):
    """Changes on top of a base. Its mappings replace the dictionaries of a store and keep their order."""

    @property
    def base(self) -> Base: ...

    @property
    def records(self) -> MutableMapping[str, Record]: ...

    @property
    def inbound(self) -> MutableMapping[str, dict[str, None]]: ...

    def texts(self) -> MutableMapping[str, dict[str, None]]:
        """Return the documents by normalised text."""

    def copy(self) -> Layer: ...

    def fetch(self, ids: Iterable[str], texts: Iterable[str]) -> None:
        """Prefetch documents of the base with one query."""

    def prefetch(self, events: Sequence[Any]) -> None:
        """Prefetch the documents of the base that events of a trace name."""

    def since(self) -> tuple[list[str], list[Record]]:
        """Return the ids of the base that were changed or removed, and all changed and new documents."""

    def touched(self) -> set[str]:
        """Return the ids of documents that may differ from the base."""

    def carrier(self) -> Callable[[str], str | None]:
        """Return a function from an origin to the document that carries it."""

    def tally(self) -> Tally: ...
