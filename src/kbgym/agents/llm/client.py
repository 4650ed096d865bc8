"""One model, asked reliably: cassette first, then budget, then a free slot, then bounded retries.

The client does not know what the messages mean. `Asker` asks until a reply can be used, for policies, judge and writer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.prices import Prices
from kbgym.agents.llm.retry import CapReached, Retry
from kbgym.agents.llm.values import Message, ModelSettings, Reply, Request, Usage
from kbgym.canonical import decode
from kbgym.errors import BadInput

T = TypeVar("T")
_POLL = 0.02  # seconds between looks at a budget that is nearly spent


class Provider(Protocol):
    """One endpoint: `send` returns a reply or raises an error of `retry.py`."""

    @property
    def where(self) -> str: ...

    async def send(self, request: Request) -> Reply: ...


class Budget:
    """The limits and the spending of a run, shared by all its models. Replies from a cassette count as spent."""

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        self.spent = Usage()
        self._under_way = 0

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Reserve one request. Near a cap requests run one at a time, so that at most one exceeds it."""
        while self._under_way and self._near():
            await asyncio.sleep(_POLL)
        self._check()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def _near(self) -> bool:
        """Return True if the requests in flight, at the mean cost so far, would reach a cap."""
        share = 1 + self._under_way / self.spent.requests if self.spent.requests else 1.0
        return any(spent * share >= cap for cap, spent, _ in self._caps())

    def _caps(self) -> list[tuple[float, float, str]]:
        """Return the caps that are set: the limit, what is spent of it, its name."""
        caps = (self.max_cost, self.spent.cost, "--max-cost"), (self.max_tokens, self.spent.tokens, "max_tokens")
        return [(cap, spent, name) for cap, spent, name in caps if cap is not None and spent is not None]

    def _check(self) -> None:
        for cap, spent, name in self._caps():
            if spent >= cap:
                raise CapReached(
                    f"{name} {cap:g} is reached ({spent:g} spent): what was finished is kept; raise the cap and run "
                    "the same command again to go on."
                )


class ModelClient:
    """A model behind a provider, asked by at most `concurrency` requests at once. Without a provider it plays back."""

    def __init__(
        self,
        name: str,
        provider: Provider | None,
        prices: Prices,
        concurrency: int = 8,
        retry: Retry | None = None,
        cassette: Cassette | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.name = name
        self.provider = provider
        self.prices = prices
        self.cassette = cassette
        self.budget = budget or Budget()
        self.usage = Usage()
        self._concurrency = concurrency
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._retry = retry or Retry()
        self._answered = False
        if self.budget.max_cost is not None and provider is not None and not prices.known:
            raise BadInput(
                f"no price is known for {name}, so --max-cost cannot be kept; use --set max_tokens=N instead."
            )

    async def ask(self, request: Request) -> Reply:
        """Return a reply from the cassette, else from the model; new replies are recorded before they are returned."""
        hash = request.hash
        reply = self.cassette.play(hash) if self.cassette is not None else None
        if reply is None:
            reply = await self._live(hash, request)
        self.usage += Usage.of(reply)
        return reply

    def described(self, settings: ModelSettings, prompts: dict[str, str]) -> dict[str, Any]:
        """Return the description of the model for a run's settings: name, settings, hashes of the prompts."""
        return {"agent": self.name, "settings": msgspec.to_builtins(settings), "prompts": prompts}

    async def _live(self, hash: str, request: Request) -> Reply:
        provider = self.provider
        if provider is None:
            where = self.cassette.path if self.cassette is not None else "the cassette"
            raise BadInput(
                f"{where} holds no reply to this request ({hash[:12]}): it was recorded with other questions, "
                "documents, prompts or settings."
            )
        async with self.budget.request():
            known = self._answered
            reply, retries = await self._retry.run(lambda: self._once(provider, request), self.name, known)
            reply = msgspec.structs.replace(reply, retries=retries, cost=self.prices.cost(reply))
            self.budget.spent += msgspec.structs.replace(Usage.of(reply), sent=())
        if self.cassette is not None and self.cassette.record:
            self.cassette.take(hash, request, reply)
        return reply

    async def _once(self, provider: Provider, request: Request) -> Reply:
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = loop, asyncio.Semaphore(self._concurrency)
        async with self._slots[1]:
            reply = await provider.send(request)
            self._answered = True
            return reply


class Flawed(msgspec.Struct, frozen=True):
    """A reply that cannot be used, and the reason in one sentence."""

    reason: str


ReadReply: TypeAlias = Callable[[Reply], T | Flawed]


class Asker:
    """One model with its settings. `usage` counts the requests made through this object."""

    def __init__(self, client: ModelClient, settings: ModelSettings) -> None:
        self.usage = Usage()
        self._client = client
        self._settings = settings

    @property
    def name(self) -> str:
        """Return the model's name; for a cassette, that of the recorded model."""
        return self._client.name

    async def until_valid(
        self,
        request: Request,
        read: ReadReply[T],
        tries: int,
        correction: Callable[[str], str] | None = None,
        quoted: int = 400,
    ) -> T | Flawed:
        """Return the value of the first valid reply, or the flaw of the last of `tries` replies.

        Args:
            correction: makes the message that follows a flawed reply; without it the same request is made again.
            quoted: the number of characters of the flawed reply that are shown with the correction.
        """
        while True:
            reply = await self._client.ask(request)
            self.usage += Usage.of(reply)
            value = read(reply)
            if not isinstance(value, Flawed):
                return value
            self.usage += Usage(malformed=1)
            self._client.usage += Usage(malformed=1)
            tries -= 1
            if tries < 1:
                return value
            if correction is not None:
                told = (Message("assistant", _quoted(reply, quoted)), Message("user", correction(value.reason)))
                request = msgspec.structs.replace(request, messages=request.messages + told)


def read_call(reply: Reply, name: str, type: type[T]) -> T | Flawed:
    """Return the arguments of the one call that a reply should hold."""
    if len(reply.calls) != 1 or reply.calls[0].name != name:
        cut = " before it was cut off" if reply.finish == "length" else ""
        return Flawed(f"it was not one call of {name}{cut}.")
    try:
        return decode(reply.calls[0].arguments, type)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        return Flawed(f"the arguments of {name} do not fit: {error}.")


def _quoted(reply: Reply, most: int) -> str:
    calls = "\n".join(f"{call.name} {call.arguments}" for call in reply.calls)
    said = "\n".join(part for part in (reply.text.strip(), calls) if part)
    return f"{said[:most]} [...]" if len(said) > most else said or "(nothing)"
