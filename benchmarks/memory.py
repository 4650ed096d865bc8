"""Memory of a served store under hostile clients: `python benchmarks/memory.py [--seconds 600] [--people 400]`.

Clients search for words nobody used before, open questions and leave them, begin MCP sessions, and add and delete
documents, all as fast as the server answers. Prints the server's resident memory every tenth of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

KBGYM = [sys.executable, "-c", "from kbgym.cli.main import run; run()"]
QUESTION = "Who is the baker who lives in the city of Lund?"
_count = itertools.count()


async def search(http: httpx.AsyncClient) -> None:
    await http.post("/v1/search", json={"query": f"word{next(_count)} of nobody {time.monotonic_ns()}", "k": 50})


async def ask(http: httpx.AsyncClient) -> None:
    asked = (await http.post("/v1/questions", json={"question": QUESTION, "reader": "caller"})).json()
    await http.post("/v1/search", json={"query": "job is baker"}, headers={"Kbgym-Question": asked["id"]})


async def answer(http: httpx.AsyncClient) -> None:
    asking = {"question": f"{QUESTION} {next(_count)}", "answer": "nobody"}
    asked = (await http.post("/v1/questions", json=asking)).json()
    await http.post(f"/v1/questions/{asked['id']}/gold", json={"answers": ["somebody"]})


async def converse(http: httpx.AsyncClient) -> None:
    about = {"name": "hostile", "version": "1"}
    hello: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    begun = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    call = {"name": "search", "arguments": {"query": f"baker {next(_count)}"}}
    session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
    await http.post("/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}, headers=session)


async def edit(http: httpx.AsyncClient) -> None:
    session = {"Kbgym-Session": f"s{next(_count)}"}
    made = (await http.post("/v1/add", json={"text": f"Sentence {next(_count)} of nobody."}, headers=session)).json()
    if id := made["result"].get("id"):
        await http.post("/v1/delete", json={"id": id}, headers=session)


async def hostile(url: str, seconds: float, resident: Callable[[], int]) -> list[int]:
    until, shown = time.monotonic() + seconds, []

    async def repeat(work: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            while time.monotonic() < until:
                await work(http)

    async def watch() -> None:
        for _ in range(10):
            await asyncio.sleep(seconds / 10)
            shown.append(resident())
            print(f"| {len(shown) * seconds / 10:.0f} | {shown[-1] / 1024:.0f} |", flush=True)

    await asyncio.gather(watch(), *(repeat(work) for work in (search, search, ask, answer, converse, edit)))
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--people", type=int, default=400)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder) / "world"
        made = [*KBGYM, "generate", "--people", str(given.people), "--seed", "1", "--out", str(world), "--quiet"]
        subprocess.run(made, check=True)
        serve = [*KBGYM, "serve", str(world), "--http", "127.0.0.1:0", "--no-auth", "--role", "curator", "--json"]
        server = subprocess.Popen(serve, stdout=subprocess.PIPE)
        assert server.stdout is not None
        try:
            url = json.loads(server.stdout.readline())["url"]
            status = Path(f"/proc/{server.pid}/status")

            def resident() -> int:
                line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
                return int(line.split()[1])

            print("| after s | resident MB |\n| ---: | ---: |")
            shown = asyncio.run(hostile(url, given.seconds, resident))
        finally:
            server.terminate()
            server.wait(30)
    print(f"\nThe end is {shown[-1] / shown[0]:.2f} times the first tenth; the limit is 1.3.")
    return 0 if shown[-1] <= 1.3 * shown[0] else 1


if __name__ == "__main__":
    sys.exit(main())
