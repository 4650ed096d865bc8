"""An agent as a program: it plays a pass over MCP, told only what kbgym tells a command. Run as a process by tests.

    python command_agent.py PROMPT_FILE MCP_URL TOKEN [how]

`how` is plain (a bare HTTP client), official (the official MCP client) or bridge (standard streams), or some mischief.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from turns import turn

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

_LEFT = re.compile(r"Actions left: (\d+)\.$")
_DATA = re.compile(r"<observation>\n(.*?)\n</observation>", re.DOTALL)


class Plain:
    """Just enough of a client: one message, one reply."""

    def __init__(self, url: str, token: str) -> None:
        self.port, self.token, self.number = int(url.split(":")[2].split("/")[0]), token, 0

    def post(self, body: bytes, token: str | None = None, path: str = "/mcp") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        connection.request("POST", path, body, headers)
        reply = connection.getresponse()
        return reply.status, reply.read()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return dict(json.loads(self.post(json.dumps(message).encode())[1]))

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return str(self.ask("tools/call", name=name, arguments=arguments)["result"]["content"][0]["text"])


class Official:
    def __init__(self, client: Any) -> None:
        self.client = client

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return str((await self.client.call_tool(name, arguments)).content[0].text)


@asynccontextmanager
async def connected(how: str, url: str, token: str) -> Any:
    if how not in ("official", "bridge"):
        plain = Plain(url, token)
        plain.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        yield plain
        return
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    if how == "bridge":
        env = {**os.environ, "KBGYM_TOKEN": token, "PYTHONPATH": str(HERE.parent / "src")}
        bridge = StdioServerParameters(command=sys.executable, args=["-m", "kbgym", "play", "bridge", url], env=env)
        async with Client(stdio_client(bridge)) as client:
            yield Official(client)
        return
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as carrier,
        Client(streamable_http_client(url, http_client=carrier)) as client,
    ):
        yield Official(client)


async def play(prompt: str, client: Any, dies: bool = False) -> None:
    from prompt_reader import _task

    from kbgym.agents.llm.prompting import call_of
    from kbgym.agents.reference.curator import ReferenceCurator
    from kbgym.agents.reference.reader import ReferenceReader
    from kbgym.gym.policy import Turn, View

    role: Any = "curator" if "# Keeping a store in order" in prompt else "reader"
    task = _task(prompt.partition("# Your task\n\n")[2], role)
    policy = ReferenceReader() if role == "reader" else ReferenceCurator()
    history: tuple[Turn, ...] = ()
    left = int(_LEFT.search(prompt)[1])  # type: ignore[index]
    while left > 0:
        action = await policy.act(View(role, task, history, left))
        asked = call_of(action, "")
        if dies and random.random() < 0.3:
            os.kill(os.getpid(), signal.SIGKILL)
        said = await client.call(asked.name, json.loads(asked.arguments))
        if asked.name in ("answer", "done"):
            break
        found = _LEFT.search(said)
        if not found or found[1] == "0":
            break
        left = int(found[1])
        history = (*history, turn(action, _DATA.match(said)[1]))  # type: ignore[index]
    print("played")
    if "PLAYER_SAYS" in os.environ:
        print(os.environ["PLAYER_SAYS"])


async def mischief(how: str, plain: Plain) -> None:
    if how == "wrong_tools":
        while True:
            await plain.call("delete", {"id": "d1"})
    if how == "huge":
        with contextlib.suppress(OSError):  # it is not read to its end
            assert plain.post(b"x" * 5_000_000)[0] == 413
        for _ in range(100):
            await plain.call("search", {"query": "x" * 500_000})
    if how == "hang":
        Path(os.environ["HOME"], "hangs.pid").write_text(str(os.getpid()))
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if how == "waits":
        Path(os.environ["HOME"], "waits.pid").write_text(str(os.getpid()))
        await plain.call("search", {"query": "job"})
    if how == "no_credit":
        sys.exit("no credit left")
    if how == "fork":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(os.environ["HOME"], "child.pid").write_text(str(child.pid))
        await plain.call("answer", {"text": "forked"})
        return
    if how == "noise":
        print("x" * 3_000_000, flush=True)
        print(f"my token is {plain.token}", flush=True)
        await plain.call("search", {"query": "job"})
        sys.exit("I give up")
    if how == "look":
        seen = {"env": sorted(os.environ), "cwd": os.listdir("."), "other": plain.post(b"{}", token="guess")[0]}
        seen["path"] = plain.post(b"{}", path="/store")[0]
        seen["tools"] = [tool["name"] for tool in plain.ask("tools/list")["result"]["tools"]]
        Path(os.environ["HOME"], "seen.json").write_text(json.dumps(seen))
        await plain.call("answer", {"text": "seen"})
        seen["after"] = await plain.call("search", {"query": "job"})
        Path(os.environ["HOME"], "seen.json").write_text(json.dumps(seen))


async def main() -> None:
    file, url, token, *rest = sys.argv[1:]
    how = rest[0] if rest else "plain"
    prompt = Path(file).read_text()
    async with connected(how, url, token) as client:
        if how in ("plain", "official", "bridge", "dies"):
            await play(prompt, client, how == "dies")
        else:
            await mischief(how, client)


if __name__ == "__main__":
    asyncio.run(main())
