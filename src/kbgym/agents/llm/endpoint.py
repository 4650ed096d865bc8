"""One endpoint of one protocol, which sends requests and remembers the settings that the server refuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kbgym.agents.llm.redact import Address, Redactor
from kbgym.agents.llm.retry import RefusedSetting, Rejected, TooLong, Transient, Unreadable, retry_after
from kbgym.agents.llm.values import Reply, Request, Sent
from kbgym.canonical import decode
from kbgym.errors import Missing

LARGEST = 4_000_000  # bytes; a larger body cannot be a reply with one action, and is not read further


class Endpoint:
    """Posts requests to one address. `refused` are the settings it rejects, which later requests omit.

    Each request has its own connection: it takes little of the time of a reply, and leaves nothing to close when a
    command trains in one event loop and examines in the next.
    """

    path: str
    effort_name: str  # the protocol's name for the setting

    def __init__(self, address: Address, headers: Mapping[str, str], timeout: float, redact: Redactor) -> None:
        try:
            import aiohttp
        except ImportError:
            raise Missing("language models need aiohttp: pip install 'kbgym[models]'.") from None
        self.where = address.url or ""
        self.refused: list[str] = []
        self._aiohttp = aiohttp
        self._url, self._query = f"{self.where.rstrip('/')}{self.path}", address.query
        self._headers = {"Content-Type": "application/json", **headers, **address.headers}
        self._timeout, self._redact = timeout, redact

    async def send(self, request: Request) -> Reply:
        """Return one reply. If the server refuses a setting, omit it and send the request again."""
        while True:
            sent = self._sent(request)
            body = self._body(request, sent)
            body = {name: value for name, value in body.items() if value is not None and name not in self.refused}
            try:
                return self._reply(await self._post(body), request, sent)
            except RefusedSetting as refusal:
                setting = next((name for name in self._settings(refusal.named) if name in body), None)
                if setting is None:
                    raise Rejected(str(refusal)) from None
                self._leave_out(setting)
            except Unreadable as unreadable:
                return Reply(text=str(unreadable), finish="unreadable", sent=sent)

    # -- provided by a protocol --------------------------------------------------------------------------------------

    def _body(self, request: Request, sent: Sent) -> dict[str, Any]:
        """Return the request in the protocol's format."""
        raise NotImplementedError

    def _read(self, wire: Any, request: Request, sent: Sent) -> Reply:
        """Return the reply in a decoded response."""
        raise NotImplementedError

    def _sent(self, request: Request) -> Sent:
        return Sent(
            model=request.model,
            temperature=None if "temperature" in self.refused else request.temperature,
            effort=None if self.effort_name in self.refused else request.effort,
            max_tokens=request.max_tokens,
            refused=tuple(self.refused),
        )

    def _settings(self, named: tuple[str, ...]) -> Iterable[str]:
        """Return the settings that a refusal may concern, by their names in a body."""
        return named

    def _leave_out(self, setting: str) -> None:
        if setting not in self.refused:
            self.refused.append(setting)

    # -- HTTP --------------------------------------------------------------------------------------------------------

    def _reply(self, text: str, request: Request, sent: Sent) -> Reply:
        if len(text) > LARGEST:
            return Reply(text=text[:1000], finish="length", sent=sent)
        try:
            wire = decode(text)
            reply = self._read(wire, request, sent)
            calls = tuple(replace(call, arguments=self._redact(call.arguments)) for call in reply.calls)
            sent = replace(sent, served=str(wire.get("model") or "")[:100])
            return replace(reply, text=self._redact(reply.text), calls=calls, sent=sent)
        except (msgspec.MsgspecError, AttributeError, LookupError, TypeError, ValueError):
            raise Transient("a reply that is not in the protocol's format") from None

    async def _post(self, body: dict[str, Any]) -> str:
        """Return the text of the response, or raise the exception for its failure."""
        failure: Exception
        try:
            # Limits the whole exchange: a server that trickles bytes never hits a read timeout.
            async with asyncio.timeout(self._timeout):
                async with (
                    self._aiohttp.ClientSession(headers=self._headers, trust_env=True) as session,
                    session.post(self._url, data=msgspec.json.encode(body), params=self._query) as response,
                ):
                    data = bytearray()
                    async for chunk in response.content.iter_any():
                        data += chunk
                        if len(data) > LARGEST:
                            break
                    text = data.decode(errors="replace")
        except TimeoutError:
            failure = Transient(f"{self.where}: no reply within {self._timeout:g} s", lost=True)
        except Exception as error:
            failure = Transient(f"{self.where}: no connection, or it was lost ({type(error).__name__})", lost=True)
        else:
            if 200 <= response.status < 300:
                return text
            failure = failure_of(response.status, response.headers, text, self._redact, self.where)
        # Outside the handler, so that an exception which may hold headers is not chained to ours.
        raise failure


_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|maximum context|too many tokens|(prompt|input) is too long|exceed_context", re.I
)
# llama.cpp answers 500 if it cannot parse a model's call: the model's fault, not an outage.
_UNREADABLE = re.compile(r"failed to parse (input|tool|messages)|parse error", re.I)
_SETTINGS = (
    "max_completion_tokens max_tokens parallel_tool_calls tool_choice response_format reasoning_effort output_config "
    "effort temperature tools"
).split()
_REFUSALS = {401: "refuses the key", 403: "refuses the key", 404: "knows no such model or address"}


def failure_of(status: int, headers: Mapping[str, str], text: str, redact: Redactor, where: str) -> Exception:
    """Return the exception for an error response; providers of this family use much the same responses."""
    try:
        body = decode(text)
    except msgspec.MsgspecError:
        body = text
    inner = body.get("error", body) if isinstance(body, dict) else body
    code = str(inner.get("code") or inner.get("type") or "") if isinstance(inner, dict) else ""
    said = inner.get("message") if isinstance(inner, dict) else inner
    message = redact(" ".join(str(said or "without a reason").split()))[:300]
    if status == 429 and code == "insufficient_quota":
        return Rejected(f"{where} says the account's quota is used up: {message}")
    if status == 429:
        return Transient(f"429: {message}", limited=True, after=retry_after(headers))
    if _TOO_LONG.search(code) or (status < 500 and _TOO_LONG.search(message)):
        return TooLong(message)
    if status >= 500 and _UNREADABLE.search(message):
        return Unreadable(message)
    if status >= 500 or status in (408, 409, 425):
        return Transient(f"{status}: {message}", after=retry_after(headers))
    named = _named(inner, message)
    if named and status in (400, 422):
        return RefusedSetting(named, f"{where} rejects the request ({status}): {message}")
    return Rejected(f"{where} {_REFUSALS.get(status, 'rejects the request')} ({status}): {message}")


def _named(inner: Any, message: str) -> tuple[str, ...]:
    """Return the settings that a 400 names: first the one in `param`, then those in its message."""
    pointed = str(inner.get("param") or "").partition(".")[0] if isinstance(inner, dict) else ""
    worded = [setting for setting in _SETTINGS if re.search(rf"\b{setting}\b", message)]
    return tuple(dict.fromkeys([pointed] * (pointed in _SETTINGS) + worded))
