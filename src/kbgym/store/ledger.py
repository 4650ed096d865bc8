"""The provenance ledger: exact counts, computed in one pass over the store or over the changes to a base.

An origin is *alive* while a document carries it, as its own origin or absorbed by a merge, and lost when the last such
document is deleted. Editing a document does not lose its origin, even if the new text says something else.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from kbgym.store.record import Counts, Tally, normalised
from kbgym.store.store import Store


class Ledger(msgspec.Struct, frozen=True):
    """Exact counts: `untouched + edited + authored == documents`, `lost_origins + alive == origins`.

    Attributes:
        documents: Documents in the store.
        links: Links between them.
        origins: Original documents.
        lost_origins: Originals that no document carries or has absorbed.
        duplicated_origins: Originals that several documents carry.
        untouched: Documents as imported.
        edited: Imported documents whose text was changed.
        authored: Documents that agents wrote.
        merged: Documents folded into others as duplicates.
        orphans: Authored documents without a link in or out.
        empty_indexes: Authored documents without an outgoing link.
        same_texts: Documents whose normalised text another document has too.
    """

    documents: int
    links: int
    origins: int
    lost_origins: int
    duplicated_origins: int
    untouched: int
    edited: int
    authored: int
    merged: int
    orphans: int
    empty_indexes: int
    same_texts: int


def ledger(store: Store) -> Ledger:
    """Return the ledger of a store."""
    counted, authored = tally(store), store.authored()
    return Ledger(
        documents=len(store),
        links=store.links,
        origins=store.origins,
        lost_origins=store.origins - counted.carried,
        duplicated_origins=counted.shared,
        untouched=counted.untouched,
        edited=counted.edited,
        authored=counted.authored,
        merged=store.merges,
        orphans=sum(not record.links and not store.inbound(record.id) for record in authored),
        empty_indexes=sum(not record.links for record in authored),
        same_texts=len(store) - counted.texts,
    )


def counts_of(store: Store) -> Counts:
    """Return the totals that a base of these documents would report."""
    return Counts(len(store), store.links, store.origins, store.issued, store.coded, store.fingerprint, tally(store))


def tally(store: Store) -> Tally:
    """Count all documents, or only the changes to a base."""
    if store.layer is not None:
        return store.layer.tally()
    flags, carried, texts = Counter[str](), Counter[str](), set[str]()
    for record in store:
        flags[record.flag] += 1
        carried.update(set(record.origins))
        texts.add(normalised(record.text))
    shared = sum(count > 1 for count in carried.values())
    authored = flags["authored"] + flags["correction"]
    return Tally(flags["untouched"], flags["edited"], authored, len(carried), shared, len(texts))
