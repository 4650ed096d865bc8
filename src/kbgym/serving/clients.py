"""Clients of a live store: their sessions and actions, and documents as structured values.

A session is one conversation of a client: its token's name and, if it gives one, a session name. It remembers the text
(and, once read, the links) of each document as the client last saw it, which makes edits optimistic: an edit of a
document that has changed since is refused as a conflict. An edit is durable before it is acknowledged. `StoreResults`
adds the scores, pages and places in files of documents, and searches with filters.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Annotated, Generic, TypeVar

import msgspec
from cachetools import LRUCache
from msgspec import Meta

from kbgym.gym import actions
from kbgym.gym.actions import Action, Result, changed_in, shown_by
from kbgym.gym.environment import Environment, Step
from kbgym.gym.tools import MOST_PAGE, MOST_TEXT, PAGE_SIZE, Role, check, is_editing
from kbgym.search.ranking import corrections_first
from kbgym.store import Store
from kbgym.trace.backend import ConnectionLost, open_backend
from kbgym.trace.events import Acted, Began, Ended
from kbgym.trace.live import LiveStore
from kbgym.worlds.world import Place, Places

MOST_SESSIONS = 64  # per client
MOST_LOOKS = 14  # searches and reads kept for `teach` and `how_sure`
MOST_DOCUMENTS = 10_000  # remembered per client, over all its sessions
MOST_RESULTS = 50
MOST_EXAMINED = 5_000  # documents of a ranking looked through for a filter
_MOST_PLACES = 20_000  # of a store in a database, remembered
_MOST_LINKS = 100  # ids of links shown with a document
_AT_ONCE = 200  # hits of a ranking read at once
_TRIES = 5  # of an action whose connection to a database broke

V = TypeVar("V")
# The text, and the links if the client was shown them.
Seen = tuple[str, tuple[str, ...] | None]


class Refusal(Exception):
    """A request that cannot be carried out; `kind` is missing, conflict, forbidden or invalid."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class PerClient(dict[str, LRUCache[str, V]], Generic[V]):
    """Values by client and name. A client beyond `most` loses its own least recently used one."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, client: str) -> LRUCache[str, V]:
        made = self[client] = LRUCache(self._most)
        return made

    @property
    def total(self) -> int:
        return sum(map(len, self.values()))


# -- sessions ---------------------------------------------------------------------------------------------------------


class ClientSession:
    """The version of each document that a client last saw.

    If some of it was `forgotten`, an unknown document counts as changed.
    """

    def __init__(self, client: str, forgotten: bool = False) -> None:
        self.client, self.forgotten = client, forgotten
        self.seen: LRUCache[str, Seen] = LRUCache(MOST_DOCUMENTS)
        self.looked: deque[Action] = deque(maxlen=MOST_LOOKS)  # since it last taught something

    def stale(self, action: Action, store: Store) -> str | None:
        """Return the id of the document an edit would change if it differs from what this client saw."""
        match action:
            case actions.Edit(id) | actions.Delete(id) | actions.Link(id) | actions.LinkMany(id) | actions.Unlink(id):
                if id in store and id in self.seen:
                    text, links = self.seen[id]
                    return None if text == store[id].text and links in (None, store[id].links) else id
                return id if id in store and self.forgotten else None
        return None

    def saw(self, result: Result, store: Store) -> None:
        """Remember what a result showed: whole documents if read or changed, texts if searched."""
        match result:
            case actions.Found():
                for id in shown_by(result):
                    self.show(id, store, False)
            case actions.Opened(id, links):
                for target in links:
                    self.show(target, store, False)
                self.show(id, store)
            case actions.Added(id):
                self.show(id, store)
            case actions.Merged(into):
                self.show(into, store, False)
            case _:
                changed = getattr(result, "id", None) or getattr(result, "source", None)
                if isinstance(changed, str):
                    # After its own change a client knows the links only if it knew them before.
                    known = self.seen.get(changed)
                    self.show(changed, store, known is not None and known[1] is not None)

    def show(self, id: str, store: Store, whole: bool = True) -> None:
        """Remember a document, whole or its text."""
        if id not in store:
            return
        record, known = store[id], self.seen.get(id)
        if whole or known is None or known[0] != record.text:
            self.forgotten |= known is None and len(self.seen) == self.seen.maxsize
            self.seen[id] = (record.text, record.links if whole else None)


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
        remembered = sum(len(one.seen) for one in mine.values())
        while len(mine) > 1 and (len(mine) > self._most or remembered > MOST_DOCUMENTS):
            _, oldest = mine.popitem(last=False)
            remembered -= len(oldest.seen)
            self._forgotten.add(client)
        return session


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
        if is_editing(step.action) and not isinstance(step.result, actions.Error):
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
    observation = actions.Observation(shown, (actions.ShownDocument(id, record.text),))
    return ActionOutcome(Step(action, actions.Error(message), observation), live.iteration, True)


# -- results ----------------------------------------------------------------------------------------------------------

# Documented, not enforced: the tools' own check accepts more, such as line ends and the joiners of some scripts.
_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PLAIN = {"pattern": rf"^[^{_HIDDEN}]*[^\s{_HIDDEN}][^{_HIDDEN}]*$"}
Line = Annotated[str, Meta(min_length=1, max_length=MOST_TEXT, extra_json_schema=_PLAIN)]
Note = Annotated[str, Meta(max_length=MOST_TEXT, extra_json_schema={"pattern": rf"^[^{_HIDDEN}]*$"})]
Id = Annotated[str, Meta(min_length=1, max_length=200, extra_json_schema=_PLAIN)]


class SearchQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A search: `k` results a page, of one `source_page` or one `file` if given."""

    query: Line
    page: Annotated[int, Meta(ge=1, le=MOST_PAGE)] = 1
    k: Annotated[int, Meta(ge=1, le=MOST_RESULTS)] = PAGE_SIZE
    source_page: Annotated[str, Meta(max_length=MOST_TEXT)] = ""
    file: Annotated[str, Meta(max_length=MOST_TEXT)] = ""


class FileSpan(msgspec.Struct, frozen=True):
    """The characters of a file that a document was read from."""

    file: str
    start: int
    end: int


class DocumentResult(msgspec.Struct, frozen=True):
    """A document.

    `score` is null where the document was not ranked, `page` and `source` where it comes from no page or file.
    `links` are the first documents it links to. `superseded_by` are the corrections that supersede it.
    """

    id: str
    text: str
    score: float | None
    page: str | None
    source: FileSpan | None
    is_index: bool
    links: list[str]
    superseded_by: list[str]


class SourcePlaces:
    """The places of a store's documents in their files, read when first asked for."""

    def __init__(self, where: str, in_folder: bool) -> None:
        self._where, self._in_folder = where, in_folder
        self._all: dict[str, Place | None] | None = None
        self._known: LRUCache[str, Place | None] = LRUCache(_MOST_PLACES)

    async def of(self, ids: Iterable[str]) -> Mapping[str, Place | None]:
        """Return the places of documents; None for documents without a file."""
        wanted = list(ids)
        if self._in_folder:
            if self._all is None:
                self._all = await asyncio.to_thread(self._read, None)
            return {id: self._all.get(id) for id in wanted}
        if missing := [id for id in wanted if id not in self._known]:
            read = await asyncio.to_thread(self._read, missing)
            self._known.update({id: read.get(id) for id in missing})
        return {id: self._known.get(id) for id in wanted}

    def _read(self, ids: list[str] | None) -> dict[str, Place | None]:
        with closing(open_backend(self._where)) as backend:
            documents = backend.originals(ids).values()
        places = Places(documents)
        return {document.id: places.place_of(document.id) for document in documents}


class StoreResults:
    """Searches and documents of a live store as structured values."""

    def __init__(self, live: LiveStore) -> None:
        self.live = live
        self._places = SourcePlaces(live.where, live.folder is not None)

    async def search(self, session: ClientSession, given: SearchQuery) -> ActionOutcome:
        """Search as the tool does, or with another number of results or a filter."""
        live, action = self.live, check(actions.Search(given.query, given.page), "reader")
        if isinstance(action, actions.Invalid):
            raise Refusal("invalid", action.reason)
        assert isinstance(action, actions.Search)
        if given.k == PAGE_SIZE and not given.source_page and not given.file:
            return await act(live, session, action, "reader")
        await live.prepare([action])
        ids = await self._ranked(action.query, given)
        async with live.read():
            environment = live.environment
            kept = corrections_first([id for id in ids if id in environment.store], environment.store.superseded_by)
            result = actions.Found(tuple(kept), given.page)
            session.saw(result, environment.store)
            return ActionOutcome(Step(action, result, environment.observed(result)), live.iteration)

    async def found(self, session: ClientSession, given: SearchQuery) -> list[DocumentResult]:
        """Search and return the documents alone."""
        return await self.documents(shown_by((await self.search(session, given)).step.result), given.query)

    async def _ranked(self, query: str, given: SearchQuery) -> list[str]:
        """Return the ids of a page of the ranking that pass the filter."""
        skip, found, examined = (given.page - 1) * given.k, list[str](), 0
        if not given.source_page and not given.file:
            async with self.live.read():
                return [id for id, _ in self.live.environment.engine.search(query, skip, given.k)]
        while len(found) < skip + given.k and examined < MOST_EXAMINED:
            async with self.live.read():
                hits = self.live.environment.engine.search(query, examined, _AT_ONCE)
            examined += len(hits)
            places = await self._places.of(id for id, _ in hits)
            found += [id for id, place in places.items() if place is not None and _is_wanted(place, given)]
            if len(hits) < _AT_ONCE:
                break
        return found[skip : skip + given.k]

    async def documents(
        self, ids: Iterable[str], query: str = "", environment: Environment | None = None
    ) -> list[DocumentResult]:
        """Return documents of the store, or of an open question's store, with their scores for a query."""
        wanted = list(dict.fromkeys(ids))
        places = await self._places.of(wanted)
        async with self.live.read():
            now, scores = environment or self.live.environment, dict[str, float]()
            store = now.store
            if query:
                scores = dict(now.engine.search(query, 0, _AT_ONCE))
            store.fetch(wanted)
            return [_document(store, id, places[id], scores.get(id)) for id in wanted if id in store]


def _is_wanted(place: Place, given: SearchQuery) -> bool:
    in_file = not given.file or place.file == given.file
    return in_file and (not given.source_page or given.source_page in (place.page, place.title))


def _document(store: Store, id: str, place: Place | None, score: float | None) -> DocumentResult:
    record = store[id]
    span = FileSpan(place.file, place.start, place.end) if place is not None and place.file else None
    return DocumentResult(
        id,
        record.text,
        None if score is None else round(float(score), 6),
        None if place is None else place.title,
        span,
        record.flag == "authored" and bool(record.links),
        list(record.links[:_MOST_LINKS]),
        list(store.superseded_by(id)),
    )
