"""New documents that belong under an index: by the index's own words, or by what most of its documents say.

A rule is only used where it describes the index as it stands: at least half of what the index links to fits it, and at
least half of what fits it is linked. So an index whose words say nothing about its documents gets no new ones. Nothing
is linked here; whoever asks decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from kbgym.store import Record, Store
from kbgym.worlds.world import Document

FITS = 0.5
LEAST_DOCUMENTS = 2  # of an index, for its own words to be a rule; for a rule by its documents one more
_WORD = re.compile(r"[^\W_]{2,}")
_SMALL = frozenset(
    "the an of in on at to for is are was were be been by with from as and or not it its this that which who what when"
    " where how all any every everything everyone about index list overview documents facts following see".split()
)


class Belongs(msgspec.Struct, frozen=True):
    """A new document, the index it belongs under, and by which rule."""

    index: str
    index_text: str
    document: str
    text: str
    by: Literal["words", "majority"]


def belonging(store: Store, added: Sequence[Document]) -> tuple[Belongs, ...]:
    """Where documents that are to be added belong; ask before they are."""
    if not added:
        return ()
    indexes = [record for record in store if record.flag == "authored" and len(record.links) >= LEAST_DOCUMENTS]
    rules = [(index, by, words) for index in indexes for by, words in _rules(store, index)]
    wanted = {word for _, _, words in rules for word in words}
    there = _postings(((record.id, record.text) for record in store if record.flag != "authored"), wanted)
    new = _postings(((document.id, document.text) for document in added), wanted)
    texts = {document.id: document.text for document in added}
    found: dict[tuple[str, str], Belongs] = {}
    for index, by, words in rules:
        fits = set.intersection(*(there.get(word, set()) for word in words))
        linked = fits & set(index.links)
        if len(linked) < FITS * len(index.links) or len(linked) < FITS * len(fits):
            continue
        for id in sorted(set.intersection(*(new.get(word, set()) for word in words))):
            found.setdefault((index.id, id), Belongs(index.id, index.text, id, texts[id], by))
    return tuple(found.values())


def _rules(store: Store, index: Record) -> Iterator[tuple[Literal["words", "majority"], frozenset[str]]]:
    """The words a document must have to belong under an index."""
    members = [store[id].text for id in index.links if store[id].flag != "authored"]
    counts = Counter(word for text in members for word in _telling(text))
    most = frozenset(word for word, count in counts.items() if 2 * count > len(members))
    own = _telling(index.text) & most
    if own and len(members) >= LEAST_DOCUMENTS:
        yield "words", own
    if len(most) > 1 and len(members) > LEAST_DOCUMENTS:
        yield "majority", most


def _telling(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _SMALL


def _postings(texts: Iterable[tuple[str, str]], wanted: set[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for id, text in texts:
        for word in _telling(text) & wanted:
            found.setdefault(word, set()).add(id)
    return found
