"""What each client last saw of each document, so that nobody writes over a change they have not seen.

A session is one client's conversation: its token's name and, where it says so, a session of its own. What is kept is
the text and, once the document was read, the links. It changes nothing itself; `owner.py` asks before an action.
"""

from __future__ import annotations

from collections import OrderedDict

from kbgym.actions import Action, Added, Delete, Edit, Found, Link, LinkMany, Merged, Opened, Result, Unlink
from kbgym.store import Record, Store

MOST_SESSIONS = 1_000
MOST_DOCUMENTS = 10_000

# Text, and the links where the client was shown them.
Seen = tuple[str, tuple[str, ...] | None]


class Session:
    """One client's view of the store."""

    def __init__(self, client: str) -> None:
        self.client = client
        self._seen: OrderedDict[str, Seen] = OrderedDict()

    def stale(self, action: Action, store: Store) -> str | None:
        """The document an edit names that is no longer what this client saw, if there is one."""
        match action:
            case Edit(id) | Delete(id) | Link(id) | LinkMany(id) | Unlink(id):
                if id in self._seen and id in store and not _same(self._seen[id], store[id]):
                    return id
        return None

    def saw(self, result: Result, store: Store) -> None:
        """Take note of what a result showed: whole documents by reading and changing them, texts by searching."""
        match result:
            case Found(ids):
                for id in ids:
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
        """A document was shown whole."""
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


def _same(seen: Seen, record: Record) -> bool:
    return seen[0] == record.text and seen[1] in (None, record.links)


class Sessions:
    """Sessions by client and session name, the least recently used forgotten first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()

    def of(self, client: str, name: str = "") -> Session:
        key = (client, name[:200])
        session = self._sessions.setdefault(key, Session(client))
        self._sessions.move_to_end(key)
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session
