"""Two `kbgym serve` processes on one database: what one acknowledges, the other finds at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import postgres
import pytest
from click.testing import CliRunner
from family import family

from kbgym.cli.main import app
from kbgym.store import Store, source
from kbgym.trace.backend import open_backend, save_store

pytestmark = [pytest.mark.slow, pytest.mark.skipif(postgres.installed() is None, reason=postgres.MISSING)]

SERVE = "from kbgym.cli.main import run; run()"


@pytest.fixture(scope="module")
def place(cluster: postgres.Cluster) -> str:
    url = cluster.url("two")
    save_store(Store(source(d.id, d.text) for d in family().documents), url)
    return url


@pytest.fixture
def served(place: str) -> Iterator[list[str]]:
    flags = ["--http", "127.0.0.1:0", "--no-auth", "--role", "curator", "--set", "embedder=hash", "--json"]
    running = [
        subprocess.Popen([sys.executable, "-c", SERVE, "serve", place, *flags], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        urls = []
        for process in running:
            assert process.stdout is not None
            urls.append(json.loads(process.stdout.readline())["url"])
        yield urls
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(timeout=20)


def asked(url: str, tool: str, **arguments: object) -> dict[str, object]:
    answer = httpx.post(f"{url}/v1/{tool}", json=arguments, timeout=20)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def test_they_share_one_store_and_one_history(place: str, served: list[str]) -> None:
    one, other = served
    for number in range(20):
        here, there = (one, other) if number % 2 else (other, one)
        text = f"People whose lucky number is {number} hundred and {number}"
        added = asked(here, "add", text=text)["result"]
        assert isinstance(added, dict)
        found = asked(there, "search", query=text)["result"]
        assert isinstance(found, dict)
        assert added["id"] in found["ids"], "what was acknowledged there is not found here"
    opened = open_backend(place)
    opened.verify()
    assert opened.iteration == 20
    opened.close()


def test_a_store_in_a_database_learns_from_traffic(place: str, tmp_path: Path) -> None:
    file = tmp_path / "traffic.jsonl"
    file.write_text('{"question": "What is the job of Ada Alm?", "answers": ["baker"]}\n', encoding="utf-8")
    before = open_backend(place).iteration
    found = CliRunner().invoke(app, ["learn", place, "--traffic", str(file), "--set", "embedder=hash", "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["n"] == 1
    opened = open_backend(place)
    opened.verify()
    assert opened.iteration > before
