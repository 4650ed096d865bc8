"""Teaching a served store over MCP: `teach` makes a lesson of a correction, `undo` rolls the store back.

A lesson passes the same gate as any other. The store's curator works on it, or the connected agent does: then the
lesson is the result of `teach`, and its tools play the pass on a copy, within the budget. Lessons come one at a time;
one left open by a client that disconnected comes first the next time.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kbgym.agents.conversation import NEXT, Conversation
from kbgym.errors import BadInput
from kbgym.gym.actions import Invalid
from kbgym.gym.tools import parse
from kbgym.mcp import ToolResult
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import Refusal
from kbgym.serving.sessions import ClientSession
from kbgym.trace.events import Noted
from kbgym.trace.live import LiveStore

_POLL, _PATIENCE = 0.02, 20.0  # seconds


class Correction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `teach`: a question, its accepted answers, and the answer given before."""

    question: str
    answers: list[str]
    answer: str = ""
    note: str = ""


class Undoing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `undo`: the first iteration to undo."""

    iteration: int


class LessonStart(msgspec.Struct, frozen=True):
    """The size of a store before a lesson, to tell what the lesson changed and how to undo it."""

    iteration: int
    documents: int
    links: int

    @classmethod
    def of(cls, live: LiveStore) -> LessonStart:
        return cls(live.iteration, len(live.store), live.store.links)

    @property
    def undo(self) -> str:
        return f'`undo` {{"iteration": {self.iteration + 1}}}'

    async def outcome(self, online: Online, lesson: str) -> str:
        """Tell what a finished lesson has changed."""
        live, asked = online.live, online.questions.asked.get(lesson)
        if asked is not None and asked.state in ("refused", "set aside"):
            return f"Nothing was changed: {asked.note or asked.state}."
        async with live.looking():  # after its write
            grown = len(live.store) - self.documents, live.store.links - self.links
        return f"Learnt: {grown[0]:+} documents, {grown[1]:+} links. Undo with {self.undo}."


async def teach(
    online: Online, session: ClientSession, arguments: dict[str, Any], caller: CallerCurator | None = None
) -> str:
    """Grade the answer and teach the lesson; wait for its outcome, up to a time limit.

    If the `caller` curates, return the lesson to work on instead.
    """
    given = _converted(arguments, Correction)
    question, answers = plain_line(given.question, "question"), [plain_line(one, "an answer") for one in given.answers]
    if not 0 < len(answers) <= 20:
        raise Refusal("invalid", "answers holds 1 to 20 answers.")
    note = plain_line(given.note, "note") if given.note else ""
    if given.answer:
        looks, answer = tuple(session.looked), plain_line(given.answer, "answer")
        asked = await online.report(question, session.client, looks, answer)
    else:
        asked = await online.ask(question, session.client)
    session.looked.clear()
    if note:
        live = online.live
        async with live.turn():
            live.record(Noted(live.iteration + 1, "taught", {"question": asked.id, "note": note, "by": session.client}))
            durable = live.commit()
        await asyncio.shield(durable)
    asked = await online.gold(asked.id, tuple(answers))
    before = LessonStart.of(online.live)
    said = f"{asked.answer!r} scores F1 {asked.f1 or 0.0:.2f}. " if asked.answer else "It was not answered. "
    if caller is not None:
        return said + await caller.lesson(online)
    if not await _finished(online, asked.id):
        return f"{said}The curator is still working. Undo its edits with {before.undo}."
    return said + await before.outcome(online, asked.id)


async def undo(online: Online, session: ClientSession, arguments: dict[str, Any]) -> str:
    """Roll the store back to the state before an iteration."""
    first = _converted(arguments, Undoing).iteration
    for id in list(online.questions.to_learn):
        if not await _finished(online, id):
            raise Refusal("conflict", "a lesson is still in progress; retry when it has ended.")
    if not 0 < first <= online.live.iteration:
        raise Refusal("invalid", f"there is no iteration {first}: the store is at {online.live.iteration}.")
    try:
        now = await online.live.roll_back(first - 1, f"undone by {session.client}")
    except BadInput as error:
        raise Refusal("invalid", str(error)) from None
    store = online.live.store
    return f"The store is as before iteration {first}: {len(store):,} documents, {store.links:,} links (now {now})."


def plain_line(text: str, field: str) -> str:
    """Return a text if the tools accept it: one plain, non-empty line of limited length."""
    checked = parse("answer", {"text": text}, "reader")
    if isinstance(checked, Invalid):
        raise Refusal("invalid", checked.reason.replace("text", field, 1))
    return str(getattr(checked, "text", ""))


async def _finished(online: Online, id: str) -> bool:
    """Wait for the end of a lesson. Return False if it takes too long."""
    for _ in range(int(_PATIENCE / _POLL)):
        if id not in online.questions.to_learn:
            return True
        await asyncio.sleep(_POLL)
    return False


def _converted(arguments: dict[str, Any], kind: type[Any]) -> Any:
    try:
        return msgspec.convert(arguments, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise Refusal("invalid", f"{error}.") from None


class CallerCurator:
    """Route lessons to the connected agent, which acts as curator."""

    def __init__(self) -> None:
        self._conversation = Conversation(("curator",))
        self.agent = self._conversation.agent

    @property
    def is_playing(self) -> bool:
        """Return True if a lesson has been shown and is not over."""
        return self._conversation.plays

    async def lesson(self, online: Online) -> str:
        """Return the next lesson as soon as there is one."""
        if self.is_playing:
            return "It is kept for later: `done` ends the lesson you are working on first."
        return (await self.call(online, NEXT.name, {})).text

    async def call(self, online: Online, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Carry out a call of the current lesson; the one that ends it waits for the gate."""
        lesson, before = online.questions.next_lesson() or "", LessonStart.of(online.live)
        calling = asyncio.create_task(self._conversation.call(name, arguments))
        while not calling.done() and online.questions.to_learn:
            await asyncio.wait({calling}, timeout=_POLL)
        if not calling.done():
            self._conversation.pause(said := await before.outcome(online, lesson))
            if name == NEXT.name:  # the lesson ended before it was shown
                calling.cancel()
                return ToolResult(said)
        return await calling
