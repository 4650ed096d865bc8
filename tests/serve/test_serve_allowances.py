"""One token's share: requests a second, sessions; and tokens that end while the server runs."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from serving import Server, client, family_store, make_tokens, opened, serving

from kbgym.errors import BadInput, Failed
from kbgym.serving.http import make_app
from kbgym.serving.middleware import RateLimit
from kbgym.serving.tokens import Client, Tokens, new_token, revoke

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


# -- requests a second -------------------------------------------------------------------------------------------------


def test_a_bucket_empties_and_fills_for_each_client_apart() -> None:
    now = 0.0
    rates = RateLimit(10.0, lambda: now)
    assert [rates.wait("rex") for _ in range(20)] == [0.0] * 20
    assert rates.wait("rex") == pytest.approx(0.1) and rates.wait("ada") == 0.0
    now = 0.1
    assert rates.wait("rex") == 0.0 and rates.wait("rex") > 0
    now = 1_000.0
    assert [rates.wait("rex") for _ in range(21)].count(0.0) == 20
    assert rates.refused == 3
    assert not any(RateLimit(0).wait("rex") for _ in range(1_000))


def test_too_many_requests_are_429_with_a_time_to_wait(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")
    tokens = make_tokens(place)
    with serving(place, "--rate-limit", "2") as server, client(server, tokens.reader) as rex:
        answers = [rex.post("/v1/search", json={"query": "baker"}) for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) > 15 and {answer.status_code for answer in answers} == {200, 429}
        assert all(int(answer.headers["retry-after"]) >= 1 and "error" in answer.json() for answer in refused)
        with client(server, tokens.curator) as ada:
            assert ada.post("/v1/search", json={"query": "baker"}).status_code == 200, "another token has its own share"
            metrics = ada.get("/metrics").text
        assert f"kbgym_limited_total {len(refused)}\n" in metrics and "kbgym_allowed_requests 2\n" in metrics
        assert all(httpx.get(f"{server.url}/health").status_code == 200 for _ in range(20))


# -- sessions ----------------------------------------------------------------------------------------------------------


def begin(one: httpx.Client) -> str:
    answer = one.post("/mcp", json=INITIALIZE, headers=ACCEPT)
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


def alive(one: httpx.Client, session: str) -> bool:
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    return one.post("/mcp", json=ping, headers={**ACCEPT, "Mcp-Session-Id": session}).status_code == 200


def test_one_client_uses_up_its_own_sessions_and_nobody_elses(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")
    tokens = make_tokens(place)
    with (
        serving(place, "--max-sessions", "5", "--rate-limit", "0") as server,
        client(server, tokens.reader) as rex,
        client(server, tokens.curator) as ada,
    ):
        hers = begin(ada)
        his = [begin(rex) for _ in range(12)]
        assert alive(ada, hers), "another token's session is untouched"
        assert [alive(rex, session) for session in his] == [False] * 7 + [True] * 5
        assert alive(rex, his[7])  # used again, so the next one ends in its place
        begin(rex)
        assert alive(rex, his[7]) and not alive(rex, his[8])
        assert rex.delete("/mcp", headers={"Mcp-Session-Id": his[9]}).status_code == 200
        assert not alive(rex, hers), "nobody goes on with another's session"
        metrics = ada.get("/metrics").text
        assert "kbgym_mcp_sessions 5\n" in metrics and "kbgym_allowed_sessions 5\n" in metrics


# -- tokens that end ---------------------------------------------------------------------------------------------------


def test_a_token_taken_away_or_expired_opens_nothing_any_more(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")
    tokens = make_tokens(place)
    file = place / "tokens.jsonl"
    brief = new_token(file, "brief", "reader", "2999-12-31")
    with serving(place) as server:

        def status(token: str) -> int:
            return httpx.get(f"{server.url}/v1/stats", headers={"Authorization": f"Bearer {token}"}).status_code

        assert status(tokens.reader) == status(tokens.curator) == 200
        assert status(brief) == 200
        file.write_bytes(file.read_bytes().replace(b"2999-12-31", b"2019-12-31"))
        assert status(brief) == 401
        revoke(file, "rex")
        assert status(tokens.reader) == 401 and status(tokens.curator) == 200
        assert status(new_token(file, "late", "reader")) == 200, "a new one needs no restart either"
        kept = file.read_bytes()
        file.write_bytes(kept + b"nonsense\n")
        assert status(tokens.curator) == 401, "a file that cannot be read lets nobody in"
        file.write_bytes(kept)
        assert status(tokens.curator) == 200
        file.unlink()
        assert status(tokens.curator) == 401
        said = server.stop()
    assert "all tokens are rejected" in said and "nonsense" not in said


def test_when_a_token_ends(tmp_path: Path) -> None:
    file, today = tmp_path / "tokens.jsonl", datetime.now(UTC).date()
    for name, expires, good in (
        ("always", "", True),
        ("today", today.isoformat(), True),
        ("yesterday", (today - timedelta(days=1)).isoformat(), False),
        ("past", "2020-01-01T00:00:00+00:00", False),
        ("future", "9999-01-01T00:00", True),
    ):
        token = new_token(file, name, "reader", expires)
        assert (Tokens(file).client(token) is not None) == good, name
    for wrong in ("soon", "2026-13-01", "31.12.2026", "9999-12-31"):
        with pytest.raises(BadInput, match="no date"):
            new_token(file, "x", "reader", wrong)
    with pytest.raises(BadInput, match="no token for 'nobody'"):
        revoke(file, "nobody")
    revoke(file, "past")
    assert [json.loads(line)["name"] for line in file.read_text().splitlines()] == [
        "always",
        "today",
        "yesterday",
        "future",
    ]
    assert file.stat().st_mode & 0o777 == 0o600


# -- what a failure says -----------------------------------------------------------------------------------------------


def test_a_failure_names_no_file_and_no_machine(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = family_store(tmp_path / "store")

    async def work() -> httpx.Response:
        async with opened(place) as online:

            async def fails(*_: object) -> None:
                raise Failed(f"cannot write {place}/trace.jsonl: No space left on device\x1b[2J")

            online.live.prepare = fails  # type: ignore[method-assign, assignment]
            app = make_app(online.live, online, None, "1", Client("local", "curator"), None)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as one:
                return await one.post("/v1/add", json={"text": "A sentence."})

    answer = asyncio.run(work())
    assert answer.status_code == 503 and "nothing was changed" in answer.json()["error"]
    assert str(place) not in answer.text and "/" not in answer.json()["error"]
    assert str(place) in caplog.text and "\x1b" not in caplog.text


def test_a_server_is_told_apart_from_its_test(tmp_path: Path) -> None:
    """The share of requests is for tokens: without any, everybody is the one person at this machine."""
    with serving(family_store(tmp_path / "store"), "--no-auth", "--rate-limit", "1") as server:
        assert isinstance(server, Server)
        statuses = {httpx.post(f"{server.url}/v1/search", json={"query": "x"}).status_code for _ in range(20)}
    assert statuses == {200}
