"""Question answering with known answers: ask a reader and grade the pass."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kbgym.gym.episode import Acting, Transcript, play
from kbgym.gym.grading import Grade, grade_question
from kbgym.gym.policy import Agent, Forward
from kbgym.worlds.world import Question


class QAPair(msgspec.Struct, frozen=True):
    """A question with its accepted answers and, if known, the documents they depend on."""

    id: str
    text: str
    golds: tuple[str, ...]
    unanswerable: bool = False
    support: tuple[str, ...] = ()
    group: str = ""
    members: tuple[str, ...] = ()


def qa_pairs(questions: Iterable[Question]) -> list[QAPair]:
    return [
        QAPair(one.id, one.text, one.golds, one.unanswerable, one.support, one.group, one.members) for one in questions
    ]


async def ask(asking: QAPair, environment: Acting, reader: Agent, budget: int, memory: int) -> tuple[Transcript, Grade]:
    """Play a reader's pass and return it with its grade; a pass without an answer scores 0."""
    passed = await play(reader(), environment, "reader", Forward(asking.text), budget, memory)
    return passed, grade_question(passed.answer, asking)
