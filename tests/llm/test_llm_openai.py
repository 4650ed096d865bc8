"""OpenAI's protocol against a real local server: two ways to one call, refused settings, errors as what they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from fault_server import FaultServer
from llm_fixtures import quick
from prompt_reader import calling
from turns import turn

from kbgym.agents.llm.connect import Models, Options
from kbgym.agents.llm.policy import LLMAgent, LLMPolicy
from kbgym.agents.llm.protocols import OpenAI
from kbgym.agents.llm.retry import Outage, Rejected
from kbgym.gym.actions import Search
from kbgym.gym.policy import AgentFailed, Forward, View
from kbgym.gym.tools import openai_tools, tools_of

SEARCH = [("search", '{"query":"who"}')]
FIRST = View("reader", Forward("Who?"), (), 15)
LATER = View("reader", Forward("Who?"), (turn(Search("who"), "[d1] Anna lives in Lund."),), 14)


class Refuses(FaultServer):
    """Answers with a status and a body of the test's choosing while `refuse` says so."""

    def __init__(self, refuse: Callable[[dict[str, Any]], tuple[int, dict[str, Any]] | None], **more: Any) -> None:
        super().__init__(lambda body: calling(body, SEARCH), **more)
        self._refuse = refuse

    async def _respond(self, line: str, headers: dict[str, str], raw: bytes, writer: Any) -> bool:
        refusal = self._refuse(json.loads(raw))
        if refusal is None:
            return await super()._respond(line, headers, raw, writer)
        self.bodies.append(json.loads(raw))
        await self._send(writer, refusal[0], json.dumps({"error": refusal[1]}).encode())
        return True


def act(url: str, views: list[View], name: str = "llm:local/m", **options: Any) -> LLMPolicy:
    async def scene() -> LLMPolicy:
        models = Models(Options(base_url=url, timeout=2.0, **options), quick(4))
        policy = LLMAgent(models, name, "reader")()
        try:
            for view in views:
                assert await policy.act(view) == Search("who")
        finally:
            await models.close()
        return policy

    return asyncio.run(scene())


def says(content: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda body: {"role": "assistant", "content": content} if "tools" in body else calling(body, SEARCH)


def test_a_forced_tool_call_and_what_is_sent() -> None:
    with FaultServer(lambda body: calling(body, SEARCH)) as server:
        policy = act(server.url, [FIRST, LATER])
    first, later = server.bodies
    assert first["tool_choice"] == "required"
    assert first["tools"] == openai_tools("reader") == later["tools"]
    assert (first["temperature"], first["max_tokens"]) == (0.3, 2_048)
    assert [message["role"] for message in later["messages"]] == ["system", "user", "assistant", "tool"]
    assert later["messages"][-1]["tool_call_id"] == later["messages"][-2]["tool_calls"][0]["id"]
    (sent,) = policy.usage.sent
    assert (sent.way, sent.temperature, sent.max_tokens, sent.refused) == ("tools", 0.3, 2_048, ())
    assert policy.usage.cached > 0
    assert policy.usage.reasoning == 10


def test_a_server_that_does_not_enforce_tool_choice_gets_a_schema() -> None:
    with FaultServer(says("I would search.")) as server:
        policy = act(server.url, [FIRST, LATER])
    assert policy.usage.malformed == 3  # what it takes to notice
    last = server.bodies[-1]
    assert "tools" not in last
    assert last["response_format"]["type"] == "json_schema"
    calls = last["response_format"]["json_schema"]["schema"]["properties"]["call"]["anyOf"]
    assert [call["properties"]["tool"]["const"] for call in calls] == ["search", "read", "answer"]
    assert [message["role"] for message in last["messages"]] == ["system", "user", "assistant", "user"]
    assert "`search`" in last["messages"][0]["content"]
    assert policy.usage.sent[-1].way == "schema"


def test_a_server_without_tools_gets_a_schema_at_once() -> None:
    def refuse(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        return (400, {"message": "m does not support tools"}) if "tools" in body else None

    with Refuses(refuse) as server:
        policy = act(server.url, [FIRST, LATER])
    assert policy.usage.malformed == 0
    assert len(server.bodies) == 3


def test_a_server_without_either_still_gets_tools() -> None:
    def refuse(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        return (400, {"message": "unknown field response_format"}) if "response_format" in body else None

    with Refuses(refuse) as server:

        async def scene() -> None:
            models = Models(Options(base_url=server.url))
            agent = LLMAgent(models, "llm:local/m", "reader")
            assert isinstance(agent.client.provider, OpenAI)
            agent.client.provider.way = "schema"
            assert await agent().act(FIRST) == Search("who")
            assert agent.client.provider.way == "tools"
            await models.close()

        asyncio.run(scene())


def test_settings_a_model_refuses_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")

    def refuse(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if "temperature" in body:
            return 400, {"message": "Unsupported value: does not support 0.3", "param": "temperature"}
        if "reasoning_effort" in body:
            return 400, {"message": "Unrecognized request argument supplied: reasoning_effort"}
        if "max_completion_tokens" in body:
            return 400, {"message": "Unknown 'max_completion_tokens'; use 'max_tokens'."}
        return None

    with Refuses(refuse) as server:
        policy = act(server.url, [FIRST, LATER], "llm:openai/m")
    assert len(server.bodies) == 5  # each is learned once
    assert server.bodies[-1]["max_tokens"] == 12_000
    (sent,) = policy.usage.sent
    assert (sent.temperature, sent.effort) == (None, None)
    assert sent.refused == ("temperature", "reasoning_effort", "max_completion_tokens")


def test_a_refusal_that_leaving_out_does_not_cure_is_final() -> None:
    with (
        Refuses(lambda _: (400, {"message": "temperature must be zero on sundays"})) as server,
        pytest.raises(Rejected, match="sundays"),
    ):
        act(server.url, [FIRST])
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("status", "error", "raised", "says"),
    [
        (401, {"message": "bad key"}, Rejected, "refuses the key"),
        (403, {"message": "no"}, Rejected, "refuses the key"),
        (404, {"message": "no such model"}, Rejected, "no such model or address"),
        (429, {"message": "pay", "code": "insufficient_quota"}, Rejected, "quota"),
        (429, {"message": "slow down"}, Outage, "429: slow down"),
        (503, {"message": "busy"}, Outage, "503: busy"),
        (422, {"message": "odd"}, Rejected, "rejects the request"),
        (400, {"message": "This model's maximum context length is 8192 tokens"}, AgentFailed, "no longer fits"),
        (400, {"message": "too big", "type": "exceed_context_size_error"}, AgentFailed, "no longer fits"),
        (500, {"message": "Failed to parse input at pos 3"}, AgentFailed, "text without a call"),
    ],
)
def test_errors_are_what_they_are(status: int, error: dict[str, Any], raised: type[Exception], says: str) -> None:
    with Refuses(lambda _: (status, error)) as server, pytest.raises(raised, match=says):
        act(server.url, [FIRST])


def test_an_anthropic_tool_set_is_the_one_tools_py_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    with FaultServer(lambda body: calling(body, SEARCH)) as server:
        policy = act(server.url.removesuffix("/v1"), [FIRST, LATER], "llm:anthropic/m")
    first, later = server.bodies
    described = [(tool["name"], tool["description"], tool["input_schema"]) for tool in first["tools"]]
    assert described == [(tool.name, tool.description, tool.schema) for tool in tools_of("reader")]
    assert first["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    # The mark is on the last block that stays; the budget comes after it.
    result, tail = later["messages"][-1]["content"]
    assert result["type"] == "tool_result"
    assert result["cache_control"] == {"type": "ephemeral"}
    assert tail == {"type": "text", "text": "Actions left: 14."}
    assert policy.usage.prompt > policy.usage.cached > 0
    assert "sk-ant-0123456789" in server.headers[0].values() or "Bearer sk-ant-0123456789" in server.headers[0].values()


def test_what_goes_over_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    seen: list[str] = []

    def refuse(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        seen.append("x")
        return (503, {"message": "busy"}) if len(seen) == 1 else None

    with Refuses(refuse) as server:
        policy = act(f"{server.url}?version=3", [FIRST], "llm:openai/m")
    assert policy.usage.retries == 1
    (headers,) = server.headers
    assert headers["authorization"] == "Bearer sk-test-0123456789"
    assert headers["content-type"] == "application/json"
    assert server.lines[0].startswith("POST /v1/chat/completions?version=3 ")
    assert server.bodies[-1]["messages"][-1]["content"] == "Question: Who?\n\nActions left: 15."


def test_a_model_may_be_asked_for_a_thought_before_its_call() -> None:
    call = '"call":{"tool":"search","arguments":{"query":"who"}}'
    with FaultServer(
        lambda body: {"role": "assistant", "content": f'{{"known":"","missing":"the name",{call}}}'}
    ) as server:
        policy = act(server.url, [FIRST, LATER], effort="thought")
    first, later = (body["response_format"]["json_schema"]["schema"]["properties"] for body in server.bodies)
    assert list(first) == ["call"] and list(later) == ["known", "missing", "call"]
    tools = [[call["properties"]["tool"]["const"] for call in one["call"]["anyOf"]] for one in (first, later)]
    assert tools == [["search"], ["search", "read", "answer"]]  # nothing can be answered before a search
    assert "reasoning_effort" not in server.bodies[0] and policy.usage.malformed == 0
