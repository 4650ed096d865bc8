"""Fixtures of the model tests: a small world, an exam over a server, and a scripted provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.client import Budget, ModelClient
from kbgym.agents.llm.connect import Models, Options
from kbgym.agents.llm.policy import LLMAgent
from kbgym.agents.llm.prices import Prices
from kbgym.agents.llm.retry import Retry
from kbgym.agents.llm.values import Call, Message, ModelSettings, Reply, Request, Usage
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api.factory import embedder_named
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.training.exam import Row, examine
from kbgym.training.run import Run
from kbgym.training.run import Settings as RunSettings
from kbgym.training.session import Agents
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate
from kbgym.worlds.world import Question, World

SETTINGS = ModelSettings("m", 0.3, None, 100)


def quick(attempts: int = 30) -> Retry:
    """Retries that hardly wait."""
    return Retry(attempts=attempts, first=0.005, longest=0.05)


@cache
def world() -> World:
    return generate(40, seed=1)


def flat_store() -> tuple[Store, Engine]:
    store = Store(source(document.id, document.text) for document in world().documents)
    engine = Engine(HashEmbedder())
    engine.load((record.id, record.text) for record in store)
    return store, engine


@cache
def direct_rows(questions: tuple[Question, ...]) -> list[Row]:
    """The exam without any server in between."""
    store, engine = flat_store()
    return asyncio.run(examine(store, engine, questions, ReferenceReader))


def plain(rows: Sequence[Row]) -> list[Row]:
    """The rows without what they cost, which differs between an agent that pays and one that does not."""
    return [msgspec.structs.replace(row, usage=None) if hasattr(row, "usage") else row for row in rows]


def events(trace: bytes) -> list[dict[str, Any]]:
    """A trace without hashes, costs and who played."""
    lines = [msgspec.json.decode(line) for line in trace.splitlines()]
    for line in lines:
        for gone in ("chain", "usage", "settings"):
            line.pop(gone, None)
    return lines


def exam(
    url: str,
    questions: Sequence[Question],
    out: Path | None = None,
    name: str = "llm:local/reference",
    allowance: int = 20,
    retry: Retry | None = None,
    **options: Any,
) -> tuple[list[Row], LLMAgent]:
    """The exam over a server."""
    options = {"base_url": url, "concurrency": 16, "timeout": 20.0} | options

    async def run() -> tuple[list[Row], LLMAgent]:
        models = Models(Options(**options), retry or quick())
        store, engine = flat_store()
        try:
            agent = LLMAgent(models, name, "reader", allowance)
            return plain(await examine(store, engine, questions, agent, out, concurrency=options["concurrency"])), agent
        finally:
            await models.close()

    return asyncio.run(run())


async def train(folder: Path, agents: Agents, questions: int = 8, **more: Any) -> bytes:
    """Train a run, or go on with it; the bytes of its trace."""
    settings = RunSettings(questions=questions, epochs=1, embedder="hash", eval=False, **more)
    run = Run.open_or_create(folder, world(), settings)
    engine = partial(engine_for, embedder=embedder_named("hash"))
    await Trainer(run, agents, engine).train()
    return (folder / "trace.jsonl").read_bytes()


def train_over(url: str, folder: Path, cassette: Path | None = None, **more: Any) -> tuple[bytes, Usage]:
    async def run() -> tuple[bytes, Usage]:
        models = Models(Options(base_url=url, cassette=cassette, timeout=20.0), quick(6))
        reader = LLMAgent(models, "llm:local/m", "reader", 20)
        agents = Agents(reader, LLMAgent(models, "llm:local/m", "curator", 20))
        try:
            return await train(folder, agents, **more), reader.client.usage
        finally:
            await models.close()

    return asyncio.run(run())


def train_reference(folder: Path) -> bytes:
    """The same training without any server in between."""
    return asyncio.run(train(folder, Agents(ReferenceReader, ReferenceCurator)))


class Told:
    """A provider that gives the replies it was made with, in order, and keeps the requests."""

    where = "told"

    def __init__(self, replies: Sequence[Reply | Exception] | Callable[[Request], Reply]) -> None:
        self._replies = replies
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        if callable(self._replies):
            return self._replies(request)
        reply = self._replies[len(self.requests) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply


def client_for(
    provider: Told | None,
    cassette: Cassette | None = None,
    budget: Budget | None = None,
    prices: Prices | None = None,
    concurrency: int = 4,
) -> ModelClient:
    return ModelClient("llm:local/m", provider, prices or Prices("local", "m"), concurrency, quick(), cassette, budget)


def called(name: str, arguments: str = "{}", **more: Any) -> Reply:
    return Reply(calls=(Call(name, arguments),), **more)


def request(text: str = "hello", **more: Any) -> Request:
    return Request("m", "be brief", (Message("user", text),), (), **more)
