"""A pass that is handed its calls: the budget, checks and endings of every other pass, one call at a time."""

from __future__ import annotations

import asyncio

import pytest
from family import family, store_with

from kbgym.agents.llm.prompting import shown_result, tail, task_block
from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Answer, Search
from kbgym.gym.environment import Environment
from kbgym.gym.policy import Forward
from kbgym.integrations.tool_calls import OVER, PassByCalls, told
from kbgym.search.factory import engine_for

TASK = Forward("What is Ada Alm's job?")


@pytest.fixture
def reading() -> PassByCalls:
    made = store_with(family())
    return PassByCalls(Environment(made, engine_for(made, embedder_named("hash"))), "reader", TASK, 3)


def test_the_task_ends_with_the_budget() -> None:
    assert told(TASK, 3) == f"{task_block(TASK)}\n\n{tail(3)}" and TASK.question in told(TASK, 3)


def test_every_call_is_an_action_until_the_budget_is_spent(reading: PassByCalls) -> None:
    async def work() -> None:
        assert (reading.remaining, reading.over) == (3, False)
        for left in (2, 1, 0):
            assert not reading.over
            seen = await reading.act(Search("baker", 3 - left))
            assert seen == reading.transcript.steps[-1].observation.text and seen != OVER
            assert len({step.observation.text for step in reading.transcript.steps}) == 3 - left, "each shows its own"
            assert (reading.remaining, len(reading.transcript.steps)) == (left, 3 - left)
        assert reading.over and reading.transcript.outcome == "out_of_budget"
        assert await reading.act(Search("baker")) == OVER and len(reading.transcript.steps) == 3

    asyncio.run(work())


def test_an_answer_ends_it_with_actions_to_spare(reading: PassByCalls) -> None:
    async def work() -> None:
        await reading.act(Answer("baker"))
        assert reading.over and (reading.transcript.outcome, reading.transcript.answer) == ("answered", "baker")
        assert await reading.act(Search("baker")) == OVER and reading.remaining == 2

    asyncio.run(work())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "baker"}, "Ada Alm"),
        ('{"query": "baker"}', "Ada Alm"),
        ("", "query"),
        ("{", "the arguments are no JSON object."),
        ("[1]", "the arguments are no JSON object."),
    ],
)
def test_arguments_come_as_a_mapping_or_as_a_model_wrote_them(reading: PassByCalls, arguments, said: str) -> None:
    shown = asyncio.run(reading.call("search", arguments))
    assert said in shown and reading.remaining == 2
    assert shown == shown_result(reading.transcript.steps[-1].observation.text, 2)


def test_an_agent_that_fails_ends_it_unscored(reading: PassByCalls) -> None:
    asyncio.run(reading.act(Search("baker")))
    reading.fail("no reply")
    assert reading.over and (reading.transcript.outcome, reading.transcript.failure) == ("agent_failed", "no reply")
    assert len(reading.transcript.steps) == 1
