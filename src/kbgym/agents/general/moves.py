"""The next moves of the general reader, each with the probability that it shows new evidence.

The constants are shares measured on two public data sets, rounded; their order matters more than the exact values.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kbgym.agents.general.fields import fields_of
from kbgym.agents.general.seen import ReaderMemory, SeenDocument
from kbgym.agents.general.text import telling_names, word_set
from kbgym.gym.actions import Action, Read, Search
from kbgym.gym.tools import PAGE_SIZE

ENOUGH = 0.12  # minimum promise of a move
LONG = 8  # number of actions from which promises shrink as the likeliest documents cover the question
PASSAGE = 2.0  # mean sentences per document above which documents count as passages
LEFT = 1.7  # from then on, the factor is this minus the covered share, at most 1
NEXT_PAGE, _PAGES_FALL = 0.45, 4.0  # promise of the question's second page, and of the page at which it is halved
_TOP = 3
OPEN = 0.8  # share of the belief in the page of a document with links
FIELD = 0.5  # the same for a field, whose only link is its value's page
AGAIN = 0.1  # factor for each document of the page opened before
NAME = 0.45  # share of the belief in the document that contains a name
TITLE = 0.3
_BLIND = 0.9  # probability that a heading has links, if link counts are not shown
_MOST_NAMES = 6
_MOST_DOCUMENTS = 10
_MOST_HEADING = 12


class Move(msgspec.Struct, frozen=True):
    """A possible next action and its promise."""

    action: Action
    worth: float

    @property
    def opens(self) -> bool:
        return isinstance(self.action, Read)


def best_move(memory: ReaderMemory) -> Move | None:
    """Return the most promising move above the threshold; opening likely documents comes before other searches."""
    chosen = max(moves(memory), key=lambda move: move.worth * (1.0 if move.opens else memory.doubt), default=None)
    if chosen is None:
        return None
    promised = chosen.worth * (1.0 if chosen.opens else memory.missing)
    if memory.actions >= LONG:
        promised *= min(1.0, LEFT - memory.held)
    if memory.length > PASSAGE:  # a page of passages shows as much as several pages of sentences
        promised *= min(1.0, LONG / (memory.actions * memory.length))
    return chosen if promised >= ENOUGH else None


def moves(memory: ReaderMemory) -> Iterator[Move]:
    if not memory.pages:
        yield Move(Search(memory.question), 1.0)
        return
    yield from _pages(memory)
    yield from _openings(memory)
    yield from _names(memory)


def _pages(memory: ReaderMemory) -> Iterator[Move]:
    """Yield the question's next page, which is worth more while the last page still showed the highest-ranked pages."""
    page = memory.pages[memory.question]
    if memory.question in memory.ended:
        return
    found = [one for one in memory.seen.values() if one.rank]
    top = {one.title for one in found if one.rank <= _TOP and not memory.was_opened(one.title)}
    again = sum(one.title in top for one in found if one.rank > max(_TOP, (page - 1) * PAGE_SIZE)) if page > 1 else 0
    falling = NEXT_PAGE / (1.0 + (page / _PAGES_FALL) ** 2) * (1.0 + 0.5 * min(again, 2))
    yield Move(Search(memory.question, page + 1), falling)


def _openings(memory: ReaderMemory) -> Iterator[Move]:
    for one in memory.seen.values():
        if one.pages and (one.links or 0) > len(one.targets):
            yield Move(Read(one.id, one.pages + 1), OPEN * one.belief)
        if one.opened or not (likely := _has_links(memory, one)):
            continue
        of = FIELD if one.links == 1 and fields_of(one.text) else OPEN
        yield Move(Read(one.id), likely * of * AGAIN ** memory.was_opened(one.title) * memory.page_belief(one))


def _has_links(memory: ReaderMemory, one: SeenDocument) -> float:
    if one.links is not None:
        return 1.0 if one.links else 0.0
    if memory.marked:
        return 0.0
    return _BLIND if one.is_heading and len(one.text.split()) <= _MOST_HEADING else 0.0


def _names(memory: ReaderMemory) -> Iterator[Move]:
    """Yield a search for the best name that is in believed documents or is their title, and not in the question."""
    tried = [word_set(query) for query in memory.pages if query != memory.question]
    ranked = memory.ranked()
    best: dict[str, float] = {}
    for one in ranked[:_MOST_DOCUMENTS]:
        for name in telling_names(one.text, _MOST_NAMES):
            if not _is_known(name, one, memory):
                best[name] = max(best.get(name, 0.0), NAME * one.belief)
        if one.title and not memory.was_opened(one.title):
            best[one.title] = max(best.get(one.title, 0.0), TITLE * one.belief)
    for name in sorted(best, key=lambda name: -best[name]):
        words = word_set(name)
        if words and not any(words <= query for query in tried):
            held = words | ranked[0].words
            left = [word for word in memory.wanted if word not in held][:_MOST_NAMES]
            yield Move(Search(name if name in memory.by_title else " ".join([name, *left])), best[name])
            return


def _is_known(name: str, one: SeenDocument, memory: ReaderMemory) -> bool:
    """Return True if the question contains a name, or the document's page is about it."""
    words = word_set(name)
    return memory.wanted.keys() >= words or 2 * len(words & word_set(one.title)) >= len(words)
