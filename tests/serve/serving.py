"""A served store for tests: in this process, or as `kbgym serve` in a process of its own that is always ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import msgspec
from family import family

from kbgym.canonical import write_lines
from kbgym.gym.policy import Agent
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.setup import open_online
from kbgym.serving.tokens import new_token
from kbgym.trace.folder import StoreFolder
from kbgym.training.gate import Gate
from kbgym.training.run import Settings

HASH = Settings(embedder="hash")


def family_store(place: Path) -> Path:
    """The folder of a small store: the family's sentences, no links."""
    place.mkdir(parents=True)
    write_lines(place / "documents.jsonl", family().documents)
    (place / "world.json").write_text('{"kind": "people"}', encoding="utf-8")  # whose grammar the reference agents know
    return place


@asynccontextmanager
async def opened(
    place: Path, settings: Settings = HASH, curator: Agent | None = None, gate: Gate | None = None
) -> AsyncIterator[Online]:
    online = open_online(place, settings, settings.embedder)
    if curator is not None:
        online.curator = curator
    online.gate = gate
    try:
        yield online
    finally:
        await online.stop()
        await online.live.close()


def replayed(place: Path) -> str:
    """The store's hash as its trace alone gives it, every recorded result verified."""
    return StoreFolder(place).store().fingerprint


class Server:
    """`kbgym serve --http` on a free port of loopback."""

    def __init__(self, place: Path | str, *flags: str) -> None:
        command = [sys.executable, "-c", "from kbgym.cli.main import run; run()", "serve", str(place)]
        command += ["--http", "127.0.0.1:0", "--json", "--set", "embedder=hash", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr.read().decode())
        self.url: str = json.loads(line)["url"]

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> str:
        """End it in good order; what it had to say on stderr."""
        if self.process.poll() is None:
            self.process.terminate()
        return self._end()

    def _end(self) -> str:
        _, said = self.process.communicate(timeout=30)
        return said.decode()


class Tokens(msgspec.Struct, frozen=True):
    reader: str
    curator: str
    other: str


def make_tokens(place: Path) -> Tokens:
    file = place / "tokens.jsonl"
    made = (new_token(file, "rex", "reader"), new_token(file, "ada", "curator"), new_token(file, "bo", "curator"))
    return Tokens(*made)


@contextmanager
def serving(place: Path, *flags: str) -> Iterator[Server]:
    server = Server(place, *flags)
    try:
        yield server
    finally:
        server.stop()


def client(server: Server, token: str | None, **headers: str) -> httpx.Client:
    given = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return httpx.Client(base_url=server.url, headers={**given, **headers}, timeout=30)
