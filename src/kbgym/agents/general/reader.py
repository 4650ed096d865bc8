"""The general reader: answers from any text by following words, names and links, independently of world and arm.

It searches the question, opens what has links and is likely evidence, searches for names that turned up and were not in
the question, and reads further pages if no other move promises more. Documents learnt from a similar question are used
first. The promise of a move depends only on what was shown so far, so indexes of any author are opened for their
words or their links.
"""

from __future__ import annotations

from kbgym.agents.general.answers import best_answer, field_value
from kbgym.agents.general.moves import best_move
from kbgym.agents.general.seen import ReaderMemory
from kbgym.gym.actions import Action, Answer
from kbgym.gym.policy import View


class GeneralReader:
    """One pass. Its state follows from the turns of the view, so an interrupted pass can be resumed."""

    def __init__(self) -> None:
        self._memory: ReaderMemory | None = None
        self._taken = 0

    async def act(self, view: View) -> Action:
        if self._memory is None or self._taken > len(view.history):
            self._memory, self._taken = ReaderMemory(getattr(view.task, "question", "")), 0
        for turn in view.history[self._taken :]:
            self._memory.take(turn)
        self._taken = len(view.history)
        ranked = sorted(self._memory.ranked(), key=lambda one: not one.learnt)
        told = [one.text for one in ranked if one.title or not one.links]  # an index states nothing itself
        if value := field_value(self._memory.question, told):
            return Answer(value)
        move = best_move(self._memory) if view.remaining > 1 else None
        return move.action if move else Answer(best_answer(self._memory.question, told, self._memory.listed()))
