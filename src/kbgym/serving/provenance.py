"""Looking at a served store: what an answer rested on, and the resources. Nothing here changes anything."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kbgym.canonical import encode
from kbgym.gym.actions import Read
from kbgym.gym.tools import Role
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.open_questions import Refusal
from kbgym.serving.mcp_offer import AGENDA, DOCUMENT, STATISTICS, resources_offered
from kbgym.serving.sessions import ClientSession
from kbgym.store import ledger
from kbgym.trace.backend import open_backend
from kbgym.trace.history import Author, Blame, blame
from kbgym.trace.live import LiveStore

_MOST_BLAMED = 5  # documents whose history is looked up for one call


class Doubted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The documents in question; none are all that were opened."""

    documents: list[str] = []


async def how_sure(live: LiveStore, session: ClientSession, role: Role, arguments: dict[str, Any]) -> str:
    """What the documents a session opened are, and where what agents wrote of them comes from.

    A reader is told when and how often, a curator also by whom and after which question.
    """
    try:
        asked = msgspec.convert(arguments, Doubted).documents
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise Refusal("invalid", f"{error}.") from None
    opened = list(dict.fromkeys(action.id for action in session.looked if isinstance(action, Read)))
    if strangers := [id for id in asked if id not in opened]:
        raise Refusal("invalid", f"[{strangers[0][:40]}] was not opened lately; read it first.")
    async with live.looking():
        store = live.store
        records = [store[id] for id in asked or opened if id in store]
    if not records:
        return "You opened no document lately: an answer would rest on what stood in results alone."
    made = [record for record in records if record.flag != "untouched"][:_MOST_BLAMED]
    histories = await asyncio.to_thread(_histories, live, [record.id for record in made]) if made else {}
    lines = []
    for record in records:
        kind = "an original nobody changed" if record.flag == "untouched" else _told(histories.get(record.id), role)
        links = f", {len(record.links)} links" if record.links else ""
        lines.append(f"[{record.id}] {record.text}\n  {kind}{links}.")
    plain = len(records) - sum(record.flag != "untouched" for record in records)
    return "\n".join([f"You opened {len(records)} documents; {plain} of them are originals nobody changed.", *lines])


def _histories(live: LiveStore, ids: list[str]) -> dict[str, Blame]:
    place = open_backend(live.where)
    try:
        return {id: blame(lambda: place.store(0), place.events, id) for id in ids}
    finally:
        place.close()


def _told(found: Blame | None, role: Role) -> str:
    if found is None or not found.changes:
        return "made when the store was built" if found else "written or changed by an agent"
    first, last = found.changes[0], found.changes[-1]
    said = f"{first.kind} {_by(first.by, role)}"
    if len(found.changes) > 1:
        said += f", changed {len(found.changes) - 1} times since, last ({last.kind}) {_by(last.by, role)}"
    return said


def _by(author: Author, role: Role) -> str:
    when = f"in iteration {author.iteration}"
    if role != "curator":  # what others asked is theirs
        return when
    asked = f' after "{author.text}"' if author.text else ""
    return f"{when} by {author.agent or 'an import'}{asked}"


async def resource(live: LiveStore, online: Online | None, role: Role, answering: bool, uri: str) -> str | None:
    """What stands at an address, as JSON; None where nothing does, or not for this caller."""
    offered = resources_offered(role, answering)
    async with live.looking():
        if uri == STATISTICS and uri in offered:
            return encode({**msgspec.to_builtins(ledger(live.store)), "version": live.iteration}).decode()
        if uri == AGENDA and uri in offered and online is not None:
            return encode(online.desk.items(live.store)).decode()
        id = uri.removeprefix(DOCUMENT)
        if offered and id != uri and id in live.store:
            record = live.store[id]
            linked = [{"id": target, "text": live.store[target].text} for target in record.links]
            return encode({"id": id, "text": record.text, "flag": record.flag, "links": linked}).decode()
    return None
