"""Calls of a served store's MCP tools, over any transport."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import closing
from typing import Any, TypeVar

import msgspec

from kbgym.errors import Failed
from kbgym.gym.actions import Answer, Error, Invalid, Read, Search, shown_by
from kbgym.gym.tools import ROLES, Role, parse
from kbgym.mcp import ToolResult
from kbgym.sanitize import safe_text
from kbgym.serving.clients import ClientSession, DocumentResult, Refusal, SearchQuery, StoreResults, act
from kbgym.serving.corrections import LESSONS, converted
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import Asked
from kbgym.serving.mcp_tools import tools_offered
from kbgym.trace.backend import open_backend
from kbgym.trace.history import Author, Blame, blame
from kbgym.trace.live import LiveStore

_MOST_BLAMED = 5  # documents whose history is looked up in one call
T = TypeVar("T")


def visible(value: T, role: Role) -> T:
    """Return what a role may see of a question or an author.

    Expected answers, verdicts of the gate and the questions of other clients are for curators only. Call this when a
    reply is made, not before: an expected answer may have arrived since the question was looked up.
    """
    if role == "curator":
        return value
    if isinstance(value, Asked):
        return msgspec.structs.replace(value, golds=(), note="")
    if isinstance(value, Author):
        return msgspec.structs.replace(value, agent="", question="", text="")
    raise TypeError(type(value))


class Caller(msgspec.Struct, frozen=True):
    """A client. `role` decides the tools, `session` the conflicts; `question` is the open question it answers."""

    role: Role
    session: ClientSession
    question: str | None = None


_EDITING = frozenset(ROLES["curator"]) - set(ROLES["reader"])
_READS = (
    "another session is writing this store, so this one only reads; nothing was changed. Make the change there, or "
    "serve the store to both with `kbgym serve --http` and `kbgym connect --url`."
)


async def call_tool(
    results: StoreResults, online: Online | None, caller: Caller, name: str, arguments: dict[str, Any]
) -> ToolResult:
    """Return the result of a tool call; every error is a text that begins with Error. Questions need `online`."""
    listed = [tool.name for tool in tools_offered(caller.role, caller.question is not None)]
    if name not in listed:
        return _error(f"there is no tool {name[:40]!r} here; the tools are {', '.join(listed)}.")
    try:
        if name == "how_sure":
            return ToolResult(await how_sure(results.live, caller.session, caller.role, arguments))
        if not results.live.writes and (name in LESSONS or name in _EDITING):
            return _error(_READS)
        if online is not None and name in LESSONS:
            outcome = await LESSONS[name](online, caller.session, arguments)
            return ToolResult(outcome.message, structured=msgspec.to_builtins(outcome))
        return await _call_action(results, online, caller, name, arguments)
    except Refusal as refusal:
        return _error(str(refusal))
    except Failed as failure:
        return _error(unfinished(failure))


async def _call_action(
    results: StoreResults, online: Online | None, caller: Caller, name: str, arguments: dict[str, Any]
) -> ToolResult:
    """Return the result of a tool of a pass: its text, and the documents in it as values."""
    session, query = caller.session, ""
    if name == "search" and caller.question is None:
        given = converted(arguments, SearchQuery)
        query, step = given.query, (await results.search(session, given)).step
    else:
        action = parse(name, arguments, caller.role)
        if isinstance(action, Invalid):
            return _error(action.reason)
        if online is not None and caller.question is not None:
            if isinstance(action, Answer):
                await online.close(caller.question, session.client, action.text)
                return ToolResult("Answer submitted.")
            step = await online.act(caller.question, session.client, action)
        else:
            step = (await act(results.live, session, action, caller.role)).step
    if isinstance(step.action, Search | Read):
        session.looked.append(step.action)
    text, wrong = step.observation.text, isinstance(step.result, Error)
    if caller.question is not None or wrong:
        return ToolResult(text, wrong)
    documents = await results.documents(shown_by(step.result), query)
    return ToolResult(f"{text}{_files(documents)}", structured={"documents": msgspec.to_builtins(documents)})


def _files(documents: Sequence[DocumentResult]) -> str:
    """Return a line with the files of documents: some agents show their model only the text of a result."""
    by_file: dict[str, list[str]] = {}
    for one in documents:
        if one.source is not None:
            by_file.setdefault(one.source.file, []).append(f"[{one.id}]")
    listed = "; ".join(f"{file}: {', '.join(ids)}" for file, ids in by_file.items())
    return f"\nFiles: {listed}" if listed else ""


def unfinished(failure: Failed) -> str:
    """Return the message for a client, and log the reason, which names files and machines."""
    logging.getLogger("kbgym").error("%s", safe_text(str(failure)))
    return "this could not be finished and nothing was changed; the server's log has the reason."


def _error(reason: str) -> ToolResult:
    return ToolResult(f"Error: {reason}", True)


# -- provenance -------------------------------------------------------------------------------------------------------


class _HowSure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `how_sure`; without documents, all that were opened."""

    documents: list[str] = []


async def how_sure(live: LiveStore, session: ClientSession, role: Role, arguments: dict[str, Any]) -> str:
    """Return the provenance of the documents a session opened.

    Readers are shown when and how often a document was changed, curators also by whom and after which question.
    """
    asked = converted(arguments, _HowSure).documents
    opened = list(dict.fromkeys(action.id for action in session.looked if isinstance(action, Read)))
    if unknown := [id for id in asked if id not in opened]:
        raise Refusal("invalid", f"[{unknown[0][:40]}] was not opened recently; read it first.")
    async with live.read():
        store = live.store
        records = [store[id] for id in asked or opened if id in store]
    if not records:
        return "You opened no document recently: an answer would rest on search results alone."
    changed = [record for record in records if record.flag != "untouched"]
    histories = await asyncio.to_thread(_histories, live, [record.id for record in changed[:_MOST_BLAMED]])
    lines = []
    for record in records:
        kind = "unchanged original" if record.flag == "untouched" else _told(histories.get(record.id), role)
        links = f", {len(record.links)} links" if record.links else ""
        lines.append(f"[{record.id}] {record.text}\n  {kind}{links}.")
    originals = len(records) - len(changed)
    return "\n".join([f"Documents opened: {len(records)}, of which unchanged originals: {originals}.", *lines])


def _histories(live: LiveStore, ids: list[str]) -> dict[str, Blame]:
    if not ids:
        return {}
    with closing(open_backend(live.where)) as backend:
        return {id: blame(lambda: backend.store(0), backend.events, id) for id in ids}


def _told(found: Blame | None, role: Role) -> str:
    if found is None or not found.changes:
        return "made when the store was built" if found else "written or changed by an agent"
    first, last = found.changes[0], found.changes[-1]
    times = len(found.changes) - 1
    since = f", changed {times} times since, last ({last.kind}) {_by(last.by, role)}" if times else ""
    return f"{first.kind} {_by(first.by, role)}{since}"


def _by(author: Author, role: Role) -> str:
    shown = visible(author, role)
    by = f" by {shown.agent}" if shown.agent else ""
    asked = f' after "{shown.text}"' if shown.text else ""
    return f"in iteration {shown.iteration}{by}{asked}"
