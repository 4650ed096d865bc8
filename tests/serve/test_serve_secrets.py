"""Secrets under concurrency: expected answers stay with curators, and a tokens file survives races."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import Server, family_store

from kbgym.errors import BadInput
from kbgym.serving.tokens import Tokens, new_token, revoke

QUESTION = "Who is the baker who lives in the city of Lund?"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str, str]]:
    file = tmp_path / "tokens.jsonl"
    reader, curator = new_token(file, "rex", "reader"), new_token(file, "ada", "curator")
    server = Server(family_store(tmp_path / "store"), "--tokens", str(file), "--rate-limit", "0")
    try:
        yield server.url, reader, curator
    finally:
        server.stop()


@pytest.mark.parametrize("races", [40, pytest.param(3_400, marks=pytest.mark.slow)])
def test_a_reader_is_never_shown_an_expected_answer(served: tuple[str, str, str], races: int) -> None:
    """The curator posts the expected answer while the reader closes the question."""
    url, reader, curator = served
    as_reader, as_curator = ({"Authorization": f"Bearer {token}"} for token in (reader, curator))

    async def race(client: httpx.AsyncClient, number: int) -> tuple[str, str]:
        secret = f"TOPSECRET{number}"
        opened = await client.post("/v1/questions", json={"question": QUESTION, "reader": "caller"}, headers=as_reader)
        path = f"/v1/questions/{opened.json()['id']}"

        async def post_gold() -> httpx.Response:
            for _ in range(20):
                posted = await client.post(f"{path}/gold", json={"answers": [secret]}, headers=as_curator)
                if posted.status_code < 300:
                    return posted
                await asyncio.sleep(0)
            return posted

        answered, posted = await asyncio.gather(
            client.post(f"{path}/answer", json={"text": "x"}, headers=as_reader), post_gold()
        )
        looked = await client.get(path, headers=as_reader)
        return answered.text + looked.text, posted.text

    async def work() -> list[tuple[str, str]]:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            return [await race(client, number) for number in range(races)]

    replies = asyncio.run(work())
    assert not [shown for shown, _ in replies if "TOPSECRET" in shown]
    assert all("TOPSECRET" in shown for _, shown in replies), "the curator sees what it gave"


def _add_and_revoke(file: Path, process: int, rounds: int) -> None:
    for number in range(rounds):
        new_token(file, f"keep-{process}-{number}", "reader")
        new_token(file, f"drop-{process}-{number}", "reader")
        revoke(file, f"drop-{process}-{number}")


@pytest.mark.parametrize("rounds", [25, pytest.param(100, marks=pytest.mark.slow)])
def test_token_changes_of_several_processes_are_all_kept(tmp_path: Path, rounds: int) -> None:
    """Each round adds two tokens and revokes one, in each of four processes."""
    file = tmp_path / "tokens.jsonl"
    before = os.umask(0)
    context = multiprocessing.get_context("fork")
    working = [context.Process(target=_add_and_revoke, args=(file, number, rounds)) for number in range(4)]
    for process in working:
        process.start()
    os.umask(before)
    for process in working:
        process.join(120)
        assert process.exitcode == 0
    names = sorted(json.loads(line)["name"] for line in file.read_text().splitlines())
    assert names == sorted(f"keep-{process}-{number}" for process in range(4) for number in range(rounds))
    assert len(Tokens(file)) == 4 * rounds
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_tokens_file_that_is_a_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "tokens.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput):
        new_token(tmp_path / "tokens.jsonl", "rex", "reader")
    assert not (tmp_path / "elsewhere").exists()


def test_tokens_leave_no_trace_in_files_or_logs(tmp_path: Path) -> None:
    file, place = tmp_path / "tokens.jsonl", family_store(tmp_path / "store")
    token = new_token(file, "ada", "curator")
    server = Server(place, "--tokens", str(file))
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as ada:
        assert (
            ada.post("/v1/teach", json={"question": QUESTION, "answers": ["Di Ek"], "answer": "x"}).status_code == 200
        )
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "how_sure", "arguments": {}}}
        assert ada.post("/mcp", json=call).status_code == 200
        assert ada.post("/v1/search", content=token.encode()).status_code == 415
        shown = "".join(ada.get(path).text for path in ("/v1/learning", "/v1/stats", "/metrics", "/docs", "/health"))
    said = server.stop()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert token not in shown + said and token.encode() not in written
