"""The judge: a verdict or an error that stops the run, never a silence taken for a no."""

from __future__ import annotations

import asyncio

import pytest
from fault_server import FaultServer
from llm_fixtures import Told, called, quick
from prompt_reader import calling

from kbgym.agents.llm.connect import Models, Options
from kbgym.agents.llm.policy import KNOWN, JudgeFailed, LLMJudge
from kbgym.agents.llm.values import Reply
from kbgym.gym.actions import Add, Added, Merged
from kbgym.gym.environment import Environment
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.store import Store, source

YES, NO = called("verdict", '{"duplicate":true}'), called("verdict", '{"duplicate":false}')


def judge(replies: list[Reply]) -> tuple[LLMJudge, Told]:
    made = LLMJudge(Models(Options(base_url="http://127.0.0.1:9/v1"), quick()), "llm:local/m")
    told = Told(replies)
    made._client.provider = told
    return made, told


def test_verdicts() -> None:
    made, told = judge([YES, NO])
    assert asyncio.run(made.duplicate("a", "b")) is True
    assert asyncio.run(made.duplicate("a", "b")) is False
    assert told.requests[0].max_tokens == 500
    assert made.usage.requests == 2


@pytest.mark.parametrize(
    ("silence", "says"),
    [
        (Reply(), "not one call of verdict"),
        (Reply(finish="length", completion=500), "cut off"),
        (Reply(text="They look alike."), "not one call of verdict"),
        (called("verdict", '{"duplicate":"maybe"}'), "do not fit"),
    ],
)
def test_a_judge_that_does_not_answer_stops_the_run(silence: Reply, says: str) -> None:
    made, told = judge([silence] * 3)
    with pytest.raises(JudgeFailed, match=says):
        asyncio.run(made.duplicate("a", "b"))
    assert len(told.requests) == 3


def test_one_hiccup_is_forgiven_and_counted() -> None:
    made, _ = judge([Reply(), YES])
    assert asyncio.run(made.duplicate("a", "b")) is True
    assert made.usage.malformed == 1


@pytest.mark.parametrize(("replies", "says"), [([NO], "a known duplicate"), ([YES, YES], "two sentences that differ")])
def test_the_self_test_finds_a_judge_that_always_says_the_same(replies: list[Reply], says: str) -> None:
    made, _ = judge(replies)
    with pytest.raises(JudgeFailed, match=says):
        asyncio.run(made.self_test())


def test_a_good_judge_passes_the_self_test() -> None:
    made, told = judge([YES if expected else NO for *_, expected in KNOWN])
    asyncio.run(made.self_test())
    assert len(told.requests) == len(KNOWN)


def test_a_model_behind_the_guard() -> None:
    """The whole way: an add, a near neighbour, a model asked over HTTP, a merge with its verdict recorded."""
    store = Store([source("d1", "The ferry to Lund sails at noon.")])
    engine = Engine(HashEmbedder())
    engine.load((record.id, record.text) for record in store)

    def duplicate(body: dict[str, object]) -> dict[str, object]:
        return calling(body, [("verdict", '{"duplicate":true}')])

    with FaultServer(duplicate) as server:

        async def scene() -> None:
            models = Models(Options(base_url=server.url), quick())
            environment = Environment(store, engine, LLMJudge(models, "llm:local/m"))
            step = await environment.step(Add("The ferry to Lund sails at noon sharp."), "curator")
            assert step.result == Merged("d1")
            assert step.verdict is not None
            assert step.verdict.checks[0].judge == "llm:local/m"
            far = await environment.step(Add("Bakers."), "curator")
            assert isinstance(far.result, Added)
            await models.close()

        asyncio.run(scene())
    assert len(server.bodies) == 1
