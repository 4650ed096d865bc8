"""A store as a Python object: in a folder, in a database, or behind a kbgym server over HTTP.

The retrievers for LangChain, LlamaIndex, Haystack and DSPy are built on it.
"""

from __future__ import annotations

import asyncio
import threading
import urllib.error
import urllib.parse
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any, Self, TypeVar

import msgspec

from kbgym.canonical import decode, encode
from kbgym.errors import BadInput, Failed
from kbgym.serving.clients import ClientSession, DocumentResult, Refusal, SearchQuery, StoreResults
from kbgym.serving.corrections import LESSONS, Outcome, converted
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.setup import open_live, open_online

T = TypeVar("T")
_SECONDS = 60.0


class StoreClient(ABC):
    """A store to search, read and teach. Use it as a context manager, or call `close`."""

    def search(self, query: str, k: int = 5, source_page: str = "", file: str = "") -> list[DocumentResult]:
        """Return the `k` best documents, of one source page or file if given."""
        return self._search({"query": query, "k": k, "source_page": source_page, "file": file})

    @abstractmethod
    def document(self, id: str) -> DocumentResult:
        """Return a document. Raise BadInput if the id is unknown."""

    @abstractmethod
    def _search(self, query: dict[str, Any]) -> list[DocumentResult]: ...

    @abstractmethod
    def _lesson(self, name: str, arguments: dict[str, Any]) -> Outcome: ...

    def teach(self, question: str, answers: Sequence[str], answer: str = "", note: str = "") -> Outcome:
        """Teach a question's accepted answers; `answer` is the wrong one given before."""
        return self._lesson("teach", {"question": question, "answers": list(answers), "answer": answer, "note": note})

    def forget(self, documents: Sequence[str], note: str = "") -> Outcome:
        """Withdraw documents that are no longer true."""
        return self._lesson("forget", {"documents": list(documents), "note": note})

    def undo(self, iteration: int, *, everything_since: bool = False, confirm: bool = False) -> Outcome:
        """Undo a lesson, or everything since an iteration."""
        given = {"iteration": iteration, "everything_since": everything_since, "confirm": confirm}
        return self._lesson("undo", given)

    def close(self) -> None:  # noqa: B027 - nothing has to be closed over HTTP
        """Release the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(place: str, token: str = "", *, write: bool = False, name: str = "python") -> StoreClient:
    """Return a client of a store: a folder, the URL of a database, or http(s) with a token.

    Args:
        write: open a folder or database for teaching; a folder has one writer at a time.
        name: the teacher's name in the trace; over HTTP it is the token's name.
    """
    if place.startswith(("http://", "https://")):
        return HttpClient(place, token)
    return LocalClient(place, write, name)


class HttpClient(StoreClient):
    """A client of a kbgym server."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def _search(self, query: dict[str, Any]) -> list[DocumentResult]:
        return msgspec.convert(self._send("/v1/search", query)["documents"], list[DocumentResult])

    def document(self, id: str) -> DocumentResult:
        return msgspec.convert(self._send(f"/v1/documents/{urllib.parse.quote(id, safe='')}"), DocumentResult)

    def _lesson(self, name: str, arguments: dict[str, Any]) -> Outcome:
        return msgspec.convert(self._send(f"/v1/{name}", arguments), Outcome)

    def _send(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else encode(body)
        request = urllib.request.Request(self._url + path, data, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as reply:
                return decode(reply.read())
        except urllib.error.HTTPError as error:
            said = error.read()
            try:
                message = decode(said)["error"]
            except (msgspec.DecodeError, KeyError, TypeError):
                message = f"the server answered {error.code}."
            raise (Failed if error.code >= 500 else BadInput)(str(message)) from None
        except OSError as error:
            raise Failed(f"{self._url} cannot be reached: {error}.") from error


class LocalClient(StoreClient):
    """A client of a store in this process, which runs in its own thread."""

    def __init__(self, place: str, write: bool, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="kbgym", daemon=True).start()
        self._session = ClientSession(name)
        self._online: Online | None = None
        try:
            live = self._run(self._open(place, write))
        except BaseException:
            self._loop.call_soon_threadsafe(self._loop.stop)
            raise
        self._results = StoreResults(live)

    async def _open(self, place: str, write: bool) -> Any:
        if not write:
            return open_live(place, write=False)
        from kbgym.api import open

        with open(place) as opened:
            settings = opened.settings
        online = self._online = open_online(place, settings)
        online.start()
        return online.live

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except Refusal as refusal:
            raise BadInput(str(refusal)) from None

    def _search(self, query: dict[str, Any]) -> list[DocumentResult]:
        return self._run(self._found(query))

    async def _found(self, query: dict[str, Any]) -> list[DocumentResult]:
        return await self._results.found(self._session, converted(query, SearchQuery))

    def document(self, id: str) -> DocumentResult:
        found = self._run(self._results.documents([id]))
        if not found:
            raise BadInput(f"there is no document {id!r}.")
        return found[0]

    def _lesson(self, name: str, arguments: dict[str, Any]) -> Outcome:
        if self._online is None:
            raise BadInput("this store was opened for reading; connect with write=True.")
        return self._run(LESSONS[name](self._online, self._session, arguments))

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _close(self) -> None:
        if self._online is not None:
            await self._online.stop()
        await self._results.live.close()
