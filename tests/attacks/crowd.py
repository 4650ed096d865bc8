"""Clients of a server under attack, as programs of their own: a few honest ones, and a crowd of hostile ones.

    python crowd.py honest URL TOKENS.json     # until its standard input ends; then prints what it did and was told
    python crowd.py writers URL TOKENS.json FILE    # what they are told goes to a file at once, line by line
    python crowd.py hostile URL TOKENS.json    # the same; a token goes with a role, here with the kind of attack

An honest client thinks, searches, and, where it is a curator, writes; it waits and asks again when told so. A hostile
one does its one thing as fast as it is let, and connects again whenever it is hung up on. Writers are honest curators
who think for a moment only; they too connect again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from serve import Connection

THINK = 1.0  # seconds an honest client thinks on average, as a model does
QUERIES = ("Where does she live?", "baker", "people who are married", "the city of Lund", "a friend of a friend")
QUESTION = "What is the job of the oldest person?"


class Told:
    """The honest clients' searches, with start and duration, and every acknowledgement they received."""

    def __init__(self) -> None:
        self.searches: list[tuple[float, float]] = []
        self.added: dict[str, str] = {}
        self.golds: list[str] = []
        self.waited = 0
        self.broken: list[str] = []


async def write(connection: Connection, number: int, out: Path) -> None:
    for count in itertools.count():
        await asyncio.sleep(0.02)
        text = f"Note {count} of writer {number} at {time.monotonic()}."
        try:
            status, said = await connection.request("/v1/add", {"text": text})
        except (OSError, asyncio.IncompleteReadError):
            connection.close()
            connection.streams = None
            continue
        if status == 200:
            with out.open("a") as file:
                file.write(json.dumps([said["result"]["id"], text]) + "\n")


async def honest(connection: Connection, number: int, curator: bool, told: Told) -> None:
    dice = random.Random(number)
    for count in itertools.count():
        await asyncio.sleep(dice.expovariate(1 / THINK))
        luck, started = dice.random(), time.monotonic()
        try:
            if curator and luck < 0.15:
                text = f"Note {count} of client {number} at {started}."
                status, said = await connection.request("/v1/add", {"text": text})
                if status == 200:
                    told.added[said["result"]["id"]] = text
            elif curator and luck < 0.17:
                asking = {"question": f"{QUESTION} ({number}, {count})"}
                status, said = await connection.request("/v1/questions", asking)
                if status == 200:
                    id = said["id"]
                    status, said = await connection.request(f"/v1/questions/{id}/gold", {"answers": ["baker"]})
                    told.golds += [id] * (status == 200)
            else:
                query = dice.choice(QUERIES) if luck < 0.7 else f"somebody whose number is {dice.random()}"
                status, said = await connection.request("/v1/search", {"query": query})
                told.searches.append((started, time.monotonic() - started))
        except (OSError, asyncio.IncompleteReadError) as error:
            told.broken.append(repr(error))
            connection.close()
            connection.streams = None
            continue
        if status != 200:
            told.waited += 1
            if status not in (409, 429):
                told.broken.append(f"{status} {said}")


# -- hostile clients --------------------------------------------------------------------------------------------------


async def raw(connection: Connection, data: Callable[[], bytes], read: bool = False) -> None:
    """Send requests without end; the caller may read the replies."""
    reader, writer = await asyncio.open_connection(connection.host, connection.port)
    try:
        while not writer.is_closing():
            writer.write(data())
            await writer.drain()
            if read:
                await reader.read(65_536)
    finally:
        writer.transport.abort()


async def endless_head(connection: Connection, number: int) -> None:
    lines = iter([b"GET /health HTTP/1.1\r\n"])
    await raw(connection, lambda: next(lines, b"X-Header: value\r\n" * 4_000))


async def unread(connection: Connection, number: int) -> None:
    request = f"GET /openapi.json HTTP/1.1\r\n{connection.head}\r\n".encode() * 8
    await raw(connection, lambda: request)


async def silent(connection: Connection, number: int) -> None:
    """Thirty connections that say nothing, or half of something."""
    held = []
    try:
        for count in range(30):
            _, writer = await asyncio.open_connection(connection.host, connection.port)
            held.append(writer)
            writer.write((b"", b"POST /sea", b"GET /health HTTP/1.1\r\nHost: ")[count % 3])
        await asyncio.sleep(3)
    finally:
        for writer in held:
            writer.transport.abort()


def asking(make: Callable[[int], tuple[str, Any, str]]) -> Callable[[Connection, int], Awaitable[None]]:
    """Requests in good order, one after another without a pause: path, body and session of each."""

    async def work(connection: Connection, number: int) -> None:
        head = connection.head
        for count in itertools.count(number * 1_000_000):
            path, body, session = make(count)
            connection.head = head.replace("Kbgym-Session: ", f"Kbgym-Session: {session}")
            await connection.request(path, body)

    return work


async def golds(connection: Connection, number: int) -> None:
    """Asks and gives golds, as a curator may: everything the store learns from costs it work."""
    for count in itertools.count():
        status, said = await connection.request("/v1/questions", {"question": f"Who is number {count} of {number}?"})
        if status == 200:
            await connection.request(f"/v1/questions/{said['id']}/gold", {"answers": [f"nobody {count}"]})


async def malformed(connection: Connection, number: int) -> None:
    bodies = itertools.cycle((b"{", b'{"query": 1}', b"[" * 50_000, b'{"query": "\xff"}', b"\0" * 1_000, b"null"))

    def request() -> bytes:
        body = next(bodies)
        head = f"POST /v1/search HTTP/1.1\r\n{connection.head}Content-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    await raw(connection, request, read=True)


KINDS: dict[str, Callable[[Connection, int], Awaitable[None]]] = {
    "endless heads": endless_head,
    "answers nobody reads": unread,
    "silence": silent,
    "sessions": asking(lambda n: ("/v1/search", {"query": "baker"}, f"s{n}")),
    "long new queries": asking(lambda n: ("/v1/search", {"query": " ".join(str(n + k) for k in range(200))}, "")),
    "golds": golds,
    "malformed": malformed,
    "edits as a reader": asking(lambda n: ("/v1/edit", {"id": "c0", "text": f"Counter c0 stands at {n}."}, "")),
    "open questions": asking(lambda n: ("/v1/questions", {"question": f"Who is {n}?", "reader": "caller"}, "")),
}


async def hostile(url: str, token: str, number: int, work: Callable[[Connection, int], Awaitable[None]]) -> None:
    while True:
        connection = Connection(url, token, "")
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await work(connection, number)
        connection.close()
        await asyncio.sleep(0.01)  # while nobody listens


async def main(who: str, url: str, tokens: list[list[str]]) -> None:
    told, loop = Told(), asyncio.get_running_loop()
    if who == "honest":
        made = [
            honest(Connection(url, token, ""), n, role == "curator", told) for n, (token, role) in enumerate(tokens)
        ]
    elif who == "writers":
        out = Path(sys.argv[4])
        made = [
            write(Connection(url, token, ""), n, out) for n, (token, role) in enumerate(tokens) if role == "curator"
        ]
    else:
        made = [hostile(url, token, n, KINDS[kind]) for n, (token, kind) in enumerate(tokens)]
    tasks = [loop.create_task(one) for one in made]
    over = loop.run_in_executor(None, sys.stdin.read)
    done, _ = await asyncio.wait([over, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done - {over}:
        task.result()
    print(json.dumps(vars(told)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(Path(sys.argv[3]).read_text())))
