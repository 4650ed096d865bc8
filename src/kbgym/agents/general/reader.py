"""The general reader: answers from any text by following words, names and links, independently of world and arm.

It searches the question, opens what has links and is likely evidence, searches for names that turned up and were not in
the question, and reads further pages if no other move promises more. Documents learnt from a similar question are used
first. The promise of a move depends only on what was shown so far, so indexes of any author are opened for their
words or their links.
"""

from __future__ import annotations

from kbgym.agents.general.answers import asks_for, best_answer, listed_answer, record_value
from kbgym.agents.general.fields import Field, page_of
from kbgym.agents.general.moves import best_move
from kbgym.agents.general.pointers import follow, label_of
from kbgym.agents.general.seen import ReaderMemory
from kbgym.agents.general.text import content_words
from kbgym.gym.actions import Action, Answer
from kbgym.gym.policy import View


class GeneralReader:
    """One pass. Its state follows from the turns of the view, so an interrupted pass can be resumed."""

    def __init__(self) -> None:
        self._memory: ReaderMemory | None = None
        self._taken = 0

    async def act(self, view: View) -> Action:
        if self._memory is None or self._taken > len(view.history):
            self._memory, self._taken = ReaderMemory(view.task.question), 0
        for turn in view.history[self._taken :]:
            self._memory.take(turn)
        self._taken = len(view.history)
        if value := self._from_slot(self._memory):
            return Answer(value)
        ranked = sorted(self._memory.ranked(), key=lambda one: not one.learnt)
        told = [one.text for one in ranked if one.title or not one.links]  # an index states nothing itself
        learnt = label_of(self._memory.slot.text) if self._memory.slot else ""
        if value := record_value(self._memory.question, told, learnt):
            return Answer(value)
        move = best_move(self._memory) if view.remaining > 1 else None
        return move.action if move else Answer(best_answer(self._memory.question, told, self._memory.listed()))

    def _from_slot(self, memory: ReaderMemory) -> str:
        """Return what the reserved slot answers: the value it points at, or the pages of its field's value."""
        slot, seen = memory.slot, [one for one in memory.seen.values() if one is not memory.slot]
        if slot is None:
            return ""
        pages = {page_of(one.text) for one in seen if one.title}
        named = {page for page in pages if {*content_words(page)} <= memory.wanted.keys()}
        for one in seen:
            value = follow(slot.text, one.text) if not named or page_of(one.text) in named else ""
            beside = (other.words for other in seen if page_of(other.text) == page_of(one.text))
            if value and memory.relevance(slot.words.union(*beside)) and asks_for(memory.question, value, slot.text):
                return value
        field = Field(*slot.text.partition(". ")[0].partition(": ")[::2])
        members = [one.text for one in seen if field.value and field.is_stated(one.text)]
        whole = slot.opened if slot.links is None else len(members) >= slot.links
        if not whole or any(page.lower() not in field.value.lower() for page in named):
            return ""
        return listed_answer(memory.question, field.value, members)
