"""Structured results: documents with their scores, pages and places in files, and searches with filters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Annotated

import msgspec
from cachetools import LRUCache
from msgspec import Meta

from kbgym.gym.actions import Found, Invalid, Search, shown_by
from kbgym.gym.environment import Environment, Step, corrections_first
from kbgym.gym.tools import MOST_PAGE, MOST_TEXT, PAGE_SIZE, check
from kbgym.serving.learning.question_log import Refusal
from kbgym.serving.sessions import ActionOutcome, ClientSession, act
from kbgym.store import Store
from kbgym.trace.backend import open_backend
from kbgym.trace.live import LiveStore
from kbgym.worlds.world import Place, Places

MOST_RESULTS = 50
MOST_EXAMINED = 5_000  # documents of a ranking looked through for a filter
_MOST_PLACES = 20_000  # of a store in a database, remembered
_MOST_LINKS = 100  # ids of links shown with a document
_AT_ONCE = 200  # hits of a ranking read at once

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

    @property
    def is_plain(self) -> bool:
        """Return True if it is the same search as the agents' tool."""
        return self.k == PAGE_SIZE and not self.source_page and not self.file


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
        self._all: Places | None = None
        self._known: LRUCache[str, Place | None] = LRUCache(_MOST_PLACES)

    async def of(self, ids: Iterable[str]) -> Mapping[str, Place | None]:
        """Return the places of documents; None for documents without a file."""
        wanted = list(ids)
        if self._in_folder:
            if self._all is None:
                self._all = await asyncio.to_thread(self._read, None)
            return {id: self._all.place_of(id) for id in wanted}
        if missing := [id for id in wanted if id not in self._known]:
            read = await asyncio.to_thread(self._read, missing)
            self._known.update({id: read.place_of(id) for id in missing})
        return {id: self._known.get(id) for id in wanted}

    def _read(self, ids: list[str] | None) -> Places:
        with closing(open_backend(self._where)) as backend:
            return Places(backend.originals(ids).values())


class Results:
    """Searches and documents of a live store as structured values."""

    def __init__(self, live: LiveStore) -> None:
        self.live = live
        self._places = SourcePlaces(live.where, live.folder is not None)

    async def search(self, session: ClientSession, given: SearchQuery) -> ActionOutcome:
        """Search as the tool does, or with another number of results or a filter."""
        live, action = self.live, check(Search(given.query, given.page), "reader")
        if isinstance(action, Invalid):
            raise Refusal("invalid", action.reason)
        assert isinstance(action, Search)
        if given.is_plain:
            return await act(live, session, action, "reader")
        await live.prepare([action])
        ids = await self._ranked(action.query, given)
        async with live.read():
            environment = live.environment
            kept = corrections_first([id for id in ids if id in environment.store], environment.store.superseded_by)
            result = Found(tuple(kept), given.page)
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
