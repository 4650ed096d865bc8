"""One action of one client on the live store: refused where the document changed since, durable when answered."""

from __future__ import annotations

import asyncio

import msgspec

from kbgym.gym.actions import Action, Error, Observation, ShownDocument, changed_in, shown_by
from kbgym.gym.environment import Step
from kbgym.gym.tools import Role, check, is_editing
from kbgym.serving.sessions import ClientSession
from kbgym.trace.backend import ConnectionLost
from kbgym.trace.events import Acted, Began, Ended
from kbgym.trace.live import LiveStore

_TRIES = 5


class ActionReply(msgspec.Struct, frozen=True):
    """What became of an action, and the iteration of the store it is true of."""

    step: Step
    version: int
    conflict: bool = False


async def act(live: LiveStore, session: ClientSession, action: Action, role: Role) -> ActionReply:
    """Carry out one action of one client; returns once it is durable.

    A connection that broke before the commit is no reason to give up: nothing happened, so it is done again.
    """
    action = check(action, role)
    for _ in range(_TRIES - 1):
        try:
            return await _act(live, session, action)
        except ConnectionLost:
            continue
    return await _act(live, session, action)


async def _act(live: LiveStore, session: ClientSession, action: Action) -> ActionReply:
    await live.prepare([action])
    async with live.turn() if is_editing(action) else live.looking():
        stale = session.stale(action, live.store)
        if stale is not None:
            return _conflict(live, session, action, stale)
        step = await live.environment.carry_out(action)
        session.saw(step.result, live.store)
        if is_editing(step.action) and not isinstance(step.result, Error):
            number = live.iteration + 1
            live.record(Began(number, "serve", session.client))
            live.record(Acted(number, "serve", 1, step.action, step.result, step.verdict), step.observation)
            live.record(Ended(number, "serve", "done"))
            live.commit()
        reply = ActionReply(step, live.iteration)
        unwritten = live.unwritten((*shown_by(step.result), *changed_in(step.result)))
    for durable in unwritten:
        await asyncio.shield(durable)
    return reply


def _conflict(live: LiveStore, session: ClientSession, action: Action, id: str) -> ActionReply:
    """The document changed since the client saw it: show what it is now, and change nothing."""
    record = live.store[id]
    session.show(id, live.store)
    links = f"It links to {', '.join(record.links)}." if record.links else "It links to nothing."
    message = f"[{id}] was changed by somebody else since you saw it; nothing was done. It now reads:"
    shown = f"Conflict: {message}\n[{id}] {record.text}\n{links}"
    return ActionReply(
        Step(action, Error(message), Observation(shown, (ShownDocument(id, record.text),))), live.iteration, True
    )
