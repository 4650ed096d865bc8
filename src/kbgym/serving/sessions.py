"""Sessions of clients, and the actions they take on the live store.

A session is one conversation of a client: its token's name and, if it gives one, a session name. It remembers the text
(and, once read, the links) of each document as the client last saw it, which makes edits optimistic: an edit of a
document that has changed since is refused as a conflict. An edit is durable before it is acknowledged.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

import msgspec

from kbgym.gym.actions import (
    Action,
    Added,
    Delete,
    Edit,
    Error,
    Found,
    Link,
    LinkMany,
    Merged,
    Observation,
    Opened,
    Result,
    ShownDocument,
    Unlink,
    changed_in,
    shown_by,
)
from kbgym.gym.environment import Step
from kbgym.gym.tools import Role, check, is_editing
from kbgym.store import Record, Store
from kbgym.trace.backend import ConnectionLost
from kbgym.trace.events import Acted, Began, Ended
from kbgym.trace.live import LiveStore

MOST_SESSIONS = 64  # per client
MOST_LOOKS = 14  # searches and reads kept for `teach` and `how_sure`
MOST_DOCUMENTS = 10_000  # remembered per client, over all its sessions

# The text, and the links if the client was shown them.
Seen = tuple[str, tuple[str, ...] | None]


class ClientSession:
    """What one client last saw of each document.

    If some of it was `forgotten`, an unknown document counts as changed.
    """

    def __init__(self, client: str, forgotten: bool = False) -> None:
        self.client, self.forgotten = client, forgotten
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self.looked: deque[Action] = deque(maxlen=MOST_LOOKS)  # since it last taught something

    @property
    def documents(self) -> int:
        """Return the number of remembered documents."""
        return len(self._seen)

    def stale(self, action: Action, store: Store) -> str | None:
        """Return the id of the document an edit would change if it differs from what this client saw."""
        match action:
            case Edit(id) | Delete(id) | Link(id) | LinkMany(id) | Unlink(id):
                same = _same(self._seen[id], store[id]) if id in self._seen and id in store else not self.forgotten
                if id in store and not same:
                    return id
        return None

    def saw(self, result: Result, store: Store) -> None:
        """Remember what a result showed: whole documents if read or changed, texts if searched."""
        match result:
            case Found():
                for id in shown_by(result):
                    self._note(id, store, False)
            case Opened(id, links):
                for target in links:
                    self._note(target, store, False)
                self._note(id, store, True)
            case Added(id):
                self._note(id, store, True)
            case Merged(into):
                self._note(into, store, False)
            case _:
                changed = getattr(result, "id", None) or getattr(result, "source", None)
                if isinstance(changed, str):
                    # After its own change a client knows the links only if it knew them before.
                    known = self._seen.get(changed)
                    self._note(changed, store, known is not None and known[1] is not None)

    def show(self, id: str, store: Store) -> None:
        """Remember a whole document."""
        self._note(id, store, True)

    def _note(self, id: str, store: Store, whole: bool) -> None:
        if id not in store:
            return
        record, known = store[id], self._seen.get(id)
        if not whole and known is not None and known[0] == record.text:
            self._seen.move_to_end(id)
            return
        self._seen[id] = (record.text, record.links if whole else None)
        self._seen.move_to_end(id)
        if len(self._seen) > MOST_DOCUMENTS:
            self._seen.popitem(last=False)
            self.forgotten = True


def _same(seen: Seen, record: Record) -> bool:
    return seen[0] == record.text and seen[1] in (None, record.links)


class Sessions:
    """Sessions by client and session name, bounded per client.

    A client beyond a bound loses its own least recently used session. Its new sessions must then see a document before
    they change it, because they may be old ones.
    """

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._sessions: dict[str, OrderedDict[str, ClientSession]] = {}
        self._forgotten: set[str] = set()

    def __len__(self) -> int:
        return sum(map(len, self._sessions.values()))

    def of(self, client: str, name: str = "") -> ClientSession:
        mine = self._sessions.setdefault(client, OrderedDict())
        session = mine.setdefault(name[:200], ClientSession(client, client in self._forgotten))
        mine.move_to_end(name[:200])
        remembered = sum(one.documents for one in mine.values())
        while len(mine) > 1 and (len(mine) > self._most or remembered > MOST_DOCUMENTS):
            _, oldest = mine.popitem(last=False)
            remembered -= oldest.documents
            self._forgotten.add(client)
        return session


_TRIES = 5


class ActionOutcome(msgspec.Struct, frozen=True):
    """The outcome of an action, and the iteration of the store it holds for."""

    step: Step
    version: int
    conflict: bool = False


async def act(live: LiveStore, session: ClientSession, action: Action, role: Role) -> ActionOutcome:
    """Carry out an action of a client and return once it is durable.

    If the connection to a database breaks before the commit, nothing has happened and the action is retried.
    """
    action = check(action, role)
    for _ in range(_TRIES - 1):
        try:
            return await _act(live, session, action)
        except ConnectionLost:
            continue
    return await _act(live, session, action)


async def _act(live: LiveStore, session: ClientSession, action: Action) -> ActionOutcome:
    await live.prepare([action])
    async with live.write() if is_editing(action) else live.read():
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
        reply = ActionOutcome(step, live.iteration)
        unwritten = live.unwritten((*shown_by(step.result), *changed_in(step.result)))
    for durable in unwritten:
        await asyncio.shield(durable)
    return reply


def _conflict(live: LiveStore, session: ClientSession, action: Action, id: str) -> ActionOutcome:
    """Return the current document, without changing it."""
    record = live.store[id]
    session.show(id, live.store)
    links = f"It links to {', '.join(record.links)}." if record.links else "It links to nothing."
    message = f"[{id}] has changed since you saw it; nothing was done. It now reads:"
    shown = f"Conflict: {message}\n[{id}] {record.text}\n{links}"
    observation = Observation(shown, (ShownDocument(id, record.text),))
    return ActionOutcome(Step(action, Error(message), observation), live.iteration, True)
