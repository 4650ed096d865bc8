"""Cassettes: what is recorded plays back, nothing is paid twice, a torn line costs one reply, damage is named."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_fixtures import SETTINGS, Told, called, client_for, request
from turns import turn

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.client import Budget
from kbgym.agents.llm.connect import Models, Options
from kbgym.agents.llm.policy import LLMPolicy
from kbgym.agents.llm.retry import CapReached
from kbgym.agents.llm.values import Reply
from kbgym.errors import BadInput, Damaged
from kbgym.gym.actions import Answer, Search
from kbgym.gym.policy import Forward, View
from kbgym.integrations.transcripts import transcripts


def ask(provider: Told | None, path: Path, texts: list[str], record: bool = True) -> list[str]:
    cassette = Cassette(path, record)
    client = client_for(provider, cassette)

    async def scene() -> list[str]:
        return [(await client.ask(request(text))).text for text in texts]

    try:
        return asyncio.run(scene())
    finally:
        cassette.close()


def numbered() -> Told:
    """Never says the same twice."""
    told: Told = Told(lambda _: Reply(text=str(len(told.requests)), prompt=10))
    return told


def test_a_second_run_pays_nothing_and_hears_the_same(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    first = ask(numbered(), path, ["a", "b", "a"])
    assert first == ["1", "2", "3"]
    again = numbered()
    assert ask(again, path, ["a", "b", "a"]) == first
    assert not again.requests
    assert ask(None, path, ["b", "a", "a"], record=False) == ["2", "1", "3"]


def test_the_kth_time_is_the_kth_reply_and_the_next_one_is_new(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    ask(numbered(), path, ["a", "a"])
    later = numbered()
    assert ask(later, path, ["a", "a", "a", "b"]) == ["1", "2", "1", "2"]
    assert len(later.requests) == 2
    assert len(Cassette(path, record=False)) == 4


def test_offline_a_miss_is_one_clear_sentence(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    ask(numbered(), path, ["a"])
    before = path.read_bytes()
    with pytest.raises(BadInput, match=r"c\.jsonl holds no reply to this request"):
        ask(None, path, ["other"], record=False)
    assert path.read_bytes() == before
    Cassette(tmp_path / "empty.jsonl").close()
    with pytest.raises(BadInput, match=r"empty\.jsonl holds no reply to this request"):
        ask(None, tmp_path / "empty.jsonl", ["a"], record=False)


@given(st.data())
def test_whatever_is_cut_off_the_whole_lines_before_it_still_play(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut") / "c.jsonl"
    texts = [f"t{number}" for number in range(5)]
    ask(numbered(), path, texts)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    survived = sum(b'"kind":"reply"' in line for line in whole[:cut].split(b"\n")[:-1])
    fresh = numbered()
    replies = ask(fresh, path, texts)
    assert len(fresh.requests) == 5 - survived
    assert replies[:survived] == [str(number + 1) for number in range(survived)]
    assert ask(None, path, texts, record=False) == replies


def test_damage_inside_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    ask(numbered(), path, ["a", "b"])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "not json\n", *lines[1:]]))
    with pytest.raises(Damaged, match="line 2"):
        Cassette(path, record=False)
    path.write_text("".join(lines[1:]))
    with pytest.raises(Damaged, match="header"):
        Cassette(path, record=False)
    with pytest.raises(BadInput, match="cannot read"):
        Cassette(tmp_path / "none.jsonl", record=False)


def test_one_recorder_at_a_time(tmp_path: Path) -> None:
    first = Cassette(tmp_path / "c.jsonl")
    with pytest.raises(BadInput, match="another process"):
        Cassette(tmp_path / "c.jsonl")
    first.close()
    Cassette(tmp_path / "c.jsonl").close()


def test_what_a_cassette_holds_counts_against_the_cap(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    ask(numbered(), path, ["a", "b"])
    cassette = Cassette(path)
    budget = Budget(max_tokens=25)
    budget.spent += cassette.spent
    client = client_for(numbered(), cassette, budget)

    async def scene() -> None:
        await client.ask(request("a"))
        await client.ask(request("b"))
        await client.ask(request("c"))
        with pytest.raises(CapReached):
            await client.ask(request("d"))

    asyncio.run(scene())
    cassette.close()


def played(path: Path, replies: list[Reply]) -> None:
    """A pass of one search and an answer, recorded."""
    cassette = Cassette(path)
    policy = LLMPolicy(client_for(Told(replies), cassette), SETTINGS)
    task = Forward("Who?")

    async def scene() -> None:
        action = await policy.act(View("reader", task, (), 15))
        seen = turn(action, "[d1] Anna lives in Lund.")
        assert isinstance(await policy.act(View("reader", task, (seen,), 14)), Answer)

    asyncio.run(scene())
    cassette.close()


SEARCH, ANSWER = called("search", '{"query":"who"}'), called("answer", '{"text":"Anna"}')


def test_a_pass_exports_as_one_chat(tmp_path: Path) -> None:
    played(tmp_path / "c.jsonl", [SEARCH, ANSWER])
    (chat,) = transcripts(Cassette(tmp_path / "c.jsonl", record=False))
    assert [message["role"] for message in chat["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    calls = [message["tool_calls"][0] for message in chat["messages"] if message["role"] == "assistant"]
    assert [call["function"]["name"] for call in calls] == ["search", "answer"]
    assert [call["id"] for call in calls] == ["call_1", "call_2"]
    assert [tool["function"]["name"] for tool in chat["tools"]] == ["search", "read", "answer"]
    answered = [message["content"] for message in chat["messages"] if message["role"] in ("user", "tool")]
    assert [content.splitlines()[-1] for content in answered] == ["Actions left: 15.", "Actions left: 14."]
    asked = [message for message in chat["messages"] if message["role"] == "assistant"]
    assert all(message["content"] == "" for message in asked)
    assert [call["function"]["arguments"] for call in calls] == [{"query": "who", "page": 1}, {"text": "Anna"}]


def test_corrections_are_left_out_of_chats(tmp_path: Path) -> None:
    played(tmp_path / "c.jsonl", [Reply(text="Let me see."), SEARCH, ANSWER])
    (chat,) = transcripts(Cassette(tmp_path / "c.jsonl", record=False))
    assert len(chat["messages"]) == 5
    assert "Let me see" not in json.dumps(chat)


def test_a_message_is_written_once_however_often_it_is_sent(tmp_path: Path) -> None:
    played(tmp_path / "c.jsonl", [SEARCH, ANSWER])
    text = (tmp_path / "c.jsonl").read_text()
    assert text.count("Question: Who?") == 1
    assert text.count("# Finding answers in a store") == 1


def test_a_cassette_by_name_plays_the_recorded_model(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    models = Models(Options(cassette=path, base_url="http://127.0.0.1:9/v1", temperature=0.7))
    client, settings = models.client("llm:local/some-model", "reader")
    client.provider = Told([SEARCH])
    view = View("reader", Forward("Who?"), (), 15)
    action = asyncio.run(LLMPolicy(client, settings).act(view))
    asyncio.run(models.close())
    offline = Models()
    player, played_settings = offline.client(f"cassette:{path}", "reader")
    assert player.name == "llm:local/some-model"
    assert played_settings == settings
    assert asyncio.run(LLMPolicy(player, played_settings).act(view)) == action == Search("who")
    with pytest.raises(BadInput, match="no recording of a curator"):
        offline.client(f"cassette:{path}", "curator")
