"""Teaching over MCP with the official client: a wrong answer, its correction, what is learnt, and taking it back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_agent import _DATA, _LEFT
from mcp import MCPError
from mcp.client.client import Client
from prompt_reader import _task
from serving import Server, family_store, make_tokens, opened, replayed, serving
from test_serve_mcp import call, names, over_http, over_stdio
from turns import turn

from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.canonical import write_lines
from kbgym.gym.actions import Answer
from kbgym.gym.policy import Forward, View
from kbgym.trace.events import Noted
from kbgym.trace.folder import StoreFolder
from kbgym.trace.history import log
from kbgym.worlds.people import generate

WHO = ("--set", "reader=reference", "--set", "curator=reference")
WORLD = generate(people=40, seed=2)
QUESTION, RIGHT = next((q.text, q.golds[0]) for q in WORLD.split("train") if q.text.startswith("Which friend of"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    write_lines(folder / "documents.jsonl", WORLD.documents)
    return folder


async def asked(client: Client) -> tuple[str, int]:
    """What the reference reader answers over the tools of a session, and with how many actions."""
    policy, turns = ReferenceReader(), ()
    for left in range(15, 0, -1):
        action = await policy.act(View("reader", Forward(QUESTION), turns, left))
        if isinstance(action, Answer):
            return action.text, 16 - left
        fields = msgspec.to_builtins(action)
        turns = (*turns, turn(action, (await call(client, fields.pop("tool"), **fields))[0]))  # type: ignore[assignment]
    return "", 15


async def taught_and_undone(client: Client) -> None:
    before = await asked(client)
    said, wrong = await call(client, "teach", question=QUESTION, answers=[RIGHT], answer="nobody", note="Ada says so")
    assert not wrong and said.startswith("'nobody' scores F1 0.00. Learnt: +"), said
    after = await asked(client)
    assert before[0] == after[0] == RIGHT and after[1] < before[1]
    iteration = int(said.split('"iteration": ')[1].split("}")[0])
    said, wrong = await call(client, "undo", iteration=iteration)
    assert not wrong and f"before iteration {iteration}" in said
    assert await asked(client) == before
    said, wrong = await call(client, "undo", iteration=iteration + 1)
    assert not wrong and await asked(client) == after, "what was undone can be undone"


def test_over_stdio(place: Path) -> None:
    async def work() -> None:
        async with over_stdio(place, "--role", "curator", "--client", "claude", *WHO) as client:
            await taught_and_undone(client)

    asyncio.run(asyncio.wait_for(work(), 60))
    assert replayed(place)
    forward = log(StoreFolder(place).events)[0]
    assert (forward.text, forward.agents, forward.outcome) == (QUESTION, {"forward": "claude"}, "answered"), (
        "what the session did is what is graded"
    )
    notes = [event.data for event in StoreFolder(place).events if isinstance(event, Noted) and event.kind == "taught"]
    assert [(note["note"], note["by"]) for note in notes] == [("Ada says so", "claude")]


def test_over_http_for_a_curator_only(place: Path) -> None:
    tokens = make_tokens(place)

    async def work(server: Server) -> None:
        async with over_http(server, tokens.reader, "legacy") as rex:
            assert not {"teach", "undo"} & set(await names(rex))
            for tool, given in (("teach", {"question": QUESTION, "answers": [RIGHT]}), ("undo", {"iteration": 1})):
                text, wrong = await call(rex, tool, **given)
                assert wrong and "there is no tool" in text
        async with over_http(server, tokens.curator, "legacy") as ada:
            await taught_and_undone(ada)

    with serving(place, *WHO) as server:
        asyncio.run(asyncio.wait_for(work(server), 60))
        server.stop()
    assert replayed(place)


async def curated(client: Client, said: str) -> str:
    """Work on a lesson as the reference curator would, told nothing but what the results say."""
    policy, turns = ReferenceCurator(), ()
    task = _task(said.partition("# Your task\n\n")[2], "curator")
    while (found := _LEFT.search(said)) and "the pass is over" not in said:
        action = await policy.act(View("curator", task, turns, int(found[1])))
        fields = msgspec.to_builtins(action)
        said = (await call(client, fields.pop("tool"), **fields))[0]
        data = _DATA.match(said)
        turns = (*turns, turn(action, data[1] if data else ""))  # type: ignore[assignment]
    return said


def test_the_caller_curates_under_the_gate(place: Path) -> None:
    who = ("--role", "curator", "--client", "claude", "--set", "reader=reference")
    flags = (*who, "--set", "curator=caller", "--gate", "2")

    async def work() -> None:
        async with over_stdio(place, *flags) as client:
            assert "done" in await names(client)
            early, wrong = await call(client, "done")
            assert wrong and "first" in early
            before = await asked(client)
            given = {"question": QUESTION, "answers": [RIGHT], "answer": "nobody"}
            lesson, wrong = await call(client, "teach", **given)
            assert not wrong and "# Keeping a store in order" in lesson and f"Correct answer: {RIGHT}" in lesson
            again, _ = await call(client, "teach", question="Who?", answers=["x"], answer="y")
            assert "kept for later" in again
            follows = await curated(client, lesson)
            assert follows.startswith("Submitted; the pass is over.") and "Question: Who?" in follows
            over, _ = await call(client, "done")
            assert over.startswith("Submitted; the pass is over.\n\nLearnt: +0 documents, +0 links."), over
            after = await asked(client)
            assert before[0] == after[0] == RIGHT and after[1] < before[1]
            await call(client, "teach", **given)
            await call(client, "add", text="Everybody there is a baker.")
            assert "Nothing was changed: " in (await call(client, "done"))[0], "what has no reason is not admitted"
            assert not (await call(client, "add", text="Bakers of the town."))[1], "no lesson is open: it edits as ever"

    asyncio.run(asyncio.wait_for(work(), 60))
    assert replayed(place)
    entries = log(StoreFolder(place).events)
    assert [entry.agents["backward"] for entry in entries if "backward" in entry.agents] == ["claude"] * 3


def test_a_lesson_left_open_comes_first_the_next_time(place: Path) -> None:
    flags = ("--role", "curator", "--set", "reader=reference", "--set", "curator=caller")

    async def work() -> None:
        async with over_stdio(place, *flags) as client:
            await call(client, "teach", question=QUESTION, answers=[RIGHT], answer="nobody")
            await call(client, "add", text="Never landed.")
        async with over_stdio(place, *flags) as client:
            assert "Never landed" not in (await call(client, "search", query="Never landed."))[0]
            lesson, _ = await call(client, "teach", question="Who?", answers=["x"], answer="y")
            assert f"Question: {QUESTION}" in lesson
            assert "Question: Who?" in (await call(client, "done"))[0]
            assert "Learnt: +0" in (await call(client, "done"))[0]

    asyncio.run(asyncio.wait_for(work(), 60))


def test_how_sure_tells_what_an_answer_rested_on(place: Path) -> None:
    tokens = make_tokens(place)

    async def work(server: Server) -> None:
        async with over_http(server, tokens.curator, "legacy") as ada:
            assert "opened no document" in (await call(ada, "how_sure"))[0]
            await call(ada, "teach", question=QUESTION, answers=[RIGHT], answer="nobody")
            await asked(ada)
            said, wrong = await call(ada, "how_sure")
            assert not wrong and "written in iteration" in said and f'by reference after "{QUESTION}"' in said
            index = next(line.split("]")[0][1:] for line in said.splitlines() if line.startswith("["))
            assert (await call(ada, "how_sure", documents=[index]))[0].startswith("Documents opened: 1,")
            assert (await call(ada, "how_sure", documents=["nobody"]))[1]
            assert (await call(ada, "how_sure", documents=7))[1]
        async with over_http(server, tokens.reader, "legacy") as rex:
            await asked(rex)
            said, _ = await call(rex, "how_sure")
            assert "written in iteration" in said and QUESTION not in said, "what others asked is theirs"

    with serving(place, *WHO) as server:
        asyncio.run(asyncio.wait_for(work(server), 60))


async def look_around(client: Client, role: str, id: str) -> None:
    prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert list(prompts) == (["answer"] if role == "reader" else ["answer", "curate", "teach"])
    skills = {"answer": "# Finding answers", "curate": "# Keeping a store", "teach": "# When a person"}
    for name, begins in skills.items():
        if name in prompts:
            message = (await client.get_prompt(name)).messages[0]
            assert message.content.text.startswith(begins)  # type: ignore[union-attr]
        else:
            with pytest.raises(MCPError):
                await client.get_prompt(name)
    listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert listed == ["kbgym://statistics"] + (["kbgym://agenda"] if role == "curator" else [])
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ["kbgym://document/{id}"]

    async def at(uri: str) -> Any:
        return json.loads((await client.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]

    assert (await at("kbgym://statistics"))["documents"] == len(WORLD.documents)
    assert (await at(f"kbgym://document/{id}"))["text"].rstrip(".") == WORLD.documents[0].text.rstrip(".")
    if role == "curator":
        assert isinstance(await at("kbgym://agenda"), list)
    for uri in ("kbgym://nothing", "kbgym://document/nobody", *(["kbgym://agenda"] if role == "reader" else [])):
        with pytest.raises(MCPError):
            await at(uri)


@pytest.mark.parametrize("role", ["reader", "curator"])
def test_prompts_and_resources(place: Path, role: str) -> None:
    tokens, id = make_tokens(place), WORLD.documents[0].id

    async def here() -> None:
        async with over_stdio(place, "--role", role, *WHO) as client:
            assert "how_sure" in (client.instructions or "")
            await look_around(client, role, id)

    async def there(server: Server) -> None:
        async with over_http(server, tokens.reader if role == "reader" else tokens.curator, "legacy") as client:
            await look_around(client, role, id)

    asyncio.run(asyncio.wait_for(here(), 60))
    with serving(place, *WHO) as server:
        asyncio.run(asyncio.wait_for(there(server), 60))


def test_who_answers_a_question_has_no_way_around_its_budget(place: Path) -> None:
    async def work() -> None:
        async with over_stdio(place, "--question", QUESTION, *WHO) as client:
            assert await names(client) == ["search", "read", "answer"]
            assert not (await client.list_resources()).resources
            with pytest.raises(MCPError):
                await client.read_resource(f"kbgym://document/{WORLD.documents[0].id}")

    asyncio.run(asyncio.wait_for(work(), 60))


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("teach", {"question": "", "answers": ["x"]}),
        ("teach", {"question": "Who?", "answers": []}),
        ("teach", {"question": "Who?", "answers": ["x"] * 21}),
        ("teach", {"question": "Who?", "answers": ["a\u202eb"]}),
        ("teach", {"question": "Who?", "answers": "x"}),
        ("teach", {"question": "Who?", "answers": ["x"], "more": 1}),
        ("undo", {}),
        ("undo", {"iteration": 0}),
        ("undo", {"iteration": 7}),
        ("undo", {"iteration": 10**30}),
    ],
)
def test_what_is_no_correction_changes_nothing(tmp_path: Path, tool: str, given: dict[str, object]) -> None:
    from kbgym.serving.sessions import ClientSession
    from kbgym.serving.tool_calls import Caller, call_tool

    place = family_store(tmp_path / "store")

    async def work() -> None:
        async with opened(place) as online:
            result = await call_tool(online.live, online, Caller("curator", ClientSession("ada")), tool, given)
            assert result.wrong and result.text.startswith("Error: "), result
            assert online.live.iteration == 0

    asyncio.run(work())
