"""The small model's side of a pass: what it is shown, how it is read, what it is taught, and the adapter that ships.

`small_model_record.json` holds what llama.cpp itself made of one pass, by /apply-template and /tokenize, with as much
of the vocabulary as that takes; whoever changes the template has to record it again.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from kbgym.agents.llm import small
from kbgym.agents.llm.client import ModelClient
from kbgym.agents.llm.connect import Models, ModelSettings
from kbgym.agents.llm.limits import Prices
from kbgym.agents.llm.policy import LLMPolicy
from kbgym.agents.llm.values import Call, Reply, Request
from kbgym.agents.reference.memory import Memory
from kbgym.agents.reference.notes import working
from kbgym.agents.registry import make_judge
from kbgym.agents.small import SYSTEM, TOOLS, SmallPolicy, SmallTalk, rendered, sample
from kbgym.api.distill import drawn
from kbgym.canonical import digest
from kbgym.errors import BadInput
from kbgym.gym.actions import Action, Answer, Read, Search
from kbgym.gym.policy import Forward, Turn, View
from kbgym.worlds.people import generate, vocabulary

ROOT = Path(__file__).parent.parent.parent
RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("small_model_record.json").read_text(encoding="utf-8"))
TURNS = tuple(Turn(msgspec.convert(action, Action), observation) for action, observation in RECORD["turns"])


def gguf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gguf", ROOT / "examples" / "small-model" / "gguf.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recorded() -> list[str]:
    return sample(RECORD["question"], TURNS, RECORD["budget"], RECORD["notes"])["parts"]


def view(turns: tuple[Turn, ...]) -> View:
    return View("reader", Forward(RECORD["question"]), turns, RECORD["budget"] - len(turns))


def test_a_sample_reads_as_the_server_renders_it() -> None:
    assert RECORD["template"] == digest(small.TEMPLATE.encode()), "the template changed: record it again"
    assert "".join(recorded()[:-1]) == RECORD["prompt"]


def test_a_request_is_rendered_as_the_server_does() -> None:
    assert "".join(rendered(SmallTalk(view(TURNS[:-1])).messages)) == RECORD["prompt"]


def test_a_sample_has_the_servers_tokens() -> None:
    marks = [token for token in RECORD["vocabulary"] if token.startswith("<|")]
    made = gguf().made_of(RECORD["vocabulary"], RECORD["merges"], marks)
    whole = made.encode("".join(recorded())).ids
    assert whole == RECORD["tokens"]
    assert [token for part in recorded() for token in made.encode(part).ids] == whole, "a cut went through a token"


def test_every_request_of_a_pass_is_a_beginning_of_its_sample() -> None:
    whole = recorded()
    for steps in range(len(TURNS)):
        parts = sample(RECORD["question"], TURNS[: steps + 1], RECORD["budget"], RECORD["notes"])["parts"]
        assert parts[:-1] == whole[: len(parts) - 1]
    assert "<|im_end|> <" not in "".join(whole)


def test_arguments_stand_in_the_order_of_the_schema() -> None:
    for tool in TOOLS:
        schema = tool["function"]["parameters"]
        # What is required comes first in a grammar, whatever the schema's order.
        assert schema["required"] == list(schema["properties"])[: len(schema["required"])]
    calls = [message.call for message in SmallTalk(view(TURNS[:3])).messages if message.call]
    assert [json.loads(call.arguments) for call in calls] == [
        {"query": " job is puppeteer"},
        {"query": ' a "b" é', "page": 3},
        {"id": "2"},
    ]
    assert list(json.loads(calls[1].arguments)) == ["query", "page"]


class Scripted:
    """A provider that gives one reply."""

    where = "nowhere"

    def __init__(self, call: Call) -> None:
        self.call = call
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(calls=(self.call,))

    async def close(self) -> None: ...


def played(call: Call, turns: tuple[Turn, ...]) -> tuple[Action, Request]:
    provider = Scripted(call)
    client = ModelClient("small", provider, Prices("local", "x"))
    policy: LLMPolicy = SmallPolicy(client, ModelSettings("x", 0.0, None, 100))
    return asyncio.run(policy.act(view(turns))), provider.requests[0]


def test_a_number_stands_for_the_document_it_was_given_to() -> None:
    action, request = played(Call("read", '{"id": "2"}'), TURNS[:1])
    assert action == Read("zzzzzz2")
    assert request.system == SYSTEM
    assert request.tail == ""
    assert "zzzzzz2" not in request.messages[-1].text


def test_a_number_nobody_has_stays_what_it_is() -> None:
    assert played(Call("read", '{"id": "7"}'), TURNS[:1])[0] == Read("7")


def test_notes_go_no_further() -> None:
    assert played(Call("answer", '{"notes": " Jon Lid 1", "text": " Jon Lid"}'), TURNS[:3])[0] == Answer("Jon Lid")


def test_what_is_copied_keeps_its_tokens() -> None:
    made = gguf().made_of(RECORD["vocabulary"], RECORD["merges"], [])
    shown, written = "whose job is puppeteer", SmallTalk(view(())).call(Answer("puppeteer"), "").arguments
    assert made.encode(shown).tokens[-2:] == [" puppet".replace(" ", "\u0120"), "eer"]
    assert made.encode(written).tokens[-3:-1] == made.encode(shown).tokens[-2:]


def test_the_space_before_a_text_goes_no_further() -> None:
    assert played(Call("search", '{"query": " Jon Lid is"}'), TURNS[:1])[0] == Search("Jon Lid is")


def test_notes_say_what_an_answer_rests_on() -> None:
    memory = Memory()
    for text in (
        "Ann Berg is a friend of Bo Lid.",
        "Ann Berg is a friend of Cy Moe.",
        "Dan Ek is a friend of Cy Moe.",
        "Bo Lid was born on March 2, 1971.",
        "Cy Moe was born on May 1, 1970.",
    ):
        memory.learn(text)
    assert working("Which friend of Ann Berg is also a friend of Dan Ek?", memory) == "Bo Lid no, Cy Moe 1"
    assert working("How many friends does Ann Berg have?", memory) == "Bo Lid 1, Cy Moe 2"
    assert working("Who is older, Bo Lid or Cy Moe?", memory) == "Bo Lid 1971-03-02; Cy Moe 1970-05-01"
    assert working("What is the job of Ann Berg?", memory) == ""


def test_no_word_of_the_benchmark_is_taught() -> None:
    taught = generate(people=60, seed=1000, words=["harbour", "baker", "Verity", "spouse", "velvet"])
    ours = {word for name in (vocabulary.WOMEN, vocabulary.MEN, vocabulary.SURNAMES) for word in name}
    people = taught.facts["people"]
    assert not {part for person in people for part in person["name"].split()} & ours
    values = {person[kind] for person in people for kind in ("job", "hobby", "city")}
    assert not values & {*vocabulary.JOBS, *vocabulary.HOBBIES, *vocabulary.CITIES, "spouse"}
    assert any("velvet" in value.lower() for value in values)


def test_the_adapters_are_small_and_known() -> None:
    for role, (file, known) in small.ADAPTERS.items():
        assert file.stat().st_size <= 6_000_000
        assert small.model_name(role) == f"smollm2-135m+{known[:12]}"


def test_small_reads_and_curates_and_does_nothing_else() -> None:
    with pytest.raises(BadInput, match="name another judge"):
        make_judge("small", Models())


def test_a_search_on_the_first_page_does_not_say_so() -> None:
    talk = SmallTalk(view((Turn(Search("x"), "Nothing found."),)))
    assert talk.messages[1].call == Call("search", '{"query": " x"}', "call_1")


def test_too_few_questions_to_have_one_of_every_template_are_refused() -> None:
    with pytest.raises(BadInput, match="ask at least"):
        drawn(generate(60, 1000), 5, 0)
