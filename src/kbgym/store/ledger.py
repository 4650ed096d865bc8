"""The ledger: exact counts over provenance, in one pass over the store, or over what was changed of a base.

What it counts, and what it cannot know: an origin is *alive* while some document carries it (as its own origin or
absorbed by a merge). Editing a document does not lose its origin, even if the new text says something else: what a
sentence says is not a count. An origin is lost when the last document carrying it is deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from kbgym.store.base import Base, Counts, Tally
from kbgym.store.record import Record
from kbgym.store.store import Store, normalised

_AT_ONCE = 5_000  # names


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
    """What whoever keeps these documents as a base has to know of them."""
    return Counts(len(store), store.links, store.origins, store.issued, store.coded, store.fingerprint, tally(store))


def tally(store: Store) -> Tally:
    """Counted from beginning to end; over a base, what was changed is counted on top of the base's own."""
    if store.base is not None:
        return _tally_since(store, store.base)
    flags, carried, texts = Counter[str](), Counter[str](), set[str]()
    for record in store:
        flags[record.flag] += 1
        carried.update(_origins(record))
        texts.update(_text(record))
    shared = sum(count > 1 for count in carried.values())
    return Tally(flags["untouched"], flags["edited"], flags["authored"], len(carried), shared, len(texts))


def _tally_since(store: Store, base: Base) -> Tally:
    touched, now = store.since_base()
    before: list[Record] = []
    for some in _some(touched):
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

    carried, shared = _moved(before, now, _origins, carriers)
    texts, _ = _moved(before, now, _text, sayers)
    then = base.counts.tally
    return Tally(
        then.untouched + flags["untouched"],
        then.edited + flags["edited"],
        then.authored + flags["authored"],
        then.carried + carried,
        then.shared + shared,
        then.texts + texts,
    )


def _moved(
    before: Iterable[Record],
    now: Iterable[Record],
    names_of: Callable[[Record], set[str]],
    held: Callable[[list[str]], list[int]],
) -> tuple[int, int]:
    """How many names more some document has than in the base, and how many more several have; `held` says how many of
    the base's documents have each."""
    change = Counter(name for record in now for name in names_of(record))
    change.subtract(name for record in before for name in names_of(record))
    any_more = several_more = 0
    for names in _some([name for name, by in change.items() if by]):
        for name, then in zip(names, held(names), strict=True):
            there = then + change[name]
            any_more += (there > 0) - (then > 0)
            several_more += (there > 1) - (then > 1)
    return any_more, several_more


def _origins(record: Record) -> set[str]:
    return set(record.origins)


def _text(record: Record) -> set[str]:
    return {normalised(record.text)}


def _some(every: list[str]) -> Iterator[list[str]]:
    """What a base is asked for at a time."""
    return (every[start : start + _AT_ONCE] for start in range(0, len(every), _AT_ONCE))
