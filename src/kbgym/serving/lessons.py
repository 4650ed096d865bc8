"""Teaching a served store over MCP: a correction becomes a lesson, and what was learnt can be taken back.

Only a curator is offered these tools. What the store learns passes the same gate as any other lesson.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from kbgym.errors import BadInput
from kbgym.gym.actions import Invalid
from kbgym.gym.tools import parse
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.open_questions import Refusal
from kbgym.serving.sessions import ClientSession
from kbgym.trace.events import Noted
from kbgym.trace.live import LiveStore

if TYPE_CHECKING:
    from kbgym.serving.caller_lessons import CallerCurator

_LOOK_AGAIN, _PATIENCE = 0.05, 20.0  # seconds


class Correction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody said is right, and what was answered before."""

    question: str
    answers: list[str]
    answer: str = ""
    note: str = ""


class Undoing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first iteration that is to be taken back."""

    iteration: int


class Before(msgspec.Struct, frozen=True):
    """A store as it was before a lesson: so it can be said what came of it, and how to take it back."""

    iteration: int
    documents: int
    links: int

    @classmethod
    def of(cls, live: LiveStore) -> Before:
        return cls(live.iteration, len(live.store), live.store.links)

    @property
    def undo(self) -> str:
        return f'`undo` with {{"iteration": {self.iteration + 1}}}'

    async def what_came(self, online: Online, lesson: str) -> str:
        """What a lesson that is over has changed."""
        live, asked = online.live, online.questions.asked.get(lesson)
        if asked is not None and asked.state in ("refused", "set aside"):
            return f"Nothing was changed: {asked.note or asked.state}."
        async with live.looking():  # its turn is over
            grown = len(live.store) - self.documents, live.store.links - self.links
        return f"Learnt: {grown[0]:+} documents, {grown[1]:+} links. {self.undo} takes it back."


async def teach(
    online: Online, session: ClientSession, arguments: dict[str, Any], caller: CallerCurator | None = None
) -> str:
    """Grade what was answered, and have the serving curator work on it; it is waited for, but not for ever.

    Where the `caller` curates, the lesson is what it is told.
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
    before = Before.of(online.live)
    said = f"{asked.answer!r} scores F1 {asked.f1 or 0.0:.2f}. " if asked.answer else "It was not answered. "
    if caller is not None:
        return said + await caller.lesson(online)
    if not await _learnt(online, asked.id):
        return f"{said}The curator is still at it; {before.undo} takes back what it does."
    return said + await before.what_came(online, asked.id)


async def undo(online: Online, session: ClientSession, arguments: dict[str, Any]) -> str:
    """Return to what the store was before an iteration."""
    first = _converted(arguments, Undoing).iteration
    for id in list(online.questions.to_learn):
        if not await _learnt(online, id):
            raise Refusal("conflict", "a lesson is still under way; ask again when it is over.")
    if not 0 < first <= online.live.iteration:
        raise Refusal("invalid", f"there is no iteration {first}: the store is at {online.live.iteration}.")
    try:
        now = await online.live.roll_back(first - 1, f"undone by {session.client}")
    except BadInput as error:
        raise Refusal("invalid", str(error)) from None
    store = online.live.store
    return f"The store is as before iteration {first}: {len(store):,} documents, {store.links:,} links (now {now})."


def plain_line(text: str, field: str) -> str:
    """A text as the tools take one: a line, not empty, not endless, plain."""
    checked = parse("answer", {"text": text}, "reader")
    if isinstance(checked, Invalid):
        raise Refusal("invalid", checked.reason.replace("text", field, 1))
    return str(getattr(checked, "text", ""))


async def _learnt(online: Online, id: str) -> bool:
    """Whether a lesson is over, after some patience."""
    for _ in range(int(_PATIENCE / _LOOK_AGAIN)):
        if id not in online.questions.to_learn:
            return True
        await asyncio.sleep(_LOOK_AGAIN)
    return False


def _converted(arguments: dict[str, Any], kind: type[Any]) -> Any:
    try:
        return msgspec.convert(arguments, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise Refusal("invalid", f"{error}.") from None
