"""The state of one pass of the general reader: documents seen, the belief that each is evidence, pages and links.

Belief depends only on what was shown. For results of the question itself the rank counts most; for documents found by
a name or a link, the share of the question's words in the document and in the words that led there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set
from math import prod
from textwrap import shorten

import msgspec

from kbgym.agents.general.text import content_words, names, split_title, word_set
from kbgym.gym.actions import Read, Search
from kbgym.gym.observations import HEADING, documents
from kbgym.gym.policy import Turn
from kbgym.gym.tools import PAGE_SIZE

_NAME_WORD = 2.0  # weight of a name, number or identifier of the question relative to other words
_BEST, _FALLS = 0.7, 3.0  # belief in the first result for the question, and the rank at which it is halved
_FOUND = 0.35  # belief in the first result for a name
_LINKED = 0.5  # share of the belief in a document that is divided among the pages it links to
_LIKELIEST = 3  # number of documents considered together
_WORDS = 0.3  # belief in a document that contains the whole question, however it was found
_LEARNT = 0.9  # belief in a document learnt from a question with all words of this one
_FITS = 0.5  # minimum belief for precedence over other documents
_SENTENCE = 150  # characters
_SAID = 0.75  # belief in a heading whose words are all in the question, whatever its rank


class SeenDocument(msgspec.Struct):
    """A document as far as it was shown. `links` is None if the number of its links is unknown."""

    id: str
    text: str
    title: str
    words: frozenset[str]
    belief: float
    rank: int = 0  # rank for the question, from 1; 0 if found otherwise
    links: int | None = None
    opened: bool = False
    pages: int = 0  # of its links that were read
    learnt: bool = False  # shown because a similar question led to it
    targets: tuple[str, ...] = ()  # texts of its links, once it was opened

    @property
    def is_heading(self) -> bool:
        """Return True if a document is worded like an index: it has no title and is not a sentence."""
        return not self.title and self.text[-1:] not in ".!?"


class ReaderMemory:
    """Everything seen so far, updated turn by turn."""

    def __init__(self, question: str) -> None:
        self.question = question
        named = {word for name in names(question) for word in content_words(name)}
        self.wanted = {
            word: _NAME_WORD if word in named or re.search(r"\d", word) else 1.0 for word in content_words(question)
        }
        self._total = sum(self.wanted.values()) or 1.0
        self.seen: dict[str, SeenDocument] = {}  # by id, in the order shown
        self.pages: Counter[str] = Counter()  # of queries
        self.ended: set[str] = set()
        self.by_title: dict[str, list[SeenDocument]] = {}
        self.doubt = 1.0  # probability that no opened document is the one sought
        self._read: set[str] = set()  # words of the opened documents and their links
        self.actions = 0
        self.slot: SeenDocument | None = None  # the index of the question's reserved slot
        self.marked = False  # True if observations show how many links a document has

    def relevance(self, words: Set[str]) -> float:
        """Return the weighted share of the question's words among these."""
        return sum(worth for word, worth in self.wanted.items() if word in words) / self._total

    @property
    def missing(self) -> float:
        """Return the probability that more evidence is to be found; lower if opened documents cover the question."""
        return 1.0 - (1.0 - self.doubt) * self.relevance(self._read)

    @property
    def length(self) -> float:
        """Return the length of the documents seen, in sentences; at least 1."""
        lengths = [len(one.text) for one in self.seen.values()]
        return max(1.0, sum(lengths) / len(lengths) / _SENTENCE) if lengths else 1.0

    @property
    def held(self) -> float:
        """Return the share of the question that the likeliest documents cover together."""
        return self.relevance(frozenset().union(*(one.words for one in self.ranked()[:_LIKELIEST])))

    def take(self, turn: Turn) -> None:
        self.actions += 1
        shown = documents(turn.observation)
        marks = {one.id: one.links for one in turn.observation.documents if one.links}
        self.marked = self.marked or bool(marks)
        match turn.action:
            case Search(query, page):
                self.pages[query] = max(self.pages[query], page)
                if len(shown) < PAGE_SIZE:
                    self.ended.add(query)
                slot = shown[PAGE_SIZE:] if page == 1 else []
                if slot:
                    self._learnt(slot, turn.observation.documents[PAGE_SIZE].links, query == self.question)
                for place, (id, text) in enumerate(shown[: len(shown) - len(slot)], (page - 1) * PAGE_SIZE):
                    if query == self.question:
                        self._show(id, text, _BEST / (1.0 + ((place + 1) / _FALLS) ** 2), place + 1)
                    else:
                        # found by a name: the first result, or one that matches the question
                        fit = self.relevance(word_set(text)) ** 2
                        self._show(id, text, _FOUND / (place + 1) + _WORDS * fit)
            case Read(id, page) if shown:
                self._open(id, shown, page)
        for id, _ in shown:
            if id in marks:
                self.seen[id].links = marks[id]

    def _learnt(self, slot: list[tuple[str, str]], links: int | None, own: bool) -> None:
        """Record the reserved slot of the question's `own` search, or of another: an index, then its first targets."""
        (index, whole), *targets = slot
        heading = shorten(whole, HEADING, placeholder=" …")  # as much as the slot shows
        value = content_words(heading.partition(". ")[0].partition(": ")[2])
        fits = bool(value) and {*value} <= self.wanted.keys()  # the index of a value in the question
        self._show(index, heading, _SAID if fits else _LEARNT * self.relevance(word_set(heading)))
        above = self.seen[index]
        self.doubt *= 1.0 - above.belief
        self._read.update(above.words, *(word_set(text) for _, text in targets))
        above.links, above.targets = links, tuple(text for _, text in targets)
        above.opened = links is not None and links <= PAGE_SIZE  # all of its links were shown
        self.slot = self.slot or (above if own else None)
        for id, text in targets:
            self._show(id, text, above.belief)
            self.seen[id].learnt = above.belief >= _FITS

    def _open(self, id: str, shown: list[tuple[str, str]], page: int) -> None:
        first, *linked = shown
        if id not in self.seen:
            self._show(id, first[1], 0.0)
        above = self.seen[id]
        above.targets = (*(above.targets if page > 1 else ()), *(text for _, text in linked))
        above.opened, above.pages, above.links = True, page, len(above.targets)
        belief = self.page_belief(above)
        if linked:
            self.doubt *= 1.0 - 0.5 * belief
            self._read.update(*(word_set(text) for _, text in shown))
        far = [text for _, text in linked if not above.title or split_title(text)[0] != above.title]
        for target, text in linked:
            led = _LINKED * belief / len(far) if text in far else 0.0
            self._show(target, text, led + _WORDS * self.relevance(word_set(text)) ** 2)

    def _show(self, id: str, text: str, belief: float, rank: int = 0) -> None:
        known = self.seen.get(id)
        if known is not None:
            known.belief = max(known.belief, belief)
            known.rank = known.rank or rank
            return
        made = self.seen[id] = SeenDocument(id, text, split_title(text)[0], word_set(text), belief, rank)
        if made.is_heading and made.words and made.words <= self.wanted.keys():
            made.belief = max(belief, _SAID)
        if made.title:
            self.by_title.setdefault(made.title, []).append(made)

    def page_belief(self, document: SeenDocument) -> float:
        """Return the belief in a document's page, which grows with the number of its documents seen."""
        beside = self.by_title.get(document.title, ()) if document.title else ()
        return 1.0 - prod(1.0 - one.belief for one in beside or (document,))

    def was_opened(self, title: str) -> int:
        """Return the number of opened documents of a page."""
        return sum(one.opened for one in self.by_title.get(title, ()))

    def listed(self) -> int:
        """Return the number of documents of the likeliest opened index that contain the question's other names.

        An index has no page of its own: the sentences of a page are not a list to count.
        """
        index = next((one for one in self.ranked() if one.targets and not one.title), None)
        if index is None:
            return 0
        asked = [words for name in names(self.question) if not (words := word_set(name)) <= index.words]
        return sum(any(words <= word_set(text) for words in asked) or not asked for text in index.targets)

    def ranked(self) -> list[SeenDocument]:
        return sorted(self.seen.values(), key=lambda one: (-one.belief, one.id))
