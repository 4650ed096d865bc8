"""The training loop: answer a question, grade the answer, edit the store, commit.

`train` teaches every pending lesson; `teach` is one lesson. A lesson is one training step in two halves: `answer`, a
forward pass by the reader, and after its grade `learn`, a backward pass by the curator, who sees the expected answer
and edits the store. A served store learns from traffic by the same two halves. The session plays passes and records
them; `curate` decides how a backward pass is applied to the store.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from kbgym.gym.episode import Transcript
from kbgym.gym.grading import grade_question
from kbgym.gym.policy import Agent, Backward, Forward, IndexTask, PassVerdict, Turn
from kbgym.trace.events import Phase
from kbgym.training.lessons import Lesson, schedule
from kbgym.training.run import Settings
from kbgym.training.session import Agents, Session
from kbgym.worlds.world import World

SUFFICED = 2  # a right answer within this many actions leaves nothing to learn for which a curator should be paid
UNPAID = "general"  # this curator costs nothing, and other wordings of a question profit
Curate = Callable[[Session, Lesson, Agent, Backward], Awaitable[Transcript]]


async def curate_directly(session: Session, lesson: Lesson, curator: Agent, task: Backward) -> Transcript:
    """Play the backward pass on the store itself; every edit takes effect at once."""
    return await session.play("backward", lesson, curator, task)


async def train(
    world: World,
    settings: Settings,
    agents: Agents,
    session: Session,
    curate: Curate = curate_directly,
    lessons: Sequence[Lesson] | None = None,
) -> None:
    """Teach the pending lessons, up to `settings.batch_size` concurrently.

    Interrupted training resumes where the trace ends and produces the same bytes as uninterrupted training.

    Args:
        lessons: the lessons to teach; by default the whole schedule.
    """

    async def step(lesson: Lesson) -> None:
        await teach(lesson, settings, agents, session, curate)
        await session.commit(lesson)

    await session.evaluate_untrained()
    for epoch in session.pending(schedule(world, settings) if lessons is None else lessons):
        await side_by_side(epoch, settings.batch_size, step)


async def teach(lesson: Lesson, settings: Settings, agents: Agents, session: Session, curate: Curate) -> None:
    """Teach one lesson, or the rest of an interrupted one."""
    question = lesson.question
    state = await session.begin(lesson)
    if state.grade is None:
        forward = await answer(lesson, agents.reader, session)
        if forward.outcome == "agent_failed":
            await session.end(lesson, "forward", forward)
            return
        await session.grade(lesson, forward, grade_question(forward.answer, question))
    assert state.grade is not None
    turns = tuple(Turn(step.action, step.observation) for step in state.forward)
    agenda = session.index_tasks(lesson)
    task = backward_task(question.text, turns, question.golds, state.grade.f1, state.grade.answer, agenda)
    learnt = await learn(settings, task, partial(curate, session, lesson, agents.curator))
    await session.end(lesson, "backward", learnt)


class Player(Protocol):
    """Plays the passes of a lesson."""

    async def play(self, phase: Phase, lesson: Lesson, agent: Agent, task: Forward | Backward) -> Transcript: ...


async def answer(lesson: Lesson, reader: Agent, player: Player) -> Transcript:
    """Play the forward pass of a lesson."""
    return await player.play("forward", lesson, reader, Forward(lesson.question.text))


async def learn(settings: Settings, task: Backward, curate: Callable[[Backward], Awaitable[Transcript]]) -> Transcript:
    """Play the backward pass, unless the forward pass leaves nothing to learn that is worth one."""
    skips = settings.strategy != "paper" and settings.curator != UNPAID and not task.agenda
    if skips and task.f1 == 1.0 and len(task.forward) <= SUFFICED:
        return Transcript("curator", "done", ())
    return await curate(task)


def backward_task(
    question: str,
    turns: tuple[Turn, ...],
    golds: tuple[str, ...],
    f1: float,
    answer: str | None,
    agenda: tuple[IndexTask, ...] = (),
) -> Backward:
    """Return the curator's task for a graded forward pass."""
    verdict: PassVerdict = "out of budget" if answer is None else "right" if f1 == 1.0 else "wrong"
    return Backward(question, turns, golds, f1, verdict, agenda)


async def side_by_side(lessons: Iterable[Lesson], width: int, step: Callable[[Lesson], Awaitable[None]]) -> None:
    """Run `step` for every lesson in order, at most `width` at a time; raise the first error."""
    waiting = deque(lessons)

    async def work() -> None:
        while waiting:
            await step(waiting.popleft())

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(width, len(waiting))):
                group.create_task(work())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
