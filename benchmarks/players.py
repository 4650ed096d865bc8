"""Overhead of an agent program: the time until a server's tools are ready, and the cost of a pass besides its own time.

    python benchmarks/players.py                     # Markdown; of a small run that is made for it
    python benchmarks/players.py STORE --times 5 --json

Start: from starting `kbgym serve STORE --mcp` to the replies to `initialize` and `tools/list`, and to a first search,
beside Python that does nothing. Pass: a program that searches once and answers, from when the pass begins until it is
graded, less the time between the program's first and last line; so its own start counts as overhead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kbgym.agents.external.agent import CommandAgent
from kbgym.agents.llm.prompting import skill_of
from kbgym.api import open as open_backend
from kbgym.api import train
from kbgym.gym.environment import Environment
from kbgym.gym.episode import play
from kbgym.gym.policy import Forward
from kbgym.worlds.people import generate

PROGRAM = """
import time; began = time.time()
import http.client, json, os
url = os.environ["KBGYM_MCP_URL"]
client = http.client.HTTPConnection("127.0.0.1", int(url.split(":")[2].split("/")[0]))
headers = {"Authorization": "Bearer " + os.environ["KBGYM_TOKEN"], "Content-Type": "application/json"}
def ask(method, **params):
    client.request("POST", "/mcp", json.dumps({"id": 1, "method": method, "params": params}), headers)
    client.getresponse().read()
ask("initialize"); ask("tools/call", name="search", arguments={"query": "job"})
ask("tools/call", name="answer", arguments={"text": "x"})
print(json.dumps(time.time() - began))
"""


def started(place: str) -> list[float]:
    """Seconds to `initialize`, to `tools/list` and to a first search."""
    began, times = time.perf_counter(), []
    command = [sys.executable, "-m", "kbgym", "serve", place, "--mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        search = {"name": "search", "arguments": {"query": "job is baker"}}
        for method, params in (("initialize", {}), ("tools/list", {}), ("tools/call", search)):
            server.stdin.write(json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n")
            server.stdin.flush()
            server.stdout.readline()
            times.append(time.perf_counter() - began)
        server.stdin.close()
    return times


def bare() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began


async def passes(place: str, times: int) -> list[float]:
    """Seconds of each pass besides the program's own."""
    with open_backend(place) as opened, tempfile.TemporaryDirectory() as folder:
        program, kept = Path(folder, "program.py"), Path(folder, "kept.jsonl")
        program.write_text(PROGRAM, encoding="utf-8")
        agent = CommandAgent(f"command:{sys.executable} -I -S {program}", "reader", skill_of("reader"), kept)
        environment, found = Environment(opened.store, opened.engine), []
        for _ in range(times):
            began = time.perf_counter()
            await play(agent(), environment, "reader", Forward("Who?"), 5)
            took = time.perf_counter() - began
            found.append(took - json.loads(json.loads(kept.read_text().splitlines()[-1])["output"]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", nargs="?", help="Any store or run.")
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        before = os.getloadavg()[0]
        place = given.place or train(generate(80), Path(scratch, "run"), questions=10, epochs=1, eval=False).where
        pairs = [(bare(), *started(place)) for _ in range(given.times + 1)][1:]
        columns = [*zip(*pairs, strict=True), asyncio.run(passes(place, given.times + 1))[1:]]
    names = ("python -c pass", "initialize", "tools/list", "first search", "pass, besides the program")
    rows = {
        name: [round(1000 * of(column)) for of in (min, statistics.median, max)]
        for name, column in zip(names, columns, strict=True)
    }
    if given.json:
        print(json.dumps({"n": given.times, "load": before, "ms": rows}))
        return
    print(f"n = {given.times}, load average {before:.1f}, {os.cpu_count()} cores\n")
    print("| ms | least | median | most |\n| --- | ---: | ---: | ---: |")
    for name, values in rows.items():
        print(f"| {name} | {' | '.join(map(str, values))} |")


if __name__ == "__main__":
    main()
