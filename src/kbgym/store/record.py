"""The value a store holds for each document: what agents see (text, links) and what the environment alone keeps."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import msgspec

from kbgym.canonical import encode

MODULUS = 1 << 256  # a fingerprint is a sum of hashes, so the order in which documents came does not count
Flag = Literal["untouched", "edited", "authored"]


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):  # it refers to nothing but text
    """One document.

    Agents see `text` and `links`. Provenance is the environment's: `origin` names the original fact the document
    stands for (none when an agent wrote it), `flag` says whether it was touched, `absorbed` lists the origins that
    merges folded into it.
    """

    id: str
    text: str
    links: tuple[str, ...] = ()
    origin: str | None = None
    flag: Flag = "untouched"
    absorbed: tuple[str, ...] = ()

    @property
    def origins(self) -> tuple[str, ...]:
        """Every original fact this document carries."""
        return self.absorbed if self.origin is None else (self.origin, *self.absorbed)


def weight(record: Record) -> int:
    """What a document adds to the fingerprint of its store: a hash of all its bytes."""
    return int.from_bytes(hashlib.sha256(encode(record)).digest(), "big")


def fingerprint_of(records: Iterable[Record]) -> str:
    """The fingerprint of a store of these documents, none of which is held."""
    return f"{sum(map(weight, records)) % MODULUS:064x}"


def source(id: str, text: str) -> Record:
    """A document as it stands in an initial store."""
    return Record(id=id, text=text, origin=id)
