"""`kbgym serve --mcp` answers before its store is open, and what a client sends cannot bring it down."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from serving import family_store

from kbgym.canonical import encode
from kbgym.gym.tools import Tool
from kbgym.mcp import ToolResult
from kbgym.serving import stdio

# The store opens when a file is there; until then, what has been loaded is written down.
SLOW = """
import sys, time
from pathlib import Path
from kbgym.cli import serve
from kbgym.cli.main import run
settings, gate = serve.serving_settings, Path(sys.argv.pop(1))
def waiting(*given):
    loaded = [name for name in ("mcp", "numpy", "onnxruntime", "rich", "kbgym.store") if name in sys.modules]
    gate.with_suffix(".loaded").write_text(" ".join(loaded))
    while not gate.exists():
        time.sleep(0.01)
    return settings(*given)
serve.serving_settings = waiting
run()
"""
PLAIN = "from kbgym.cli.main import run; run()"


def ask(id: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def talk(place: Path, sent: bytes, *flags: str) -> tuple[int, list[dict[str, Any]], str]:
    """Everything one client sends before it hangs up; the exit code, the replies by id, what was said besides."""
    command = [sys.executable, "-c", PLAIN, "serve", str(place), "--mcp", "--set", "embedder=hash", *flags]
    done = subprocess.run(command, input=sent, capture_output=True, timeout=120, check=False)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, sorted(replies, key=lambda reply: reply["id"] or 0), done.stderr.decode()


def test_the_tools_are_listed_before_the_store_is_open(tmp_path: Path) -> None:
    place, gate = family_store(tmp_path / "store"), tmp_path / "open"
    arguments = ["-c", SLOW, str(gate), "serve", str(place), "--mcp", "--set", "embedder=hash"]

    async def work() -> None:
        parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        async with Client(stdio_client(parameters)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "read", "how_sure"]
            searching = asyncio.create_task(client.call_tool("search", {"query": "Ada Alm's job"}))
            await asyncio.sleep(0.3)
            assert not searching.done(), "a call waits for the store"
            assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "read", "how_sure"]
            gate.touch()
            assert "Ada Alm" in (await searching).content[0].text  # type: ignore[union-attr]

    asyncio.run(asyncio.wait_for(work(), 60))
    assert gate.with_suffix(".loaded").read_text() == "", "nothing slow is loaded before the first answer"


@pytest.mark.slow
def test_the_tools_are_there_in_the_time_python_needs_to_start(tmp_path: Path) -> None:
    """With the store and a model before the first answer it would be eight times as long as the three packages take."""
    place = family_store(tmp_path / "store")

    def seconds(program: str, *arguments: str) -> float:
        began = time.perf_counter()
        command = [sys.executable, "-c", program, *arguments]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
            assert started.stdin is not None and started.stdout is not None
            started.stdin.write(ask(1, "initialize", protocolVersion="2025-06-18") + ask(2, "tools/list"))
            started.stdin.flush()
            said = [started.stdout.readline() for _ in range(2)]
            took = time.perf_counter() - began
            started.stdin.close()
        assert all(said)
        return took

    bare = "import asyncio, click, msgspec; print('1\\n2')"
    serving = ("serve", str(place), "--mcp", "--set", "embedder=hash")
    pairs = [(seconds(PLAIN, *serving), seconds(bare)) for _ in range(3)]
    assert min(server for server, _ in pairs) < 4 * min(packages for _, packages in pairs), pairs


def test_a_client_that_is_late_is_answered_while_the_store_is_opened(tmp_path: Path) -> None:
    place, gate = family_store(tmp_path / "store"), tmp_path / "open"
    command = [sys.executable, "-c", SLOW, str(gate), "serve", str(place), "--mcp", "--set", "embedder=hash"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        while not gate.with_suffix(".loaded").exists():
            assert server.poll() is None
            time.sleep(0.02)
        server.stdin.write(ask(1, "initialize", protocolVersion="2025-06-18"))
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["version"]
        gate.touch()
        server.stdin.close()
        assert server.wait(60) == 0


def test_a_client_that_sends_nonsense_is_answered_and_goes_on(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")
    nonsense = (
        b"nonsense\n\n[1]\n{}\n"
        + b'{"id": 1, "method": "tools/call", "params": {"name": 7}}\n'
        + b'{"id": {}, "method": "ping"}\n{"id": 2, "method": "ping", "params": [1]}\n'
        + b"[" * 5000
        + b"\n"
        + b"x" * 3_000_000
        + b"\n"
        + b'{"method": "notifications/initialized"}\n{"id": 9, "result": {}}\n'
    )
    sent = nonsense + ask(3, "server/discover") + ask(4, "ping") + ask(5, "tools/call", name="add", arguments={})
    code, replies, _ = talk(
        place, sent + ask(6, "tools/call", name="search", arguments={"query": "baker", "page": "x"})
    )
    assert code == 0
    assert [reply["error"]["code"] for reply in replies if reply["id"] is None] == [-32700, -32600, -32600, -32600] + [
        -32700
    ] * 2
    named = {reply["id"]: reply for reply in replies if reply["id"] is not None}
    assert [named[id]["error"]["code"] for id in (1, 2, 3)] == [-32602, -32602, -32601]
    assert named[4]["result"] == {}
    assert named[5]["result"]["isError"] and named[6]["result"]["isError"]


def test_many_calls_at_once_are_all_answered(tmp_path: Path) -> None:
    sent = b"".join(ask(id, "tools/call", name="search", arguments={"query": f"job {id}"}) for id in range(1, 301))
    code, replies, _ = talk(family_store(tmp_path / "store"), sent)
    assert code == 0 and [reply["id"] for reply in replies] == list(range(1, 301))
    assert not any(reply["result"]["isError"] for reply in replies)


def test_a_store_that_cannot_be_opened_is_said_to_whoever_started_it(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")
    (place / "documents.jsonl").write_text("{\n")
    code, _, said = talk(place, ask(1, "initialize", protocolVersion="2025-06-18"))
    assert code == 2 and said.startswith("kbgym: ") and "documents.jsonl" in said and "Traceback" not in said
    code, _, said = talk(family_store(tmp_path / "other"), b"", "--set", "strategy=wild")
    assert code == 2 and "no strategy" in said, "also where the client says nothing"


def test_a_long_call_sends_progress_to_a_client_that_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        instructions = ""

        def tools(self) -> tuple[Tool, ...]:
            return ()

        async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
            while len(sent) < 2 * int(arguments["waits"]):
                await asyncio.sleep(0.01)
            return ToolResult("done")

    def read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
        for line in (*map(encode, calls), None):
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    sent: list[dict[str, Any]] = []
    calls = [
        {
            "jsonrpc": "2.0",
            "id": id,
            "method": "tools/call",
            "params": {"name": "x", "arguments": {"waits": waits}} | meta,
        }
        for id, waits, meta in ((1, 1, {"_meta": {"progressToken": "t"}}), (2, 0, {}))
    ]
    monkeypatch.setattr(stdio, "_PROGRESS", 0.05)
    monkeypatch.setattr(stdio, "_read", read)
    monkeypatch.setattr(stdio, "_write", lambda line: sent.append(json.loads(line)))
    asyncio.run(stdio._converse(Slow(), asyncio.Event(), "1"))
    told = [message for message in sent if message.get("method") == "notifications/progress"]
    assert told and {message["params"]["progressToken"] for message in told} == {"t"}
    assert [message["params"]["progress"] for message in told] == sorted(m["params"]["progress"] for m in told)
    assert {message["id"] for message in sent if "id" in message} == {1, 2}
