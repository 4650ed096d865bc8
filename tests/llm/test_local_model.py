"""The real thing: a small language model on this machine plays a training run and an exam, end to end.

What the untaught model answers is worth nothing; that every step of the way is a real one is what this shows. `make
test-llm` runs it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from llm_fixtures import plain, train, world

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.connect import Models, Options
from kbgym.agents.llm.policy import LLMAgent
from kbgym.api.factory import embedder_named
from kbgym.search.factory import engine_for
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import Row, examine
from kbgym.training.run import Settings
from kbgym.training.session import Agents

SHORT = Settings(forward_budget=3)
SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "local_model.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("local_model", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MISSING = script().missing()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(MISSING is not None, reason=f"no local model: {MISSING}"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("server") / "log").open("wb")
    process = subprocess.Popen([sys.executable, str(SCRIPT), "--port", str(port)], stdout=log, stderr=log)
    try:
        for _ in range(240):
            assert process.poll() is None, "the server ended"
            try:
                with urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=2) as reply:
                    if reply.status == 200:
                        break
            except (URLError, OSError):
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        # SIGTERM does not stop it.
        process.kill()
        process.wait()
        log.close()


def options(url: str, cassette: Path) -> Options:
    return Options(base_url=url, concurrency=1, timeout=300.0, completion=100, cassette=cassette)


def test_a_training_run_and_an_exam(url: str, tmp_path: Path) -> None:
    folder, cassette = tmp_path / "run", tmp_path / "c.jsonl"
    models = Models(options(url, cassette))
    reader = LLMAgent(models, "llm:local/smollm2", "reader")
    curator = LLMAgent(models, "llm:local/smollm2", "curator")

    async def played() -> list[Row]:
        try:
            await train(folder, Agents(reader, curator), questions=1, forward_budget=3, backward_budget=3)
            store = StoreFolder(folder).store()
            engine = engine_for(store, embedder_named("hash"))
            return await examine(store, engine, world().split("test_in")[:2], reader, settings=SHORT, concurrency=1)
        finally:
            await models.close()

    rows = asyncio.run(played())
    usage = reader.client.usage
    assert usage.requests >= 5
    assert usage.prompt > 1000
    assert usage.completion > 0
    assert {row.outcome for row in rows} <= {"answered", "out_of_budget", "agent_failed"}
    assert any(row.actions > 0 for row in rows)
    assert usage.malformed < usage.requests
    # The store is the fold of its trace, and the exam plays again from the cassette without the server.
    assert len(StoreFolder(folder).store()) >= len(world().documents)
    assert len(Cassette(cassette, record=False)) == usage.requests
    again = LLMAgent(Models(), f"cassette:{cassette}", "reader")
    assert again.name == "llm:local/smollm2"

    async def once_more() -> list[Row]:
        store = StoreFolder(folder).store()
        engine = engine_for(store, embedder_named("hash"))
        return await examine(store, engine, world().split("test_in")[:2], again, settings=SHORT, concurrency=1)

    assert plain(asyncio.run(once_more())) == plain(rows)


def test_both_ways_to_one_call(url: str, tmp_path: Path) -> None:
    """Forced tool calls and a JSON schema, each by itself, give calls this server's model could not talk past."""
    from kbgym.agents.llm.openai_api import OpenAI
    from kbgym.gym.policy import AgentFailed, Forward, View

    view = View("reader", Forward("What is the job of Anna Berg?"), (), 5)
    for way in ("tools", "schema"):
        models = Models(options(url, tmp_path / f"{way}.jsonl"))
        agent = LLMAgent(models, "llm:local/smollm2", "reader")
        assert isinstance(agent.client.provider, OpenAI)
        agent.client.provider.ways.only(way)  # type: ignore[arg-type]

        async def scene(agent: LLMAgent = agent, models: Models = models) -> None:
            for _ in range(4):
                try:
                    await agent().act(view)
                except AgentFailed:
                    continue
            await models.close()

        asyncio.run(scene())
        replies = [exchange.reply for exchange in Cassette(tmp_path / f"{way}.jsonl", record=False).exchanges]
        assert {reply.sent.way for reply in replies if reply.sent} == {way}
        # Only a reply that ran into its token limit may hold no call.
        assert all(len(reply.calls) == 1 or reply.finish == "length" for reply in replies)
        assert any(reply.calls for reply in replies)
