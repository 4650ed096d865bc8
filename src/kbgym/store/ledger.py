"""The ledger: exact counts over provenance, in one pass over the store.

What it counts, and what it cannot know: an origin is *alive* while some document carries it (as its own origin or
absorbed by a merge). Editing a document does not lose its origin, even if the new text says something else: what a
sentence says is not a count. An origin is lost when the last document carrying it is deleted.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from kbgym.store.store import Store, normalised


class Ledger(msgspec.Struct, frozen=True):
    """Integer-exact: `untouched + edited + authored == documents`, `lost_origins + alive == origins`."""

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
    """Count everything.

    `duplicated_origins`: origins carried by more than one document. `orphans`: authored documents with no link in or
    out. `empty_indexes`: authored documents with no outgoing link. `same_texts`: documents whose normalised text
    another document already has.
    """
    flags = Counter(record.flag for record in store)
    carried = Counter(origin for record in store for origin in record.origins)
    authored = [record for record in store if record.flag == "authored"]
    return Ledger(
        documents=len(store),
        links=store.links,
        origins=store.origins,
        lost_origins=store.origins - len(carried),
        duplicated_origins=sum(count > 1 for count in carried.values()),
        untouched=flags["untouched"],
        edited=flags["edited"],
        authored=flags["authored"],
        merged=store.merges,
        orphans=sum(not record.links and not store.inbound(record.id) for record in authored),
        empty_indexes=sum(not record.links for record in authored),
        same_texts=len(store) - len({normalised(record.text) for record in store}),
    )
