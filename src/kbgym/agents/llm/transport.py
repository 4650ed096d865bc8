"""One POST to a provider: through its SDK, or, for OpenAI's protocol where aiohttp is installed, beside it.

The SDKs decide address, authorisation and headers either way. Their machinery around a request takes several times
longer than everything else in a turn, which at 64 requests at once is more than the waiting; so a lean way sends the
same request with the same headers itself. Whoever sends, the answer is a status, headers and text.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from importlib.util import find_spec
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from kbgym.agents.llm.faults import refused
from kbgym.agents.llm.redact import Redactor
from kbgym.agents.llm.retry import Transient

# A body larger than this is no answer of one action; the rest of it is not read.
LARGEST = 4_000_000
_JSON = {"headers": {"Content-Type": "application/json"}}


class HttpAnswer(msgspec.Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    text: str


class Sender(Protocol):
    async def post(self, content: bytes) -> HttpAnswer: ...
    async def close(self) -> None: ...


class Wire:
    """Posts bodies to one path. Everything that can go wrong comes out as an error of `llm/errors.py`."""

    def __init__(self, sender: Sender, timeout: float, redact: Redactor, where: str) -> None:
        self._sender = sender
        self._timeout = timeout
        self._redact = redact
        self.where = where

    async def post(self, body: dict[str, Any]) -> str:
        failure: Exception
        try:
            # The whole exchange: a server that drips a byte now and then never runs into a read time-out.
            async with asyncio.timeout(self._timeout):
                answer = await self._sender.post(msgspec.json.encode(body))
        except TimeoutError:
            failure = Transient(f"{self.where}: no reply within {self._timeout:g} s", lost=True)
        except Exception as error:
            failure = Transient(f"{self.where}: no connection, or it was lost ({type(error).__name__})", lost=True)
        else:
            if 200 <= answer.status < 300:
                return answer.text
            failure = refused(answer.status, answer.headers, answer.text, self._redact, self.where)
        # Outside the handler, so that the provider's exception, which holds the headers, is not chained to ours.
        raise failure

    async def close(self) -> None:
        await self._sender.close()


class _Closable(Protocol):
    def close(self) -> Awaitable[None]: ...


T = TypeVar("T", bound=_Closable)


class PerLoop(Generic[T]):
    """What `make` makes, anew for every event loop and closed with it: connections belong to their loop.

    A verb may train in one `asyncio.run` and examine in the next with the same models.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._keeper: AsyncGenerator[None, None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def now(self) -> T:
        loop = asyncio.get_running_loop()
        if self._made is None or self._loop is not loop:
            made = self._make()
            self._made, self._loop, self._keeper = made, loop, _kept(made)
            await anext(self._keeper)
        return self._made

    async def close(self) -> None:
        """Close it early; a loop that ends has closed its own already."""
        keeper, self._made, self._keeper = self._keeper, None, None
        if keeper is not None and self._loop is asyncio.get_running_loop():
            await keeper.aclose()


async def _kept(made: _Closable) -> AsyncGenerator[None, None]:
    """Closes what was made when this generator is closed, which an event loop does before it ends."""
    try:
        yield
    finally:
        await made.close()


class ThroughSDK:
    """The SDK's own way, for any SDK of this family."""

    def __init__(self, connect: Callable[[], Any], path: str, status_error: type[Exception]) -> None:
        self._api = PerLoop(connect)
        self._path = path
        self._status_error = status_error

    async def post(self, content: bytes) -> HttpAnswer:
        try:
            text = await (await self._api.now()).post(self._path, cast_to=str, content=content, options=_JSON)
        except self._status_error as error:
            response: Any = getattr(error, "response", None)
            return HttpAnswer(response.status_code, response.headers, response.text)
        return HttpAnswer(200, {}, text)

    async def close(self) -> None:
        await self._api.close()


class BesideSDK:
    """The same request by aiohttp: address, query and headers are those the SDK would use."""

    def __init__(self, connect: Callable[[], Any], path: str) -> None:
        import aiohttp

        api = connect()
        self._url = f"{str(api.base_url).rstrip('/')}{path}"
        self._query = {name: str(value) for name, value in api.default_query.items()}
        # A header the SDK leaves out is there as a marker, not as text.
        headers = {**api.auth_headers, **api.default_headers}
        self._headers = {name: value for name, value in headers.items() if isinstance(value, str)}

        self._proxy = _proxy(self._url)

        def session() -> aiohttp.ClientSession:
            # Our own limiter counts the connections.
            return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=self._headers)

        self._session = PerLoop(session)

    async def post(self, content: bytes) -> HttpAnswer:
        session = await self._session.now()
        async with session.post(self._url, data=content, params=self._query, proxy=self._proxy) as reply:
            text = bytearray()
            async for chunk in reply.content.iter_any():
                text += chunk
                if len(text) > LARGEST:
                    break
            return HttpAnswer(reply.status, reply.headers, text.decode(errors="replace"))

    async def close(self) -> None:
        await self._session.close()


def _proxy(url: str) -> str | None:
    """The proxy the environment names for an address, found once: aiohttp would look in two threads every time."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def openai_sender(connect: Callable[[], Any], path: str, status_error: type[Exception]) -> Sender:
    if find_spec("aiohttp") is None:
        return ThroughSDK(connect, path, status_error)
    return BesideSDK(connect, path)
