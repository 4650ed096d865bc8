"""One endpoint of one protocol, which sends requests and remembers the settings that the server refuses.

There are two ways to get exactly one call from a model: forced tool calls, or a JSON schema of the same calls. `Ways`
falls back to the schema if the server does not enforce tool calls. Schemas are built and parsed here too.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, Literal

import msgspec

from kbgym.agents.llm.redact import Address, Redactor
from kbgym.agents.llm.retry import RefusedSetting, Rejected, Transient, Unreadable, failure_of
from kbgym.agents.llm.values import Call, Reply, Request, Sent, object_schema
from kbgym.canonical import decode
from kbgym.errors import Missing

LARGEST = 4_000_000  # bytes; a larger body cannot be a reply with one action, and is not read further


class Connection:
    """Posts JSON to one address. A session belongs to its event loop and is closed with it.

    A command may train in one `asyncio.run` and examine in the next with the same models.
    """

    def __init__(self, address: Address, path: str, headers: Mapping[str, str], timeout: float, redact: Redactor):
        try:
            import aiohttp
        except ImportError:
            raise Missing("language models need aiohttp: pip install 'kbgym[models]'.") from None
        self.where = address.url or ""
        self._aiohttp = aiohttp
        self._url, self._query = f"{self.where.rstrip('/')}{path}", address.query
        self._headers = {"Content-Type": "application/json", **headers, **address.headers}
        self._timeout, self._redact = timeout, redact
        self._session: Any = None
        self._keeper: AsyncGenerator[None, None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, body: dict[str, Any]) -> str:
        """Return the text of the response, or raise the exception for its failure."""
        failure: Exception
        try:
            # Limits the whole exchange: a server that trickles bytes never hits a read timeout.
            async with asyncio.timeout(self._timeout):
                session = await self._open()
                async with session.post(self._url, data=msgspec.json.encode(body), params=self._query) as response:
                    data = bytearray()
                    async for chunk in response.content.iter_any():
                        data += chunk
                        if len(data) > LARGEST:
                            break
                    status, headers, text = response.status, response.headers, data.decode(errors="replace")
        except TimeoutError:
            failure = Transient(f"{self.where}: no reply within {self._timeout:g} s", lost=True)
        except Exception as error:
            failure = Transient(f"{self.where}: no connection, or it was lost ({type(error).__name__})", lost=True)
        else:
            if 200 <= status < 300:
                return text
            failure = failure_of(status, headers, text, self._redact, self.where)
        # Outside the handler, so that an exception which may hold headers is not chained to ours.
        raise failure

    async def _open(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            connector = self._aiohttp.TCPConnector(limit=0)  # the client limits the number of requests
            session = self._aiohttp.ClientSession(connector=connector, headers=self._headers, trust_env=True)
            self._session, self._loop, self._keeper = session, loop, _closing(session)
            await anext(self._keeper)
        return self._session

    async def close(self) -> None:
        """Close the session of the running loop; a closed loop has closed its own."""
        if self._keeper is not None and self._loop is asyncio.get_running_loop():
            await self._keeper.aclose()
        self._session = self._keeper = self._loop = None


async def _closing(session: Any) -> AsyncGenerator[None, None]:
    """Close a session when this generator is closed, which an event loop does before it ends."""
    try:
        yield
    finally:
        await session.close()


class Endpoint(ABC):
    """One endpoint of one protocol. `refused` are the settings it rejected, which later requests omit."""

    effort_name: str  # the protocol's name for the setting

    def __init__(self, connection: Connection, redact: Redactor) -> None:
        self.where = connection.where
        self.refused: list[str] = []
        self._connection = connection
        self._redact = redact

    async def send(self, request: Request) -> Reply:
        """Return one reply. If the server refuses a setting, omit it and send the request again."""
        while True:
            sent = self._sent(request)
            body = self._body(request, sent)
            body = {name: value for name, value in body.items() if value is not None and name not in self.refused}
            try:
                return self._read(await self._connection.post(body), request, sent)
            except RefusedSetting as refusal:
                setting = next((name for name in self._settings(refusal.named) if name in body), None)
                if setting is None:
                    raise Rejected(str(refusal)) from None
                self._leave_out(setting)
            except Unreadable as unreadable:
                return Reply(text=str(unreadable), finish="unreadable", sent=sent)

    async def close(self) -> None:
        await self._connection.close()

    def _sent(self, request: Request) -> Sent:
        return Sent(
            model=request.model,
            temperature=None if "temperature" in self.refused else request.temperature,
            effort=None if self.effort_name in self.refused else request.effort,
            max_tokens=request.max_tokens,
            refused=tuple(self.refused),
        )

    @abstractmethod
    def _body(self, request: Request, sent: Sent) -> dict[str, Any]:
        """Return the request in the protocol's format."""

    @abstractmethod
    def _read(self, text: str, request: Request, sent: Sent) -> Reply:
        """Return the reply to a response."""

    def _settings(self, named: tuple[str, ...]) -> Iterable[str]:
        """Return the settings that a refusal may concern, by their names in a body."""
        return named

    def _leave_out(self, setting: str) -> None:
        if setting not in self.refused:
            self.refused.append(setting)


def served(sent: Sent, model: str | None) -> Sent:
    """Return the sent settings with the name of the model that answered."""
    return msgspec.structs.replace(sent, served=(model or "")[:100])


Way = Literal["tools", "schema"]

# Number and share of prose replies beyond which a server does not enforce a forced tool choice.
_PROSE, _SHARE = 3, 0.2


class Ways:
    """Tool calls first; the schema once too many replies have no call, unless the server has refused schemas."""

    def __init__(self) -> None:
        self.now: Way = "tools"
        self._fixed = False
        self._calls = 0
        self._prose = 0

    def only(self, way: Way) -> None:
        self.now = way
        self._fixed = True

    def count(self, way: Way, call: bool) -> None:
        """Count a reply with or without a call."""
        if way != "tools":
            return
        self._calls += call
        self._prose += not call
        if not self._fixed and self._prose >= _PROSE and self._prose > _SHARE * (self._calls + self._prose):
            self.now = "schema"


class _Written(msgspec.Struct):
    tool: str
    arguments: dict[str, Any] = {}


class _Envelope(msgspec.Struct):
    call: _Written


def written_call(content: str) -> Call | None:
    """Return the call that a schema reply holds, or None. A thought before it is dropped."""
    try:
        written = decode(content.strip(), _Envelope).call
    except msgspec.DecodeError:
        return None
    return Call(written.tool, msgspec.json.encode(written.arguments).decode())


def schema_format(request: Request) -> dict[str, Any]:
    """Return a response format that admits one call of one of the request's tools, optionally after a thought."""
    functions = (tool["function"] for tool in request.tools)
    calls = [object_schema({"tool": {"const": one["name"]}, "arguments": one["parameters"]}) for one in functions]
    thought = {"thought": {"type": "string", "maxLength": 300}} if request.thought else {}
    schema = object_schema({**thought, "call": {"anyOf": calls}})
    return {"type": "json_schema", "json_schema": {"name": "one_call", "schema": schema}}


def schema_system(request: Request) -> str:
    """Return the system prompt with the tools written out, since they are not sent as tools."""
    lines = [request.system, "", "# Tools", ""]
    for tool in request.tools:
        function = tool["function"]
        arguments = msgspec.json.encode(function["parameters"]["properties"], order="sorted").decode()
        lines.append(f"- `{function['name']}`: {function['description']} Arguments: {arguments}")
    thought = '"thought": "one short sentence", ' if request.thought else ""
    call = f'{{{thought}"call": {{"tool": NAME, "arguments": {{...}}}}}}'
    return "\n".join([*lines, "", f"Reply with one JSON object and nothing else: {call}."])
