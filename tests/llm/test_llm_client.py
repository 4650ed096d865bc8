"""The client: caps that hold, usage that adds up, costs from the table, prices that are never guessed."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from fault_server import FaultServer
from llm_fixtures import Told, client_for, direct_rows, flat_store, plain, quick, request, world

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.client import Budget, ModelClient
from kbgym.agents.llm.connect import Models, Options
from kbgym.agents.llm.policy import LLMAgent
from kbgym.agents.llm.prices import Prices, forecast
from kbgym.agents.llm.retry import CapReached, Outage, Transient
from kbgym.agents.llm.values import Reply, Sent, Usage
from kbgym.errors import BadInput
from kbgym.training.exam import Row, examine

PAID = Reply(text="x", prompt=1_000, cached=400, completion=200, reasoning=50)


def ask(client: ModelClient, times: int) -> list[Reply]:
    async def scene() -> list[Reply]:
        return [await client.ask(request(str(number))) for number in range(times)]

    return asyncio.run(scene())


def test_usage_adds_up() -> None:
    client = client_for(Told([PAID, Transient("x"), Transient("x"), PAID, PAID]))
    ask(client, 3)
    usage = client.usage
    assert (usage.requests, usage.prompt, usage.cached, usage.completion) == (3, 3_000, 1_200, 600)
    assert (usage.reasoning, usage.retries, usage.tokens) == (150, 2, 3_600)
    assert usage.cost is None


def test_sums_keep_what_was_sent_once_and_lose_the_cost_once_unknown() -> None:
    one = Usage(requests=1, cost=0.5, sent=(Sent("a"),))
    assert (one + one).sent == (Sent("a"),)
    assert (one + one).cost == 1.0
    assert (one + Usage(cost=None) + one).cost is None
    assert Usage() + one == one


def test_a_known_model_has_its_price_and_cached_tokens_are_cheaper() -> None:
    prices = Prices("openai", "gpt-5-mini-2025-08-07")
    assert prices.known
    client = client_for(Told([PAID]), prices=prices)
    ask(client, 1)
    full = prices.cost(Reply(prompt=1_000, completion=200))
    assert client.usage.cost is not None
    assert full is not None
    assert 0 < client.usage.cost < full
    # 600 + 400 cached prompt tokens and 200 completion tokens at $0.25, $0.025 and $2 a million.
    assert client.usage.cost == pytest.approx((600 * 0.25 + 400 * 0.025 + 200 * 2) / 1e6)


def test_an_unknown_model_has_no_price_and_no_money_cap() -> None:
    assert not Prices("openai", "no-such-model").known
    assert not Prices("local", "gpt-5-mini").known
    assert not Prices("openai", "gpt-5-mini", "http://127.0.0.1:8080/v1").known
    with pytest.raises(BadInput, match="no price is known"):
        client_for(Told([]), budget=Budget(max_cost=1.0))


def test_the_forecast_names_its_basis_and_its_table() -> None:
    prices = Prices("openai", "gpt-5-mini")
    typical = forecast(prices, {"forward": 200, "backward": 200})
    # The paper's run: 200 iterations, 18.8 million tokens, about $13.
    assert 9_400_000 < typical.tokens < 37_600_000
    assert typical.cost is not None
    assert 2 < typical.cost < 20
    assert "genai-prices" in str(typical)
    assert "typical" in str(typical)
    assert forecast(Prices("local", "x"), {"exam": 10}).cost is None


@pytest.mark.parametrize("at_once", [False, True])
def test_a_cap_is_passed_by_one_request_at_most(at_once: bool) -> None:
    provider = Told(lambda _: PAID)
    client = client_for(provider, budget=Budget(max_tokens=6_000), concurrency=8)

    async def scene() -> list[object]:
        # The first request shows what one costs.
        results: list[object] = [await client.ask(request("first"))]
        requests = [request(str(number)) for number in range(40)]
        if at_once:
            return results + await asyncio.gather(*map(client.ask, requests), return_exceptions=True)
        for each in requests:
            try:
                results.append(await client.ask(each))
            except CapReached as cap:
                results.append(cap)
        return results

    results = asyncio.run(scene())
    assert len(provider.requests) == 5  # 1,200 tokens each
    assert client.budget.spent.tokens == 6_000
    assert sum(isinstance(result, CapReached) for result in results) == 36
    assert "max_tokens 6000" in str(next(result for result in results if isinstance(result, CapReached)))


def test_a_money_cap_stops_too() -> None:
    prices = Prices("openai", "gpt-5-mini")
    client = client_for(Told(lambda _: PAID), budget=Budget(max_cost=0.001), prices=prices)
    with pytest.raises(CapReached, match=r"--max-cost 0\.001"):
        ask(client, 10)
    assert client.budget.spent.cost is not None
    assert 0.001 <= client.budget.spent.cost < 0.0016


def test_an_outage_is_an_outage() -> None:
    with pytest.raises(Outage):
        ask(client_for(Told(lambda _: (_ for _ in ()).throw(Transient("503")))), 1)


def test_names_that_are_no_agent_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    models = Models()
    for name in ("llm:", "llm:openai", "llm:openai/", "llm:nobody/m", "gpt", "cassette:"):
        with pytest.raises(BadInput, match=r"there is no (agent|model)"):
            models.client(name, "reader")
    with pytest.raises(BadInput, match="OPENAI_API_KEY"):
        models.client("llm:openai/m", "reader")
    with pytest.raises(BadInput, match="ANTHROPIC_API_KEY"):
        models.client("llm:anthropic/m", "reader")
    with pytest.raises(BadInput, match="does not start with http"):
        Models(Options(base_url="localhost:8080")).client("llm:local/m", "reader")


def test_the_papers_settings_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    models = Models()
    _, reader = models.client("llm:openai/m", "reader")
    _, judge = models.client("llm:openai/m", "judge")
    assert (reader.temperature, reader.effort, reader.max_tokens) == (0.3, "low", 12_000)
    assert (judge.effort, judge.max_tokens) == ("minimal", 500)
    asyncio.run(models.close())


def test_the_same_models_serve_one_event_loop_after_another(caplog: pytest.LogCaptureFixture) -> None:
    asked = world().split("test_in")[:2]
    with FaultServer() as server:
        models = Models(Options(base_url=server.url), quick(2))
        agent = LLMAgent(models, "llm:local/m", "reader")

        async def once() -> list[Row]:
            store, engine = flat_store()
            return plain(await examine(store, engine, asked, agent))

        assert asyncio.run(once()) == asyncio.run(once()) == direct_rows(asked)
        # Every loop has closed its own connections: nothing is left to close, and nothing complains.
        asyncio.run(models.close())
        gc.collect()
    assert "Unclosed" not in caplog.text


def test_the_forecast_of_an_exam_is_within_a_factor_of_three_of_a_recording() -> None:
    file = Path(__file__).parents[2] / "examples" / "harbour" / "scripted.cassette.jsonl"
    said = [one for one in Cassette(file, record=False).exchanges if one.system.startswith("# Finding answers")]
    passes = sum(not any(message.role == "assistant" for message in one.messages) for one in said)
    used = sum(one.reply.prompt + one.reply.completion for one in said)
    told = forecast(Prices("local", "x"), {"exam": passes}).tokens
    assert passes > 20 and used / 3 < told < 3 * used
