"""MCP with the real client: the tools a role lists, what they do, over standard streams and over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from family import documents, family
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from serving import Server, Tokens, family_store, replayed

from kbgym.trace.folder import StoreFolder
from kbgym.trace.history import log

BAKER = documents(family())["Ada Alm's job is baker"]
READER = ["search", "read", "how_sure"]
EDITING = ["add", "edit", "delete", "link", "link_many", "unlink"]
CURATOR = ["search", "read", *EDITING, "how_sure", "teach", "forget", "undo"]


@asynccontextmanager
async def over_stdio(place: Path, *flags: str) -> AsyncIterator[Client]:
    arguments = ["-c", "from kbgym.cli.main import run; run()", "serve", str(place), "--mcp", "--set", "embedder=hash"]
    parameters = StdioServerParameters(command=sys.executable, args=[*arguments, *flags], env=dict(os.environ))
    async with Client(stdio_client(parameters)) as client:
        yield client


@asynccontextmanager
async def over_http(server: Server, token: str, mode: str, **headers: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}", **headers}) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def call(client: Client, tool: str, **arguments: object) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments)
    return result.content[0].text, bool(result.is_error)  # type: ignore[union-attr]


def test_a_reader_over_stdio(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")

    async def work() -> None:
        async with over_stdio(place, "--role", "reader") as client:
            assert await names(client) == READER
            text, wrong = await call(client, "search", query="Ada Alm's job is baker")
            assert text.startswith(f"[{BAKER}] Ada Alm's job is baker.") and not wrong
            for tool, arguments in (("add", {"text": "x y."}), ("delete", {"id": BAKER}), ("answer", {"text": "x"})):
                text, wrong = await call(client, tool, **arguments)
                assert wrong and "the tools are search, read" in text

    asyncio.run(work())
    assert StoreFolder(place).store().fingerprint == StoreFolder(place).initial.fingerprint


def test_a_curator_over_stdio(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")

    async def work() -> None:
        async with over_stdio(place, "--role", "curator", "--client", "claude") as client:
            assert await names(client) == CURATOR
            assert await call(client, "add", text="People whose job is baker.") == (
                "Added.\n[n1] People whose job is baker.",
                False,
            )
            assert (await call(client, "link_many", source="n1", targets=[BAKER, "nobody"]))[0].startswith(
                "Linked [n1]"
            )
            assert "2 target" not in (await call(client, "read", id="n1"))[0]
            assert (await call(client, "link_many", source="n1", targets=7))[1], "a wrong type is an error, not a crash"
            assert (await call(client, "edit", id="n1"))[1]

    asyncio.run(work())
    assert replayed(place)
    assert [entry.agents for entry in log(StoreFolder(place).events)] == [{"serve": "claude"}] * 2


def test_a_session_that_is_asked_a_question_can_answer(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")

    async def work() -> None:
        async with over_stdio(place, "--question", "Who bakes?", "--client", "claude") as client:
            assert await names(client) == ["search", "read", "answer"]
            await call(client, "search", query="job is baker")
            assert await call(client, "answer", text="Ada Alm") == ("Answer submitted.", False)
            assert (await call(client, "answer", text="Bo Alm"))[1], "once"

    asyncio.run(work())
    entry = log(StoreFolder(place).events)[0]
    assert (entry.text, entry.agents, entry.outcome) == ("Who bakes?", {"forward": "claude"}, "answered")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_roles_over_http(fresh: tuple[Server, Tokens, Path], mode: str) -> None:
    server, tokens, place = fresh

    async def work() -> None:
        async with over_http(server, tokens.reader, mode) as rex, over_http(server, tokens.curator, mode) as ada:
            assert (await names(rex), await names(ada)) == (READER, CURATOR)
            assert (await call(ada, "add", text="People whose job is baker."))[0].endswith("baker.")
            assert "[n1]" in (await call(rex, "search", query="People whose job is baker."))[0]
            text, wrong = await call(rex, "add", text="x y.")
            assert wrong and "no tool 'add'" in text
            await call(ada, "read", id=BAKER)
            async with over_http(server, tokens.other, mode) as bo:
                await call(bo, "edit", id=BAKER, text="Ada Alm bakes.")
            text, wrong = await call(ada, "edit", id=BAKER, text="Ada Alm cooks.")
            assert wrong and text.startswith("Conflict: ") and "Ada Alm bakes." in text

    asyncio.run(work())
    server.stop()
    assert replayed(place)


def test_a_wrong_token_gets_no_session(served: tuple[Server, Tokens]) -> None:
    server, _ = served

    async def work() -> None:
        with pytest.raises(ExceptionGroup):
            async with over_http(server, "wrong", "legacy"):
                pass

    asyncio.run(work())


def test_the_question_header_opens_the_answer_tool(fresh: tuple[Server, Tokens, Path]) -> None:
    server, tokens, _ = fresh

    async def work() -> None:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {tokens.reader}"}) as http:
            body = {"question": "Who bakes?", "reader": "caller"}
            id = (await http.post(f"{server.url}/v1/questions", json=body)).json()["id"]
            async with over_http(server, tokens.reader, "legacy", **{"Kbgym-Question": id}) as client:
                assert await names(client) == ["search", "read", "answer"]
                await call(client, "search", query="baker")
                assert await call(client, "answer", text="Ada Alm") == ("Answer submitted.", False)
            stats = (await http.get(f"{server.url}/v1/stats")).json()
            assert stats["questions"]["asked"] == 1

    asyncio.run(work())


def test_a_second_curator_of_one_folder_reads_and_is_told_why_it_cannot_edit(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")

    async def work() -> None:
        async with over_stdio(place, "--role", "curator") as first:
            assert not (await call(first, "add", text="A first sentence."))[1]  # it has opened the store
            async with over_stdio(place, "--role", "curator") as second:
                assert await names(second) == CURATOR
                for tool, arguments in (
                    ("add", {"text": "A second sentence."}),
                    ("teach", {"question": "Who?", "answers": ["Ada"]}),
                    ("undo", {"iteration": 1}),
                ):
                    text, wrong = await call(second, tool, **arguments)
                    assert wrong and "another session" in text
                text, wrong = await call(second, "search", query="A first sentence.")
                assert not wrong and "A first sentence." in text, "it sees what the first committed"

    asyncio.run(asyncio.wait_for(work(), 60))


def test_tools_are_described_with_titles_and_hints(tmp_path: Path) -> None:
    async def work() -> None:
        async with over_stdio(family_store(tmp_path / "store"), "--role", "curator") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert all(tool.title and tool.annotations.open_world_hint is False for tool in tools.values())
            destructive = {name for name, tool in tools.items() if tool.annotations.destructive_hint}
            assert destructive == {"edit", "delete", "unlink", "undo"}
            found = await client.call_tool("search", {"query": "Ada Alm's job is baker", "k": 1})
            (document,) = found.structured_content["documents"]
            assert (document["id"], document["is_index"], document["superseded_by"]) == (BAKER, False, [])
            assert document["score"] > 0.5

    asyncio.run(asyncio.wait_for(work(), 60))
