"""The value a store holds for each document: what agents see (text, links) and what the environment alone keeps."""

from __future__ import annotations

from typing import Literal

import msgspec

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


def source(id: str, text: str) -> Record:
    """A document as it stands in an initial store."""
    return Record(id=id, text=text, origin=id)
