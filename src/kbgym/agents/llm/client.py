"""One model, asked reliably: cassette first, then budget, then a place in the queue, then bounded retries.

What it does not know: what the messages mean, or whether a reply makes sense.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.limits import Limiter, Prices
from kbgym.agents.llm.retry import CapReached, Retry, Transient
from kbgym.agents.llm.values import Reply, Request, Usage
from kbgym.errors import BadInput


class Provider(Protocol):
    """One endpoint: a reply, or an error of `llm/errors.py`."""

    @property
    def where(self) -> str: ...

    async def send(self, request: Request) -> Reply: ...
    async def close(self) -> None: ...


class Budget:
    """What a run may spend and has spent, shared by all its models. What a cassette holds was spent too."""

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        self.spent = Usage()
        self._under_way = 0
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Room for one request. Near a cap requests go one after another, so that it is passed by one at most."""
        self._check()
        while self._under_way and self._near():
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
            self._check()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            waiting, self._waiting = self._waiting, []
            for turn in waiting:
                if not turn.done():
                    turn.set_result(None)

    def _near(self) -> bool:
        """Whether what is under way, at the mean cost so far, would reach a cap."""
        spent = self.spent
        share = 1 + self._under_way / spent.requests if spent.requests else 1.0
        by_cost = self.max_cost is not None and (spent.cost or 0.0) * share >= self.max_cost
        return by_cost or (self.max_tokens is not None and spent.tokens * share >= self.max_tokens)

    def _check(self) -> None:
        spent = self.spent
        go_on = "what was finished is kept; raise the cap and run the same command again to go on."
        if self.max_cost is not None and spent.cost is not None and spent.cost >= self.max_cost:
            raise CapReached(f"--max-cost {self.max_cost:g} is reached (${spent.cost:.4f} spent): {go_on}")
        if self.max_tokens is not None and spent.tokens >= self.max_tokens:
            raise CapReached(f"max_tokens {self.max_tokens} is reached ({spent.tokens:,} tokens used): {go_on}")


class ModelClient:
    """A model behind a provider. Without a provider it only plays back its cassette."""

    def __init__(
        self,
        name: str,
        provider: Provider | None,
        prices: Prices,
        limiter: Limiter | None = None,
        retry: Retry | None = None,
        cassette: Cassette | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.name = name
        self.provider = provider
        self.prices = prices
        self.limiter = limiter or Limiter(8)
        self.cassette = cassette
        self.budget = budget or Budget()
        self.usage = Usage()
        self._retry = retry or Retry()
        self._answered = False
        if self.budget.max_cost is not None and provider is not None and not prices.known:
            raise BadInput(
                f"no price is known for {name}, so --max-cost cannot be kept; use --set max_tokens=N instead."
            )

    async def ask(self, request: Request) -> Reply:
        """A reply from the cassette if it is there, else from the model; recorded before it is returned."""
        hash = request.hash
        reply = self.cassette.play(hash) if self.cassette is not None else None
        if reply is None:
            reply = await self._live(hash, request)
        self.usage += Usage.of(reply)
        return reply

    def count_malformed(self) -> None:
        self.usage += Usage(malformed=1)

    async def close(self) -> None:
        if self.provider is not None:
            await self.provider.close()

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
        async with self.limiter.slot(len(request.messages)) as since:
            try:
                reply = await provider.send(request)
            except Transient as error:
                if error.limited:
                    self.limiter.throttled(since)
                raise
            self.limiter.succeeded()
            self._answered = True
            return reply
