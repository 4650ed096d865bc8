"""Corrections by people: `teach` a question's answer, `forget` documents, `undo` a lesson.

`teach` looks for documents that state an accepted answer and speak of the question's subject. If there are any, it adds
an alias: an index in the question's words that links to them. If there are none, it adds a correction, which supersedes
the documents that state the wrong answer. Either is a lesson: it passes the gate, is in the trace and can be undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from kbgym.errors import BadInput
from kbgym.gym.actions import Delete, Unlink
from kbgym.gym.policy import Backward
from kbgym.serving.clients import ClientSession, Id, Line, Note, Refusal, act
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import new_id, plain_line
from kbgym.serving.learning.teacher import Teacher
from kbgym.store import Store
from kbgym.trace.corrections import TAUGHT, Taught
from kbgym.trace.events import Noted

_POLL, _PATIENCE = 0.02, 20.0  # seconds
_LISTED = 3  # documents named in a message
T = TypeVar("T")


class Correction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question and its accepted answers, the wrong answer given before, and the source of the correction."""

    question: Line
    answers: Annotated[list[Line], Meta(min_length=1, max_length=20)]
    answer: Note = ""
    note: Note = ""


class Forgetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Documents that are no longer true, and the reason."""

    documents: Annotated[list[Id], Meta(min_length=1, max_length=20)]
    note: Note = ""


class Undoing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The iteration to undo, alone or with everything since; `confirm` allows other people's work."""

    iteration: Annotated[int, Meta(ge=1)]
    everything_since: bool = False
    confirm: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a lesson: the documents it made, linked and superseded, and a message."""

    changed: bool
    message: str
    lesson: Taught | None = None


async def teach(online: Online, session: ClientSession, arguments: dict[str, Any]) -> Outcome:
    """Teach the store a correction by a person and wait for what it changed, up to a time limit."""
    given = converted(arguments, Correction)
    question, answers = plain_line(given.question, "question"), [plain_line(one, "an answer") for one in given.answers]
    note = plain_line(given.note, "note") if given.note.strip() else ""
    if given.answer.strip():
        asked = await online.report(question, session.client, tuple(session.looked), plain_line(given.answer, "answer"))
    else:
        asked = await online.ask(question, session.client)
    session.looked.clear()
    await _announce(online, asked.id, session.client, note)
    asked = await online.gold(asked.id, tuple(answers))
    if not await _finished(online, asked.id):
        return Outcome(False, f"The lesson is still waiting; ask for question {asked.id} later.")
    return await _outcome(online, asked.id, answers, asked.answer)


async def forget(online: Online, session: ClientSession, arguments: dict[str, Any]) -> Outcome:
    """Withdraw documents that are no longer true. They stay, and a correction supersedes them."""
    given = converted(arguments, Forgetting)
    note = plain_line(given.note, "note") if given.note.strip() else ""
    async with online.live.read():
        store = online.live.store
        unknown = [id for id in given.documents if id not in store]
        texts = [(id, store[id].text) for id in given.documents if id in store]
    if unknown:
        raise Refusal("missing", f"there is no document {unknown[0][:80]!r}.")
    id = new_id()
    lesson = await _announce(online, id, session.client, note)
    task = Backward("", (), (), 0.0, "wrong")
    await online.curate(task, id=id, text=note, curator=lambda: Teacher(lesson, store, texts), budget=3)
    return await _outcome(online, id, (), None)


async def undo(online: Online, session: ClientSession, arguments: dict[str, Any]) -> Outcome:
    """Take back one lesson, or roll the store back to the state before an iteration."""
    given, live = converted(arguments, Undoing), online.live
    for id in list(online.questions.to_learn):
        if not await _finished(online, id):
            raise Refusal("conflict", "a lesson is still in progress; retry when it has ended.")
    async with live.read():
        store, lessons = live.store, list(online.corrections.lessons.values())
    first, last = given.iteration, live.iteration
    if first > last:
        raise Refusal("missing", f"there is no iteration {first}: the store is at {last}.")
    lesson = next((one for one in lessons if one.iteration == first), None)
    if given.everything_since or lesson is None:
        if not (given.everything_since and given.confirm):
            why = "" if given.everything_since else f"iteration {first} is no lesson that can be undone alone; "
            how = f'{{"iteration": {first}, "everything_since": true, "confirm": true}}'
            raise Refusal("conflict", f"{why}{how} undoes iterations {first} to {last} of all clients.")
        try:
            now = await live.roll_back(first - 1, f"undone by {session.client}")
        except BadInput as error:
            raise Refusal("invalid", str(error)) from None
        size = len(live.store)
        return Outcome(True, f"The store is as before iteration {first}: {size:,} documents (now iteration {now}).")
    if not lesson.stands(store):
        raise Refusal("conflict", f"nothing of iteration {first} is left to undo.")
    if lesson.by != session.client and not given.confirm:
        raise Refusal("conflict", f'iteration {first} was taught by {lesson.by}; add "confirm": true to undo it.')
    present = [id for id in lesson.links if id in store[lesson.document].links]
    inverse = [Delete(lesson.document)] if lesson.made else [Unlink(lesson.document, id) for id in present]
    for action in inverse:
        session.show(lesson.document, live.store)
        await act(live, session, action, "curator")
    return Outcome(True, f"Undone: {lesson.kind} [{lesson.document}] of iteration {first} is gone.", lesson)


LESSONS = {"teach": teach, "forget": forget, "undo": undo}
BODIES = {"teach": Correction, "forget": Forgetting, "undo": Undoing}


def converted(arguments: dict[str, Any], kind: type[T]) -> T:
    """Return the arguments as a struct. Raise Refusal if they do not fit."""
    try:
        return msgspec.convert(arguments, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise Refusal("invalid", f"{error}.") from None


async def _announce(online: Online, id: str, client: str, note: str) -> Taught:
    """Record the teacher's name before the lesson begins."""
    lesson = Taught(id, client, datetime.now(UTC).date().isoformat(), note)
    await online.record(lambda number: [Noted(number, TAUGHT, msgspec.to_builtins(lesson))])
    return lesson


async def _finished(online: Online, id: str) -> bool:
    """Wait for the end of a lesson. Return False if it takes too long."""
    for _ in range(int(_PATIENCE / _POLL)):
        if id not in online.questions.to_learn:
            return True
        await asyncio.sleep(_POLL)
    return False


async def _outcome(online: Online, id: str, answers: Sequence[str], given: str | None) -> Outcome:
    """Return the changes of a finished lesson, the documents it could not find, and the next step."""
    async with online.live.read():
        lesson, store = online.corrections.lessons[id], online.live.store
        asked = online.questions.asked.get(id)
    if not lesson.stands(store):
        why = asked.note if asked is not None and asked.note else "the store already leads to this answer"
        return Outcome(False, f"Nothing was changed: {why}.")
    undo, stated = f'Undo with `undo` {{"iteration": {lesson.iteration}}}.', " or ".join(map(repr, answers))
    if lesson.kind == "alias":
        targets = _listed(lesson.links, store)
        return Outcome(True, f"Alias [{lesson.document}] leads from this question to {targets}. {undo}", lesson)
    said = f"Correction [{lesson.document}] was added"
    if answers:
        said = f"No document states {stated} of this subject. {said}"
    if lesson.supersedes:
        return Outcome(True, f"{said} and supersedes {_listed(tuple(lesson.supersedes), store)}. {undo}", lesson)
    missing = f"no document that states {given!r} was found" if given else "no wrong answer was given"
    advice = "If you know the documents that are wrong, name them to `forget`."
    return Outcome(True, f"{said} and supersedes nothing, because {missing}. {advice} {undo}", lesson)


def _listed(ids: Sequence[str], store: Store) -> str:
    shown = ", ".join(f'[{id}] "{store[id].text[:100]}"' for id in ids[:_LISTED] if id in store)
    return shown + (f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else "")
