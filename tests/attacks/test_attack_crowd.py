"""64 hostile clients beside 8 honest ones, and kill -9 among them: the honest are answered, and lose nothing.

The clients run in processes of their own.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from crowd import KINDS
from serve import make_store
from serving import Server, replayed

from kbgym.serving.tokens import new_token
from kbgym.trace.folder import StoreFolder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ATTACK = 20.0  # seconds
GROWTH = 100_000_000  # bytes
KILLS = 50


class Guests:
    """A store with people in it, and the tokens of everybody who will come."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "store"
        make_store(self.place, 100)
        self.honest, self.hostile = folder / "honest.json", folder / "hostile.json"
        roles = ["curator" if n % 2 else "reader" for n in range(8)]
        self.honest.write_text(json.dumps([[self._token(f"h{n}", role), role] for n, role in enumerate(roles)]))
        kinds = [list(KINDS)[n % len(KINDS)] for n in range(64)]
        given = [[self._token(f"x{n}", "curator" if k == "golds" else "reader"), k] for n, k in enumerate(kinds)]
        self.hostile.write_text(json.dumps(given))

    def _token(self, name: str, role: Any) -> str:
        return new_token(self.place / "tokens.jsonl", name, role)


class Crowd:
    """A program of `crowd.py` while it runs; `told` afterwards."""

    told: dict[str, Any]

    def __init__(self, who: str, server: Server, tokens: Path, *more: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("crowd.py")), who, server.url, str(tokens), *more]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)

    def end(self) -> None:
        said, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        self.told = json.loads(said)


@contextmanager
def crowd(who: str, server: Server, tokens: Path, *more: str) -> Iterator[Crowd]:
    made = Crowd(who, server, tokens, *more)
    try:
        yield made
        made.end()
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()


def memory(server: Server) -> int:
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4_096


def missing(place: Path, told: dict[str, Any]) -> list[str]:
    """Return the acknowledged edits that are missing from the store that the trace alone gives."""
    folder = StoreFolder(place)
    store = folder.store()
    graded = {getattr(event, "question", None) for event in folder.events}
    lost = [id for id, text in told["added"].items() if id not in store or store[id].text != text]
    return [*lost, *(id for id in told["golds"] if id not in graded)]


def test_honest_clients_among_hostile_ones(tmp_path: Path) -> None:
    """Honest clients get correct replies, lose nothing, and the server's memory stays bounded."""
    guests = Guests(tmp_path)
    server = Server(guests.place)
    try:
        with crowd("honest", server, guests.honest) as honest:
            time.sleep(4)
            before, attacked, most = memory(server), time.monotonic(), 0
            with crowd("hostile", server, guests.hostile):
                while time.monotonic() < attacked + ATTACK:
                    time.sleep(0.2)
                    most = max(most, memory(server))
    finally:
        said = server.stop()
    told = honest.told
    assert not said, said
    assert not told["broken"], told["broken"][:3]
    assert len(told["added"]) > 10 and missing(guests.place, told) == []
    assert replayed(guests.place)
    assert most - before < GROWTH, f"{(most - before) / 1e6:.0f} MB more than before"


def test_kill_9_under_attack(tmp_path: Path) -> None:
    """The clients stay and come back, the server is killed again and again; all that was acknowledged is there."""
    guests, acknowledged = Guests(tmp_path), tmp_path / "acknowledged.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    server = Server(guests.place, "--http", address)
    known = 0
    try:
        writers = crowd("writers", server, guests.honest, str(acknowledged))
        with writers, crowd("hostile", server, guests.hostile):
            for number in range(KILLS):
                until = time.monotonic() + 20
                while len(told_to(acknowledged)) == known and time.monotonic() < until:
                    time.sleep(0.02)
                time.sleep(number % 7 / 20)
                server.kill()
                told = told_to(acknowledged)
                assert len(told) > known, "nothing was acknowledged before the kill: the round shows nothing"
                known = len(told)
                assert missing(guests.place, {"added": told, "golds": []}) == [], f"after {number + 1} kills"
                server = Server(guests.place, "--http", address)
    finally:
        server.stop()
    print(f"{known} acknowledged in {KILLS} rounds")
    assert missing(guests.place, {"added": told_to(acknowledged), "golds": []}) == [] and replayed(guests.place)


def told_to(file: Path) -> dict[str, str]:
    """Return the acknowledgements that the writers recorded."""
    lines = file.read_text().rpartition("\n")[0].splitlines() if file.exists() else []
    return dict(json.loads(line) for line in lines)
