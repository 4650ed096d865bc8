"""The small model's side of curating: what it is shown of an index_task, how it is read, and what it is taught.

`small_curator_record.json` holds what llama.cpp itself made of the work on one index_task, as for the reader.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_small_model import gguf

from kbgym.agents.llm import small
from kbgym.agents.llm.client import ModelClient
from kbgym.agents.llm.connect import Models, ModelSettings
from kbgym.agents.llm.limits import Prices
from kbgym.agents.llm.values import Call, Reply, Request
from kbgym.agents.registry import make_agent
from kbgym.agents.small_curator import SYSTEM, TOOLS, ErrandTalk, SmallCuratorPolicy, errand_sample
from kbgym.api.distill import Curating, distill_curator
from kbgym.canonical import digest
from kbgym.errors import BadInput
from kbgym.gym.actions import Action, Add, Done, LinkMany, Search
from kbgym.gym.policy import Backward, IndexTask, Lookup, Turn, View

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("small_curator_record.json").read_text(encoding="utf-8"))
TURNS = [Turn(msgspec.convert(action, Action), observation) for action, observation in RECORD["turns"]]
ERRAND = msgspec.convert(RECORD["errand"], IndexTask)
NEXT = IndexTask("job", "poet", "sibling", lookups=(Lookup("job is poet"),), text="People whose job is poet")
BUDGET: int = RECORD["budget"]


def recorded() -> list[str]:
    return errand_sample(ERRAND, TURNS, BUDGET)["parts"]


def view(turns: list[Turn], *index_tasks: IndexTask) -> View:
    task = Backward("Who is it?", (), ("Jon Lid",), 1.0, "right", index_tasks)
    return View("curator", task, tuple(turns), BUDGET - len(turns))


class Replies:
    """A provider that says one thing after the other."""

    where = "nowhere"

    def __init__(self, *calls: Call) -> None:
        self.calls = list(calls)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(calls=(self.calls.pop(0),))

    async def close(self) -> None: ...


def policy(provider: Replies) -> SmallCuratorPolicy:
    return SmallCuratorPolicy(ModelClient("small", provider, Prices("local", "x")), ModelSettings("x", 0.0, None, 100))


def test_an_errand_reads_as_the_server_renders_it() -> None:
    assert RECORD["template"] == digest(small.TEMPLATE.encode()), "the template changed: record it again"
    assert "".join(recorded()[:-1]) == RECORD["prompt"]


def test_an_errand_has_the_servers_tokens() -> None:
    marks = [token for token in RECORD["vocabulary"] if token.startswith("<|")]
    made = gguf().made_of(RECORD["vocabulary"], RECORD["merges"], marks)
    whole = made.encode("".join(recorded())).ids
    assert whole == RECORD["tokens"]
    assert [token for part in recorded() for token in made.encode(part).ids] == whole, "a cut went through a token"


def test_every_request_of_an_errand_is_a_beginning_of_its_sample() -> None:
    whole = recorded()
    for steps in range(len(TURNS)):
        parts = errand_sample(ERRAND, TURNS[: steps + 1], BUDGET)["parts"]
        assert parts[:-1] == whole[: len(parts) - 1]


def test_arguments_stand_in_the_order_of_the_schema() -> None:
    properties = {tool["function"]["name"]: list(tool["function"]["parameters"]["properties"]) for tool in TOOLS}
    talk = ErrandTalk(ERRAND, TURNS, BUDGET)
    for call in (message.call for message in talk.messages):
        if call is not None:
            assert list(json.loads(call.arguments)) == properties[call.name][: len(json.loads(call.arguments))]


def test_numbers_and_runs_of_them_stand_for_documents() -> None:
    provider = Replies(Call("link_many", '{"source": "5", "targets": " 1-2 4 77"}'))
    playing = policy(provider)
    action = asyncio.run(playing.act(view(TURNS[:3], ERRAND)))
    assert action == LinkMany("aaaaaa5", ("aaaaaa1", "aaaaaa2", "aaaaaa4", "77"))
    assert provider.requests[0].system == SYSTEM
    assert not any("aaaaaa" in message.text for message in provider.requests[0].messages)


def test_what_is_linked_already_has_no_number() -> None:
    shown = ErrandTalk(ERRAND, TURNS[:1], BUDGET).messages[-1].text
    assert "\n- Jon Lid's job is puppeteer." in shown
    assert "aaaaaa9" not in ErrandTalk(ERRAND, TURNS[:1], BUDGET).ids.values()


def test_done_takes_up_the_next_errand_and_costs_no_action() -> None:
    provider = Replies(Call("done", "{}"), Call("search", '{"query": " job is poet"}'), Call("done", "{}"))
    playing = policy(provider)
    history = TURNS[:4]
    assert asyncio.run(playing.act(view(history, ERRAND, NEXT))) == Search("job is poet")
    assert "New index: People whose job is poet" in provider.requests[1].messages[0].text
    assert len(provider.requests[1].messages) == 1, "what was done for the index_task before is not shown"
    history = [*history, Turn(Search("job is poet"), "Nothing found.")]
    assert asyncio.run(playing.act(view(history, ERRAND, NEXT))) == Done()


def test_a_pass_that_is_resumed_goes_on_at_its_errand() -> None:
    provider = Replies(Call("add", '{"text": " People whose job is poet"}'))
    history = [*TURNS[:4], Turn(Search("job is poet"), "[bbbbbb1] Bo Ek's job is poet.")]
    assert asyncio.run(policy(provider).act(view(history, ERRAND, NEXT))) == Add("People whose job is poet")
    assert [message.role for message in provider.requests[0].messages] == ["user", "assistant", "tool"]


def test_without_an_agenda_nothing_is_done() -> None:
    provider = Replies()
    assert asyncio.run(policy(provider).act(view([]))) == Done()
    assert not provider.requests


def test_it_curates_what_an_agenda_names_and_nothing_else() -> None:
    with pytest.raises(BadInput, match="--strategy class"):
        make_agent("small", "curator", Models())


@pytest.mark.slow
def test_errands_are_taught_whole() -> None:
    """What the teacher did for an index_task ends with done, and every search of it is one the index_task names."""
    samples = list(distill_curator(1000, 30))
    assert len(samples) > 50
    for sample in samples:
        shown, *_ = sample["parts"]
        assert sample["parts"][-1] == "done\n{};<|im_end|>"
        for call in sample["parts"][1::2]:
            name, _, arguments = call.partition("\n")
            if name == "search":
                query = json.loads(arguments.removesuffix(";<|im_end|>"))["query"].strip()
                assert f"\nSearch: {query}" in shown
    assert Curating().begun == []
