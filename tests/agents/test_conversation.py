"""A connected agent plays every question over MCP: the same passes as in process, marked, and pooled with nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from command_agent import _DATA, _LEFT
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from prompt_reader import _task
from turns import turn

from kbgym.agents.live import Conversation
from kbgym.agents.llm.prompting import call_of, skill_of
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.analysis.results import kept_pairs
from kbgym.cli.main import run
from kbgym.gym.policy import Forward, Turn, View
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import read_rows
from kbgym.training.exam_header import read_header
from kbgym.worlds.people import generate

SMALL = ("--questions", "2", "--set", "embedder=hash")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds") / "w"
    generate(people=40, seed=3).save(folder)
    few = folder.parent / "few.jsonl"
    lines = (folder / "questions.jsonl").read_text().splitlines()
    few.write_text("\n".join([line for line in lines if json.loads(line)["split"] == "test_in"][:3]) + "\n")
    return folder


def kbgym(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        run([*map(str, arguments), "--quiet"])
    return int(stopped.value.code or 0)


def connected(*arguments: object) -> Client:
    """The official client at a server that was started for it."""
    given = ["-m", "kbgym", "play", *map(str, arguments), "--mcp"]
    return Client(stdio_client(StdioServerParameters(command=sys.executable, args=given, env=dict(os.environ))))


async def call(client: Client, name: str, **arguments: object) -> str:
    return str((await client.call_tool(name, arguments)).content[0].text)  # type: ignore[union-attr]


async def play(client: Client, most: int = 100) -> list[str]:
    """Every pass by the reference policies, told apart by nothing but what the results say; what each was told."""
    told: list[str] = []
    said = await call(client, "next_question")
    while "# Your task" in said and len(told) < most:
        told.append(said)
        role = "curator" if "What the reader did:" in said else "reader"
        task = _task(said.partition("# Your task\n\n")[2], role)
        policy = ReferenceCurator() if role == "curator" else ReferenceReader()
        history: tuple[Turn, ...] = ()
        while ((found := _LEFT.search(said)) and "the pass is over" not in said) or not history:
            assert found is not None
            action = await policy.act(View(role, task, history, int(found[1])))  # type: ignore[arg-type]
            asked = call_of(action, "")
            said = await call(client, asked.name, **json.loads(asked.arguments))
            data = _DATA.match(said)
            history = (*history, turn(action, data[1] if data else ""))
        if "# Your task" not in said and "Call next_question." in said:
            said = await call(client, "next_question")
    return told


def talk(*arguments: object, most: int = 100) -> list[str]:
    async def work() -> list[str]:
        async with connected(*arguments) as client:
            return await play(client, most)

    return asyncio.run(asyncio.wait_for(work(), 100))


@pytest.mark.slow
def test_an_exam_in_one_conversation(world: Path, tmp_path: Path) -> None:
    few, flags = world.parent / "few.jsonl", ("--set", "embedder=hash", "--world", world)
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    assert kbgym("exam", world, "--set", few, "--agent", "reference", "--out", here, *flags) == 0
    told = talk("exam", world, "--set", few, "--out", there, *flags, most=2)
    assert len(read_rows(there)) == 2, "what was answered before the client left is kept"
    assert "# Finding answers" in told[0] and "# Finding answers" not in told[1], "the skill is told once"
    talk("exam", world, "--set", few, "--out", there, *flags)
    rows = read_rows(there)
    assert [msgspec.structs.replace(row, conversation="") for row in rows] == read_rows(here)
    sittings = [row.conversation for row in rows]
    assert all(sittings) and sittings[0] == sittings[1] != sittings[2]
    marked, plain = read_header(there), read_header(here)
    assert marked is not None and marked.conversation == sittings[0] and marked.agent == "play"
    assert plain is not None and '"conversation"' not in (tmp_path / "here.exam.json").read_text()


@pytest.mark.slow
def test_training_in_one_conversation_leaves_the_trace_of_training_in_process(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (
        kbgym("train", "--world", world, "--out", tmp_path / "here", "--epochs", 1, "--set", "eval=false", *SMALL) == 0
    )
    told = talk("train", world, "--out", tmp_path / "there", *SMALL)
    assert ["Correct answer:" in text for text in told] == [False, True] * 2
    traces = []
    for name in ("here", "there"):
        events = [msgspec.to_builtins(event) for event in StoreFolder(tmp_path / name).events]
        traces.append([{k: v for k, v in event.items() if k not in ("agent", "settings")} for event in events])
    assert traces[0] == traces[1] and len(traces[0]) > 10
    asked = ("serve", tmp_path / "there", "--http", "127.0.0.1:0", "--no-auth")
    assert kbgym(*asked) == 2 and "name another with --reader" in capfd.readouterr().err


def test_a_conversation_is_compared_with_nothing(world: Path, tmp_path: Path) -> None:
    assert kbgym("train", "--world", world, "--out", tmp_path / "r", "--epochs", 1, "--set", "eval=false", *SMALL) == 0
    few = world.parent / "few.jsonl"
    for place in (tmp_path / "r", f"{tmp_path / 'r'}@0"):
        assert kbgym("exam", place, "--set", few, "--agent", "reference") == 0
    before = kept_pairs(tmp_path / "r", "trained", "reference")
    assert len(before.files) == 2 and not before.left_out
    for header in (tmp_path / "r" / "exams").glob("*.exam.json"):  # the same, had somebody played them live
        said = json.loads(header.read_text())
        header.write_text(json.dumps({**said, "conversation": header.name}))
    assert not kept_pairs(tmp_path / "r", "trained", "reference").files


def both(work: Callable[[Conversation], object]) -> None:
    async def started() -> None:
        conversation = Conversation(("reader", "curator"))
        await asyncio.wait_for(work(conversation), 20)  # type: ignore[arg-type]

    asyncio.run(started())


def test_calls_out_of_turn_do_nothing() -> None:
    async def work(conversation: Conversation) -> None:
        early = await conversation.call("search", {"query": "x"})
        assert early.wrong and early.text == "Call next_question first."
        coming = asyncio.create_task(conversation.call("next_question", {}))
        policy = conversation.agent(skill_of("reader"))()
        acting = asyncio.create_task(policy.act(View("reader", Forward("Who?"), (), 3)))
        assert "Question: Who?" in (await coming).text
        again = await conversation.call("next_question", {})
        assert again.wrong and "not over" in again.text
        wrong = await conversation.call("add", {"text": "x"})
        assert wrong.wrong and "the tools are search, read, answer" in wrong.text
        first = asyncio.create_task(conversation.call("answer", {"text": "Ada"}))
        late = asyncio.create_task(conversation.call("search", {"query": "y"}))
        assert (await acting).text == "Ada"  # type: ignore[union-attr]
        following = conversation.agent(skill_of("reader"))()
        acting = asyncio.create_task(following.act(View("reader", Forward("Where?"), (), 3)))
        assert (await first).text == "Submitted; the pass is over.\n\nCall next_question."
        assert (await late).wrong, "a call that was waiting is no action of the next pass"
        conversation.finish("That was all.")
        assert (await conversation.call("next_question", {})).text == "That was all."
        acting.cancel()

    both(work)
