"""What each client last saw of each document, so that nobody writes over a change they have not seen.

A session is one client's conversation: its token's name and, where it says so, a session of its own. What is kept is
the text and, once the document was read, the links. It changes nothing itself; `owner.py` asks before an action.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from kbgym.gym.actions import Action, Added, Delete, Edit, Found, Link, LinkMany, Merged, Opened, Result, Unlink
from kbgym.store import Record, Store

MOST_SESSIONS = 64  # of one client
MOST_LOOKS = 14  # searches and reads that an answer may have rested on
MOST_DOCUMENTS = 10_000  # remembered of one client, and at most of one session

# Text, and the links where the client was shown them.
Seen = tuple[str, tuple[str, ...] | None]


class ClientSession:
    """One client's view of the store. Where some of it was `forgotten`, what it does not know may have changed."""

    def __init__(self, client: str, forgotten: bool = False) -> None:
        self.client, self.forgotten = client, forgotten
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self.looked: deque[Action] = deque(maxlen=MOST_LOOKS)  # since it last taught something

    @property
    def documents(self) -> int:
        """How many documents it remembers."""
        return len(self._seen)

    def stale(self, action: Action, store: Store) -> str | None:
        """The document an edit names that is no longer what this client saw, if there is one."""
        match action:
            case Edit(id) | Delete(id) | Link(id) | LinkMany(id) | Unlink(id):
                same = _same(self._seen[id], store[id]) if id in self._seen and id in store else not self.forgotten
                if id in store and not same:
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
            self.forgotten = True


def _same(seen: Seen, record: Record) -> bool:
    return seen[0] == record.text and seen[1] in (None, record.links)


class Sessions:
    """Sessions by client and session name.

    A client that has too many has its own least recently used forgotten; from then on its new sessions are shown a
    document before they change it, since they may be old ones.
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
