"""The general reader: it answers from any text by following words and names, and knows no world and no arm.

It searches the question, opens what has links and promises the question's rare words, takes names that turned up and
were not in the question to the next search, and turns pages where nothing better is in sight. What a move is worth is
worked out from what was shown so far alone, so an index is opened for its words or its links, whoever wrote it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec

from kbgym.actions import Action, Answer, Read, Search
from kbgym.agents.general.answers import best_answer
from kbgym.agents.general.text import content_words, look_at, names
from kbgym.observations import documents, sizes
from kbgym.policy import Turn, View

ENOUGH = 0.12  # a move worth less than this is not made
_OPEN, _LINKED, _NAME, _PAGE = 1.0, 0.95, 0.75, 0.5  # how far kinds of moves are trusted


class Move(msgspec.Struct, frozen=True):
    """Something that could be done next, and what it promises."""

    action: Action
    worth: float


class GeneralReader:
    """One pass. Everything it knows comes from the turns of the view, so a pass that was cut short can be resumed."""

    def __init__(self) -> None:
        self._memory: ReaderMemory | None = None
        self._taken = 0

    async def act(self, view: View) -> Action:
        question = getattr(view.task, "question", "")
        if self._memory is None or self._taken > len(view.history):
            self._memory, self._taken = ReaderMemory(question), 0
        for turn in view.history[self._taken :]:
            self._memory.take(turn)
        self._taken = len(view.history)
        if view.remaining <= 1:
            return Answer(self._memory.answer())
        move = self._memory.best()
        if move is None or move.worth < ENOUGH:
            return Answer(self._memory.answer())
        return move.action


class ReaderMemory:
    """What one pass has seen, and what it could do next."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.wanted = dict.fromkeys(content_words(question))
        self._asked_names = [frozenset(content_words(name)) for name in names(question)]
        self.texts: dict[str, str] = {}  # documents by id, in the order they were shown
        self._links: dict[str, int] = {}  # how many links a document is said or seen to have
        self._below: dict[str, list[str]] = {}  # what a document that was opened links to
        self._above: dict[str, str] = {}  # the document through which one was first shown
        self._pages: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._opened: set[str] = set()
        self._marked = False  # whether sizes are shown at all
        self._holding: Counter[str] = Counter()

    # -- taking in ----------------------------------------------------------------------------------------------------

    def take(self, turn: Turn) -> None:
        shown = documents(turn.observation)
        marks = sizes(turn.observation)
        self._marked = self._marked or bool(marks)
        match turn.action:
            case Search(query, page):
                self._pages[query] = max(self._pages[query], page)
                if not shown or "results end" in turn.observation:
                    self._ended.add(query)
            case Read(id):
                self._opened.add(id)
                self._below[id] = [target for target, _ in shown[1:]]
                self._links[id] = len(shown) - 1
                for target in self._below[id]:
                    if target not in self.texts:
                        self._above.setdefault(target, id)
        self._links.update({id: marks[id] for id, _ in shown if id in marks})
        for id, text in shown:
            if id not in self.texts:
                self._holding.update(look_at(text).words)
            self.texts[id] = text

    def weight(self, word: str) -> float:
        """How much a word tells: the fewer of the documents seen hold it, the more."""
        return math.log1p((len(self.texts) + 1) / (self._holding[word] + 0.5))

    def relevance(self, words: Iterable[str]) -> float:
        """The share of the question's words, by what they tell, that a text holds."""
        total = sum(self.weight(word) for word in self.wanted)
        return sum(self.weight(word) for word in self.wanted if word in words) / total if total else 0.0

    # -- moves --------------------------------------------------------------------------------------------------------

    def best(self) -> Move | None:
        moves = [*self._openings(), *self._name_searches(), *self._further_pages()]
        return max(moves, key=lambda move: move.worth, default=None)

    def _likely_links(self, id: str) -> float:
        """How likely a document has links worth opening."""
        if id in self._links:
            return 1.0 if self._links[id] else 0.0
        if self._marked:
            return 0.0
        text = self.texts[id]
        return 0.5 if len(text.split()) <= 8 and ": " not in text else 0.05

    def _openings(self) -> Iterable[Move]:
        for id, text in self.texts.items():
            if id in self._opened:
                continue
            likely = self._likely_links(id)
            if not likely:
                continue
            seen = look_at(text)
            own = self.relevance(seen.words)
            through = 0.0
            if (above := self._above.get(id)) is not None:  # named by a document that was opened
                through = _LINKED * self._promise(above, seen.words)
            yield Move(Read(id), likely * max(_OPEN * own, through, self._named(id)))

    def _promise(self, above: str, words: frozenset[str]) -> float:
        """What a linked document promises: as much as the sentence that names it is about the question."""
        around = [look_at(self.texts[id]).words for id in (above, *self._below.get(above, ())) if id in self.texts]
        naming = [self.relevance(text) for text in around if words and words <= text and text != words]
        return max(naming, default=0.5 * self.relevance(look_at(self.texts[above]).words))

    def _named(self, id: str) -> float:
        """What a document promises that is named, word for word, in documents about the question."""
        words = look_at(self.texts[id]).words
        if not words or len(words) > 8:
            return 0.0
        naming = (
            self.relevance(seen.words)
            for other, text in self.texts.items()
            if other != id and words <= (seen := look_at(text)).words
        )
        return 0.8 * max(naming, default=0.0)

    def _name_searches(self) -> Iterable[Move]:
        """Names that turned up in relevant documents and were not in the question."""
        tried = [frozenset(content_words(query)) for query in self._pages]
        best: dict[str, float] = {}
        for text in self.texts.values():
            seen = look_at(text)
            about = self.relevance(seen.words)
            for name in seen.names[:6]:
                words = frozenset(content_words(name))
                if words and not any(words <= asked for asked in self._asked_names):
                    best[name] = max(best.get(name, 0.0), about)
        for name, about in sorted(best.items(), key=lambda item: (-item[1], item[0]))[:8]:
            words = frozenset(content_words(name))
            if any(words <= query for query in tried):
                continue
            known = sum(words <= look_at(text).words for text in self.texts.values())
            query = " ".join([name, *self._left(words)])
            yield Move(Search(query), _NAME * about / (1.0 + 0.15 * known))

    def _left(self, words: frozenset[str]) -> list[str]:
        """The question's words that are still to be found once its first documents are: those the best one lacks."""
        if not self.texts:
            return []
        top = max(self.texts.values(), key=lambda text: self.relevance(look_at(text).words))
        held = look_at(top).words | words
        return [word for word in self.wanted if word not in held][:6]

    def _further_pages(self) -> Iterable[Move]:
        if not self._pages:
            yield Move(Search(self.question), 1.0)
            return
        for query, page in self._pages.items():
            if query not in self._ended:
                trust = 1.0 if query == self.question else 0.6
                yield Move(Search(query, page + 1), _PAGE * trust / page)

    # -- answering ----------------------------------------------------------------------------------------------------

    def answer(self) -> str:
        ranked = sorted(self.texts.values(), key=lambda text: -self.relevance(look_at(text).words))
        return best_answer(self.question, ranked)
