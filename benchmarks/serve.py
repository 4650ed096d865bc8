"""A served store under load and under kill -9, over real sockets on loopback.

    python benchmarks/serve.py                       # 64 clients for 60 s in each setting, then 50 kills; Markdown
    python benchmarks/serve.py --seconds 8 --kills 5 --embedder hash --settings 0.1:0 --json

Load: each client thinks for a while (exponential, drawn from the client's own seed), then searches (70%), reads (15%),
or edits (15%): it raises a counter that all clients share by reading and editing its document, or it adds a sentence
and links it. A setting is THINK:NEW, the seconds a client thinks on average (a model takes 0.2 at the very least; 0 is
a closed loop without thinking) and the share of searches for a text nobody has searched for before, which must be
embedded; every added or edited text is new as well. Clients are one process, the server another, on the same cores.
Afterwards every acknowledged edit must be in the store, every counter must stand at the number of its acknowledged
raises, and the store must equal the replay of its trace. Kills: the same edits, no thinking, the server killed at a
random moment and started again on what it left.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbgym.api.factory import embedder_named
from kbgym.canonical import write_lines
from kbgym.serving.tokens import new_token
from kbgym.trace.folder import StoreFolder
from kbgym.worlds.people import NO_QUESTIONS, generate
from kbgym.worlds.world import Document

COUNTERS = 8
DOCUMENTED = {200, 409}
SETTINGS = "1:0,1:0.5,1:1,0.2:0,0.2:0.5,0.2:1,0:0.5"
FRESH = ("{}'s job is", "{}'s hobby is", "{} lives in the city of", "{} is a friend of", "Friends of {}", "{}")


class Connection:
    """A minimal HTTP client, so that the clients take less of the machine than the server."""

    def __init__(self, url: str, token: str, session: str) -> None:
        self.host, port = url.removeprefix("http://").split(":")
        self.port = int(port)
        self.head = f"Host: {self.host}\r\nAuthorization: Bearer {token}\r\nKbgym-Session: {session}\r\n"
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, path: str, body: Any = None) -> tuple[int, Any]:
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.streams
        data = b"" if body is None else json.dumps(body).encode()
        kind = "GET" if body is None else "POST"
        head = f"{kind} {path} HTTP/1.1\r\n{self.head}Content-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.search(r"content-length: (\d+)", answer, re.IGNORECASE)[1])  # type: ignore[index]
        return int(answer.split()[1]), json.loads(await reader.readexactly(length))

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()


class Record:
    """The requests of the clients and the replies they received."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}
        self.statuses: Counter[int] = Counter()
        self.raised: Counter[str] = Counter()
        self.highest: Counter[str] = Counter()
        self.added: dict[str, str] = {}
        self.linked: set[str] = set()
        self.conflicts = 0
        self.undocumented: list[str] = []

    def note(self, path: str, status: int, seconds: float, body: Any) -> None:
        self.times.setdefault(path, []).append(seconds)
        self.statuses[status] += 1
        if status not in DOCUMENTED:
            self.undocumented.append(f"{path} {status} {str(body)[:200]}")

    @property
    def acknowledged(self) -> int:
        return len(self.added) + len(self.linked) + sum(self.raised.values())

    def percentile(self, path: str, share: float) -> float:
        times = sorted(self.times.get(path, [0.0]))
        return times[min(len(times) - 1, int(share * len(times)))]


class Client:
    def __init__(self, number: int, connection: Connection, queries: list[str], ids: list[str], record: Record) -> None:
        self.number, self.connection, self.queries, self.ids, self.record = number, connection, queries, ids, record
        self.dice = random.Random(number)
        self.count = self.fresh = 0
        self.new = 0.0
        self.unseen: Iterator[str] = iter(())

    async def ask(self, path: str, body: Any) -> tuple[int, Any]:
        started = time.perf_counter()
        status, answer = await self.connection.request(path, body)
        self.record.note(path, status, time.perf_counter() - started, answer)
        return status, answer

    async def work(self, until: float, think: float, edits_only: bool = False) -> None:
        while time.monotonic() < until:
            if think:
                await asyncio.sleep(self.dice.expovariate(1 / think))
            luck = 1.0 if edits_only else self.dice.random()
            if luck < 0.70:
                if self.dice.random() < self.new:
                    self.fresh += 1
                    await self.ask("/v1/search", {"query": next(self.unseen)})
                else:
                    await self.ask("/v1/search", {"query": self.dice.choice(self.queries)})
            elif luck < 0.85:
                await self.ask("/v1/read", {"id": self.dice.choice(self.ids)})
            elif self.dice.random() < 0.5:
                await self.raise_counter()
            else:
                await self.add()

    async def raise_counter(self) -> None:
        id = f"c{self.dice.randrange(COUNTERS)}"
        _, answer = await self.ask("/v1/read", {"id": id})
        for _ in range(20):
            value = int(re.search(rf"\[{id}\] Counter \w+ stands at (\d+)", answer["observation"])[1])  # type: ignore[index]
            text = f"Counter {id} stands at {value + 1}."
            status, answer = await self.ask("/v1/edit", {"id": id, "text": text})
            if status == 200:
                self.record.raised[id] += 1
                self.record.highest[id] = max(self.record.highest[id], value + 1)
                return
            self.record.conflicts += 1

    async def add(self) -> None:
        self.count += 1
        text = f"Note {self.count} of client {self.number} mentions {self.dice.choice(self.ids)}."
        status, answer = await self.ask("/v1/add", {"text": text})
        if status == 200 and answer["result"]["result"] == "added":
            id = answer["result"]["id"]
            self.record.added[id] = text
            status, answer = await self.ask("/v1/link", {"source": id, "target": self.dice.choice(self.ids)})
            if status == 200 and answer["result"]["result"] == "linked":
                self.record.linked.add(id)


def make_store(place: Path, people: int) -> tuple[list[str], list[str]]:
    """A store with counters in it; queries and ids to use."""
    world = generate(people, seed=1, sizes=NO_QUESTIONS)
    counters = [Document(f"c{n}", f"Counter c{n} stands at 0.") for n in range(COUNTERS)]
    place.mkdir()
    write_lines(place / "documents.jsonl", [*world.documents, *counters])
    dice = random.Random(0)
    texts = [document.text for document in world.documents]
    queries = [" ".join(dice.choice(texts).rstrip(".").split()[dice.randrange(3) :]) for _ in range(2_000)]
    return queries, [document.id for document in world.documents]


def unseen(people: int) -> Iterator[str]:
    """Queries about people who do not exist, each once: as long as those about people who do, and never cached."""
    names = [text.split()[:2] for text in (d.text for d in generate(people, seed=1, sizes=NO_QUESTIONS).documents)]
    first, last = (sorted({name[at].removesuffix("'s") for name in names}) for at in (0, 1))
    pairs = [(one, other, shape) for one in first for other in last for shape in FRESH]
    random.Random(1).shuffle(pairs)
    return (shape.format(f"{one} {other}") for one, other, shape in pairs)


class Server:
    """A `kbgym serve` process, of this version or of the one whose `src` is given."""

    def __init__(self, place: Path, embedder: str, source: Path | None = None) -> None:
        command = [sys.executable, "-c", "from kbgym.cli.main import run; run()", "serve", str(place), "--json"]
        command += ["--http", "127.0.0.1:0", "--set", f"embedder={embedder}"]
        command += ["--rate-limit", "0", "--max-sessions", "1000"]
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        if source is not None:
            environment["PYTHONPATH"] = str(source)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdout is not None
        self.url: str = json.loads(self.process.stdout.readline())["url"]

    def processor_seconds(self) -> float:
        """Return the processor time that the server has used so far, in all threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.wait(30)


def check(place: Path, record: Record, exact: bool) -> None:
    """Check that every acknowledged edit is there and that the trace replays."""
    store = StoreFolder(place).store()
    for id, text in record.added.items():
        assert id in store and store[id].text == text, f"{id} was acknowledged and is not there"
    for id in record.linked:
        assert store[id].links, f"a link of {id} was acknowledged and is not there"
    for number in range(COUNTERS):
        id = f"c{number}"
        value = int(store[id].text.rstrip(".").rpartition(" ")[2])
        assert value >= record.highest[id], f"{id} was raised to {record.highest[id]} and stands at {value}"
        if exact:
            assert value == record.raised[id], (
                f"{id}: {record.raised[id]} raises were acknowledged, it stands at {value}"
            )


async def load(
    place: Path,
    queries: list[str],
    ids: list[str],
    fresh: Iterator[str],
    setting: str,
    source: Path | None,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    think, new = map(float, setting.split(":"))
    token = new_token(place / "tokens.jsonl", "load", "curator")
    before = os.getloadavg()[0]
    server = Server(place, arguments.embedder, source)
    try:
        record = Record()
        connections = [Connection(server.url, token, str(n)) for n in range(arguments.clients)]
        clients = [Client(n, one, queries, ids, record) for n, one in enumerate(connections)]
        for client in clients:
            client.new, client.unseen = new, fresh
        used, own = server.processor_seconds(), time.process_time()
        until = time.monotonic() + arguments.seconds
        await asyncio.gather(*(client.work(until, think) for client in clients))
        used, own = server.processor_seconds() - used, time.process_time() - own
        _, stats = await connections[0].request("/v1/stats")
        for one in connections:
            one.close()
        commits, flushes = await _commits(server.url, token)
    finally:
        server.end()
    check(place, record, exact=True)
    assert StoreFolder(place).store().fingerprint == stats["hash"], "the store is not the replay of its trace"
    requests = sum(record.statuses.values())
    searches = len(record.times.get("/v1/search", ()))
    return {
        "version": "this" if source is None else "before",
        "think": think,
        "new": round(sum(client.fresh for client in clients) / max(1, searches), 3),
        "clients": arguments.clients,
        "embedder": arguments.embedder,
        "seconds": arguments.seconds,
        "documents": stats["documents"],
        "requests": requests,
        "per_second": round(requests / arguments.seconds, 1),
        "edits": record.acknowledged,
        "conflicts": record.conflicts,
        "commits_per_flush": round(commits / max(1, flushes), 2),
        "undocumented": record.undocumented[:5],
        "server_cores": round(used / arguments.seconds, 2),
        "server_ms": round(used / max(1, requests) * 1e3, 2),
        "client_cores": round(own / arguments.seconds, 2),
        "load_before": round(before, 1),
        "load_after": round(os.getloadavg()[0], 1),
        "milliseconds": {
            path: {
                f"p{round(share * 100)}": round(record.percentile(path, share) * 1e3, 2) for share in (0.5, 0.95, 0.99)
            }
            for path in sorted(record.times)
        },
    }


async def _commits(url: str, token: str) -> tuple[float, float]:
    reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    head = f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    text = (await reader.read()).decode()
    writer.close()
    commits, flushes = (re.search(rf"^kbgym_{name}_total (\S+)", text, re.MULTILINE) for name in ("commits", "flushes"))
    assert commits and flushes
    return float(commits[1]), float(flushes[1])


async def killing(place: Path, queries: list[str], ids: list[str], rounds: int) -> dict[str, Any]:
    token = new_token(place / "tokens.jsonl", "load", "curator")
    dice, torn, before = random.Random(0), 0, 0
    record = Record()
    for number in range(rounds):
        server = Server(place, "hash")
        connections = [Connection(server.url, token, f"{number}-{n}") for n in range(16)]
        clients = [Client(number * 100 + n, one, queries, ids, record) for n, one in enumerate(connections)]
        tasks = [asyncio.create_task(client.work(time.monotonic() + 30, 0, True)) for client in clients]
        while record.acknowledged == before and not all(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        await asyncio.sleep(dice.uniform(0, 0.5))
        server.end(kill=True)
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in connections:
            one.close()
        check(place, record, exact=False)
        reading = StoreFolder(place).reading
        torn += reading is not None and reading.dropped is not None
        assert record.acknowledged > before, "nothing was acknowledged before the kill: the round shows nothing"
        before = record.acknowledged
    assert not record.undocumented, record.undocumented[:3]
    return {"rounds": rounds, "acknowledged": record.acknowledged, "torn": torn, "missing": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settings", default=SETTINGS, help=f"THINK:NEW, several with commas  [default: {SETTINGS}]")
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2")
    parser.add_argument("--against", type=Path, help="the src of another version, measured after this one in turn")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, Any] = {"load": []}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KBGYM_CACHE"] = str(Path(folder) / "cache")
        fresh = unseen(arguments.people)
        sources = [None] if arguments.against is None else [None, arguments.against]
        tried = [(setting, source) for setting in arguments.settings.split(",") for source in sources]
        for number, (setting, source) in enumerate(tried if arguments.seconds else ()):
            place = Path(folder) / f"load-{number}"
            queries, ids = make_store(place, arguments.people)
            embedder_named(arguments.embedder).embed(queries)
            found["load"].append(asyncio.run(load(place, queries, ids, fresh, setting, source, arguments)))
        if arguments.kills:
            queries, ids = make_store(Path(folder) / "kill", 40)
            found["kill"] = asyncio.run(killing(Path(folder) / "kill", queries, ids, arguments.kills))
    print(json.dumps(found) if arguments.json else markdown(found))


def markdown(found: dict[str, Any]) -> str:
    head = "| version | think s | new queries | actions/s | search p50 ms | p95 | p99 | edit p99 | server cores "
    head += "| of it ms an action | clients' cores |"
    lines = []
    for row in found["load"]:
        search, edit = row["milliseconds"]["/v1/search"], row["milliseconds"].get("/v1/edit", {"p99": 0.0})
        cells = [row["version"], f"{row['think']:g}", f"{row['new']:.0%}", row["per_second"]]
        cells += [search["p50"], search["p95"], search["p99"], edit["p99"], row["server_cores"], row["server_ms"]]
        cells += [row["client_cores"], f"{row['load_before']} to {row['load_after']}", len(row["undocumented"])]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    text = f"{head} load average | undocumented answers |\n|{' ---: |' * 13}\n" + "\n".join(lines) if lines else ""
    if lines:
        row = found["load"][0]
        about = f"{row['clients']} clients for {row['seconds']:g} s a setting, {row['documents']:,} documents, "
        about += f"vectors by {row['embedder']}."
        text = f"{about}\n\n{text}\n\n"
    if "kill" in found:
        text += (
            "kill -9 {rounds} times: {acknowledged} edits acknowledged, {missing} missing, {torn} torn ends.".format(
                **found["kill"]
            )
        )
    return text


if __name__ == "__main__":
    main()
