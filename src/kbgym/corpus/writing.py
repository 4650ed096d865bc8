"""A model that is asked many single questions, each to be answered by one call: what rewriting and drafting share.

Every reply is read by a function that gives a value or says what is wrong with it. A flawed reply is answered with one
correction; if the next is flawed too, there is no value. An outage or a cap is nobody's flaw and passes through. Equal
requests are made once, so that a recording plays back the same in whatever order the replies come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from kbgym.agents.prompting import prompt
from kbgym.canonical import decode
from kbgym.llm.client import Client
from kbgym.llm.connect import Models, Settings
from kbgym.llm.errors import TooLong
from kbgym.llm.values import Message, Reply, Request

TRIES = 2
_QUOTED = 600
T = TypeVar("T")
Tick = Callable[[int, int, str], None]
Confirm = Callable[[Sequence[Request]], None]


class Flawed(msgspec.Struct, frozen=True):
    """A reply that cannot be used, and why, as the end of "That cannot be used: "."""

    reason: str


Read: TypeAlias = Callable[[Reply], T | Flawed]
Job: TypeAlias = tuple[Request, Read[T]]


class Writer:
    """One model in the role of a writer."""

    def __init__(self, models: Models, name: str, concurrency: int = 16) -> None:
        self._client: Client
        self._settings: Settings
        self._client, self._settings = models.client(name, "writer")
        self._concurrency = concurrency

    @property
    def name(self) -> str:
        """Who writes; for a cassette, who was recorded."""
        return self._client.name

    def request(self, skill: str, text: str, tool: dict[str, Any]) -> Request:
        """A prompt of ours, what is to be worked on, and the one call that is allowed."""
        return Request(
            model=self._settings.model,
            system=prompt(skill),
            messages=(Message("user", text),),
            tools=({"type": "function", "function": tool},),
            max_tokens=self._settings.max_tokens,
            temperature=self._settings.temperature,
            effort=self._settings.effort,
        )

    def new(self, requests: Sequence[Request]) -> list[Request]:
        """Those that will be sent to the model: each once, and none that is on the cassette."""
        cassette = self._client.cassette
        distinct = {request.hash: request for request in requests}
        return [request for hash, request in distinct.items() if cassette is None or not cassette.holds(hash)]

    def ask(self, jobs: Sequence[Job[T]], tick: Tick | None = None) -> list[T | None]:
        """What was read out of the reply to each request, None where no reply was of use."""
        return asyncio.run(self._ask_all(jobs, tick or (lambda done, total, note: None)))

    async def _ask_all(self, jobs: Sequence[Job[T]], tick: Tick) -> list[T | None]:
        hashes = [request.hash for request, _ in jobs]
        distinct = dict(zip(hashes, jobs, strict=True))
        found: dict[str, T | None] = {}
        failures: list[Exception] = []

        async def work(waiting: Iterator[tuple[str, Job[T]]]) -> None:
            for hash, (request, read) in waiting:
                try:
                    found[hash] = await self._ask(request, read)
                except Exception as failure:
                    failures.append(failure)
                if failures:
                    return  # what is under way elsewhere is paid for, so it is waited for and recorded
                tick(len(found), len(distinct), "")

        waiting = iter(distinct.items())
        # More at once than the limit that was asked for: the client holds requests to that.
        await asyncio.gather(*(work(waiting) for _ in range(min(len(distinct), 2 * self._concurrency))))
        if failures:
            raise failures[0]
        return [found[hash] for hash in hashes]

    async def _ask(self, request: Request, read: Read[T]) -> T | None:
        for _ in range(TRIES):
            try:
                reply = await self._client.ask(request)
            except TooLong:
                return None
            value = read(reply)
            if not isinstance(value, Flawed):
                return value
            self._client.count_malformed()
            correction = (Message("assistant", _quoted(reply)), Message("user", _correction(value.reason, request)))
            request = msgspec.structs.replace(request, messages=request.messages + correction)
        return None


def read_call(reply: Reply, name: str, type: type[T]) -> T | Flawed:
    """The arguments of the one call a reply should hold."""
    if len(reply.calls) != 1 or reply.calls[0].name != name:
        cut = " before it was cut off" if reply.finish == "length" else ""
        return Flawed(f"it was not one call of {name}{cut}.")
    try:
        return decode(reply.calls[0].arguments, type)
    except msgspec.DecodeError as error:
        return Flawed(f"the arguments of {name} do not fit: {error}.")


def _quoted(reply: Reply) -> str:
    calls = "\n".join(f"{call.name} {call.arguments}" for call in reply.calls)
    said = "\n".join(part for part in (reply.text.strip(), calls) if part)
    return f"{said[:_QUOTED]} [...]" if len(said) > _QUOTED else said or "(nothing)"


def _correction(reason: str, request: Request) -> str:
    name = request.tools[0]["function"]["name"]
    return f"That cannot be used: {reason} Call `{name}` once more, and nothing else."
