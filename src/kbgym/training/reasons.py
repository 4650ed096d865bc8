"""Lexical reasons for links: the words of a link target must show that it belongs under its source.

A link has a reason if its target contains the rarest word of its source ("baker" in "People whose job is baker"), or
names a person named by an original document with that word (the city of a baker, under the cities of bakers). A change
has a reason if every added link has one and no removed link had one. Only originals count as evidence, so that a
curator's text cannot justify a curator's links. The check asks no questions and is independent of the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbgym.store import Record, Store
from kbgym.store.guard import signature

WHOLE = 0.25  # minimum share of its candidates that a new index must link
_RARE = 4  # a word is rare if its frequency is at most this multiple of that of the rarest
_WORD = re.compile(r"[^\W_]{2,}")


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in lower case and singular: "friends" and "friend" are equal."""
    return frozenset(
        word[:-1] if len(word) > 3 and word[-1] == "s" else word for word in _WORD.findall(text.casefold())
    )


class Words:
    """An inverted index from words to originals, which `follow` updates to a store."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._holding: dict[str, set[str]] = {}

    def follow(self, store: Store) -> None:
        originals = {record.id: record.text for record in store if record.flag != "authored"}
        for id in [id for id, text in self._texts.items() if originals.get(id) != text]:
            for word in words_of(self._texts.pop(id)):
                self._holding[word].discard(id)
        for id, text in originals.items():
            if id not in self._texts:
                self._texts[id] = text
                for word in words_of(text):
                    self._holding.setdefault(word, set()).add(id)

    def rarest(self, text: str) -> list[str]:
        """Return the words of a text with the lowest document frequency above 0 among originals."""
        counts = {word: len(held) for word in words_of(text) if (held := self._holding.get(word))}
        return sorted(word for word, count in counts.items() if count == min(counts.values()))

    def candidates(self, text: str) -> set[str]:
        """Return the originals with every rare word of a text: about as many as belong under it, or more."""
        counts = {word: len(held) for word in words_of(text) if (held := self._holding.get(word))}
        rare = [word for word, count in counts.items() if count <= _RARE * min(counts.values())]
        return set.intersection(*(self._holding[word] for word in rare)) if rare else set()

    def speaks_for(self, source: str, target: str) -> bool:
        """Return True if the words show that a document `target` belongs under a document `source`."""
        rarest = self.rarest(source)
        if not words_of(target).isdisjoint(rarest):
            return True
        named = frozenset(signature(target)[0])
        between = {id for word in rarest for id in self._holding[word]}
        return any(len(named.intersection(signature(self._texts[id])[0])) > 1 for id in between)

    def unreasoned(self, before: Store, after: Store, touched: set[str]) -> Iterator[str]:
        """Yield the documents touched by a pass whose changes have no reason in their words."""
        for id in sorted(touched):
            was, now = (store[id] if id in store else None for store in (before, after))  # noqa: SIM401
            if was != now and not self._reasoned(was, now, before, after):
                yield id

    def _reasoned(self, was: Record | None, now: Record | None, before: Store, after: Store) -> bool:
        if was is not None and was.flag != "authored" and (now is None or now.text != was.text):
            return False
        held = {} if was is None else {id: self.speaks_for(was.text, before[id].text) for id in was.links}
        if now is None:
            return not any(held.values())
        if not now.links:
            return False
        if was is None and len(now.links) < WHOLE * len(self.candidates(now.text)):
            return False
        gone = [id for id in held if id not in now.links]
        fresh = [id for id in now.links if was is None or now.text != was.text or id not in held]
        return not any(held[id] for id in gone) and all(
            self.speaks_for(now.text, after[id].text) for id in fresh if id in after
        )
