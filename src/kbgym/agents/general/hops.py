"""Where an answer stands: which pages a question and its gold lead over, worked out from texts that were seen.

The pages a question names are its beginning, the document that states the gold is its end, and what lies between is a
page that the beginning names and the end knows. It knows no grammar and is given no supports; where it cannot tell, it
names fewer pages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from kbgym.agents.general.keys import (
    bare,
    cased,
    field_of,
    holds,
    is_statement,
    label_words,
    names_in,
    page_of,
    plain,
)
from kbgym.agents.general.text import content_words, look_at
from kbgym.gym.observations import documents
from kbgym.gym.policy import Turn

_SAYS_LITTLE = frozenset("yes no true false both neither none unknown".split())
MOST_PAGES = 5
SHARED_BY = 3  # pages that have a label before it is a field


class Findings:
    """Documents that were seen, with when; what of a question they hold."""

    def __init__(self, question: str, golds: Sequence[str]) -> None:
        self.question = question
        self.wanted = dict.fromkeys(content_words(question))
        self.asked_names = [name for name in names_in(question) if content_words(name)]
        self.golds = [gold for gold in golds if tells(gold)]
        self.texts: dict[str, str] = {}
        self.first: dict[str, int] = {}
        self._holding: Counter[str] = Counter()
        self._turns = 0

    def take(self, turn: Turn) -> None:
        self._turns += 1
        self.see(documents(turn.observation))

    def see(self, shown: Iterable[tuple[str, str]]) -> None:
        for id, text in shown:
            if id not in self.texts:
                self._holding.update(look_at(text).words)
                self.first[id] = self._turns
            self.texts[id] = text

    def weight(self, word: str) -> float:
        return math.log1p((len(self.texts) + 1) / (self._holding[word] + 0.5))

    def relevance(self, words: Iterable[str]) -> float:
        """The share of the question's words, by what they tell, among these."""
        total = sum(map(self.weight, self.wanted))
        held = frozenset(words)
        return sum(self.weight(word) for word in self.wanted if word in held) / total if total else 0.0

    def has_gold(self, text: str) -> bool:
        return any(holds(text, gold) for gold in self.golds)

    # -- pages --------------------------------------------------------------------------------------------------------

    def pages(self) -> dict[str, list[str]]:
        """The documents seen of every page, in the order they were seen; indexes are of no page."""
        found: dict[str, list[str]] = {}
        for id, text in self.texts.items():
            if (page := page_of(text)) and is_statement(text):
                found.setdefault(page, []).append(id)
        return found

    def named(self, pages: Iterable[str]) -> list[str]:
        """The pages the question names, those it names in more words first; a name inside another is not meant."""
        asked = cased(self.question)
        found: list[str] = []
        for page in sorted(pages, key=lambda page: (-len(cased(bare(page))), page)):
            words = cased(bare(page))
            if words in asked and content_words(page):
                found.append(page)
                asked = asked.replace(words, "  ", 1)
        return found

    def field(self) -> str | None:
        """The field a question is about as a whole: it has the label's words and names no page that has the field."""
        having: dict[str, set[str]] = {}
        for text in self.texts.values():
            if label := field_of(text):
                having.setdefault(label, set()).add(page_of(text))
        fitting = [
            label
            for label, pages in having.items()
            if len(pages) >= SHARED_BY and set(label_words(label)) & self.wanted.keys() and not self.named(pages)
        ]
        held = {label: set(label_words(label)) & self.wanted.keys() for label in fitting}
        return max(fitting, key=lambda label: (sum(map(self.weight, held[label])), label), default=None)

    def hops(self) -> list[str]:
        """The pages that lead to the gold, beginning first."""
        pages = self.pages()
        best = {page: max(map(self.worth, ids)) for page, ids in pages.items()}
        chosen = self.named(pages)[:MOST_PAGES]
        if not chosen and best:
            chosen = [max(best, key=lambda page: (best[page], page))]
        if (end := self._end(chosen, pages)) and end not in chosen:
            if not self._is_tied(end, chosen, pages) and (middle := self._between(chosen, end, pages, best)):
                chosen.append(middle)
            chosen.append(end)
        for name in self.asked_names:  # one that has no page of its own stands on somebody else's
            if not any(holds(self.texts[id], name) for page in chosen for id in pages[page]):
                of = [page for page in pages if any(holds(self.texts[id], name) for id in pages[page])]
                worth = {page: best[page] + self._tie(page, chosen, pages) for page in of}
                chosen += sorted(worth, key=lambda page: (-worth[page], page))[:1]
        chosen += [page for page in pages if page not in chosen and self.is_gold(page)][:1]
        return chosen[:MOST_PAGES]

    def worth(self, id: str) -> float:
        """What a document has of the question and of its gold."""
        text = self.texts[id]
        return self.relevance(look_at(text).words) + 0.5 * self.has_gold(text)

    def speaks(self, id: str) -> bool:
        """Whether a document has a word of the question beside its page's title, or the gold."""
        text = self.texts[id]
        own = frozenset(content_words(page_of(text)))
        return self.has_gold(text) or any(word in look_at(text).words and word not in own for word in self.wanted)

    def is_gold(self, page: str) -> bool:
        """Whether a page is what was asked for."""
        return any(plain(bare(page)) == plain(gold) for gold in self.golds)

    def _end(self, chosen: Sequence[str], pages: dict[str, list[str]]) -> str | None:
        """The page that states the gold; of several, one that is about the question and tied to its beginning."""
        ends = {
            page: max(self.worth(id) for id in ids if self.has_gold(self.texts[id]))
            for page, ids in pages.items()
            if any(self.has_gold(self.texts[id]) for id in ids)
        }
        if any(page in ends for page in (chosen[1:] or chosen)):
            return None
        worth = {page: share + self._tie(page, chosen, pages) for page, share in ends.items()}
        return max(worth, key=lambda page: (worth[page], page), default=None)

    def _is_tied(self, page: str, chosen: Sequence[str], pages: dict[str, list[str]]) -> bool:
        return self._tie(page, chosen, pages) >= 0.5

    def _names(self, page: str, other: str, pages: dict[str, list[str]]) -> bool:
        """Whether a document of one page names another page."""
        return any(holds(self.texts[id], bare(other)) for id in pages.get(page, ()))

    def _tie(self, page: str, chosen: Sequence[str], pages: dict[str, list[str]]) -> float:
        """Whether a page and those chosen name each other, or a name in common."""
        if any(self._names(one, page, pages) or self._names(page, one, pages) for one in chosen if one != page):
            return 0.5
        mine = {name for id in pages[page] for name in names_in(self.texts[id])}
        theirs = {name for one in chosen for id in pages.get(one, ()) for name in names_in(self.texts[id])}
        return 0.25 if any(len(name) > 4 for name in mine & theirs) else 0.0

    def _between(
        self, chosen: Sequence[str], end: str, pages: dict[str, list[str]], best: dict[str, float]
    ) -> str | None:
        fitting = [
            page
            for page in pages
            if page not in (*chosen, end)
            and any(self._names(one, page, pages) for one in chosen)
            and (self._names(page, end, pages) or self._names(end, page, pages))
        ]
        return max(fitting, key=lambda page: (best[page], page), default=None)


def tells(gold: str) -> bool:
    """Whether a gold can be looked for: yes, no and a small number stand everywhere."""
    words = plain(gold).split()
    return bool(words) and len("".join(words)) > 2 and words[0] not in _SAYS_LITTLE
