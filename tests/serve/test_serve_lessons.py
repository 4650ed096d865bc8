"""Teaching over MCP with the official client: a wrong answer, its correction, what is learnt, and taking it back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from mcp.client.client import Client
from serving import Server, family_store, make_tokens, opened, replayed, serving
from test_serve_mcp import call, names, over_http, over_stdio

from kbgym.actions import Answer
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.canonical import write_lines
from kbgym.policy import Forward, Turn, View
from kbgym.trace.events import Noted
from kbgym.trace.folder import StoreFolder
from kbgym.trace.history import log
from kbgym.worlds.people import generate

WHO = ("--reader", "reference", "--curator", "reference")
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
        turns = (*turns, Turn(action, (await call(client, fields.pop("tool"), **fields))[0]))  # type: ignore[assignment]
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
    from kbgym.serve.calling import Caller, call_tool
    from kbgym.serve.sessions import Session

    place = family_store(tmp_path / "store")

    async def work() -> None:
        async with opened(place) as online:
            result = await call_tool(online.live, online, Caller("curator", Session("ada")), tool, given)
            assert result.wrong and result.text.startswith("Error: "), result
            assert online.live.iteration == 0

    asyncio.run(work())
