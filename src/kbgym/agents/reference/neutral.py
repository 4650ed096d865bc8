"""Readers that do not know how anybody words an index: they open what promises something, and look at what is there.

They parse questions and search as the reference reader does, and differ in what they open and what they believe:
`trusting` opens whatever names the key and states no fact itself, and takes a set it finds there for whole; `sceptical`
does the same and pages on regardless; `first` looks at the first such result only; `overlap` opens the result that
shares most words with what was searched for. A number that holds with the reference reader alone says something about
that reader; one that holds with these too says something about the store.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from kbgym.actions import Action, Read
from kbgym.agents.reference.language import ATTRIBUTES, Fact, facts
from kbgym.agents.reference.reader import ReferenceReader, Shown
from kbgym.agents.reference.wording import query_for
from kbgym.agents.trust import NEUTRAL_READERS
from kbgym.naming import IndexKey
from kbgym.naming.relations import path
from kbgym.naming.words import telling, words_of
from kbgym.observations import documents


class TrustingReader(ReferenceReader):
    """Opens what names the key, and believes a set to be whole when most of what it finds there belongs to the key."""

    believes = True

    def _read_index(self, found: list[Shown], key: IndexKey) -> Generator[Action, str, list[Fact]]:
        if key.then or path(key.kind) is not None:  # an index of one step further cannot be told from any other
            return []
        for id in self._promising(found, key):
            self._read.add(id)
            stated = [fact for _, text in documents((yield Read(id)))[1:] for fact in self.memory.learn(text)]
            if self.believes and stated and 2 * sum(_is_under(fact, key) for fact in stated) >= len(stated):
                return stated
        return []

    def _promising(self, found: Sequence[Shown], key: IndexKey) -> Iterator[str]:
        value = telling(words_of(key.value))
        yield from (id for id, text in self._unread(found) if value <= telling(words_of(text)))

    def _unread(self, found: Sequence[Shown]) -> list[Shown]:
        """Results that are no facts: whatever they are, they may lead somewhere."""
        return [(id, text) for id, text in found if id not in self._read and not facts(text)]


class ScepticalReader(TrustingReader):
    """Opens what names the key, and pages on all the same."""

    believes = False


class FirstReader(TrustingReader):
    """Looks at the first result that is no fact, and at no other."""

    def _promising(self, found: Sequence[Shown], key: IndexKey) -> Iterator[str]:
        yield from (id for id, _ in self._unread(found)[:1])


class OverlapReader(TrustingReader):
    """Opens the result that is no fact and shares most words with what was searched for, if that is half of them."""

    def _promising(self, found: Sequence[Shown], key: IndexKey) -> Iterator[str]:
        searched = telling(words_of(query_for(key)))
        unread = self._unread(found)
        best = max(unread, key=lambda one: len(searched & telling(words_of(one[1]))), default=None)
        if best is not None and 2 * len(searched & telling(words_of(best[1]))) >= len(searched):
            yield best[0]


NEUTRAL = dict(zip(NEUTRAL_READERS, (TrustingReader, ScepticalReader, FirstReader, OverlapReader), strict=True))


def _is_under(fact: Fact, key: IndexKey) -> bool:
    """Whether a fact is one that an index of the key would have."""
    if key.kind in ATTRIBUTES:
        return fact.relation == key.kind and fact.value == key.value
    return key.value in (fact.subject, fact.value)
