"""The HTTP API over real sockets: what each route answers, and what keeps strangers out."""

from __future__ import annotations

import hmac
import re
import socket
import time
from pathlib import Path

import httpx
import pytest
from family import documents, family
from serving import Server, Tokens, client, family_store, replayed, serving

from kbgym.gym.tools import ROLES
from kbgym.serving import tokens as tokens_module
from kbgym.serving.tokens import new_token

Served = tuple[Server, Tokens]
IDS = documents(family())
BAKER, MILLER = IDS["Ada Alm's job is baker"], IDS["Bo Alm's job is miller"]
ACTIONS = tuple("search read add edit delete link link_many unlink".split())
QUESTION, GOLD = "Who is the baker who lives in the city of Lund?", "Ada Alm"
BODIES = {
    "search": {"query": "baker"},
    "read": {"id": BAKER},
    "add": {"text": "A new sentence."},
    "edit": {"id": BAKER, "text": "Another text."},
    "delete": {"id": BAKER},
    "link": {"source": BAKER, "target": MILLER},
    "link_many": {"source": BAKER, "targets": [MILLER]},
    "unlink": {"source": BAKER, "target": MILLER},
}


def test_search_and_read(served: Served) -> None:
    server, tokens = served
    with client(server, tokens.reader) as rex:
        found = rex.post("/v1/search", json={"query": "Ada Alm's job is baker"}).json()
        assert found["result"]["result"] == "found" and found["result"]["ids"][0] == BAKER
        assert found["observation"].startswith(f"[{BAKER}] Ada Alm's job is baker.")
        assert isinstance(found["version"], int)
        read = rex.post("/v1/read", json={"id": BAKER}).json()
        assert read["result"] == {"result": "opened", "id": BAKER, "links": []}


def test_an_agents_mistake_is_an_answer(served: Served) -> None:
    server, tokens = served
    with client(server, tokens.curator) as ada:
        for path, body in {"/v1/read": {"id": "nobody"}, "/v1/link": {"source": BAKER, "target": BAKER}}.items():
            response = ada.post(path, json=body)
            assert response.status_code == 200 and response.json()["result"]["result"] == "error"
            assert response.json()["observation"].startswith("Error: ")


def test_two_curators_and_a_conflict(fresh: tuple[Server, Tokens, Path]) -> None:
    server, tokens, place = fresh
    with client(server, tokens.curator) as ada, client(server, tokens.other) as bo:
        for one in (ada, bo):
            one.post("/v1/read", json={"id": BAKER})
        assert bo.post("/v1/edit", json={"id": BAKER, "text": "Ada Alm bakes."}).status_code == 200
        late = ada.post("/v1/edit", json={"id": BAKER, "text": "Ada Alm cooks."})
        assert late.status_code == 409 and "Ada Alm bakes." in late.json()["observation"]
        assert ada.post("/v1/edit", json={"id": BAKER, "text": "Ada Alm cooks."}).status_code == 200
        # Two sessions of one token are two clients.
        one, two = ({"Kbgym-Session": name} for name in ("1", "2"))
        for session in (one, two):
            ada.post("/v1/read", json={"id": MILLER}, headers=session)
        ada.post("/v1/delete", json={"id": BAKER}, headers=one)
        ada.post("/v1/edit", json={"id": MILLER, "text": "Bo Alm mills."}, headers=one)
        assert ada.post("/v1/delete", json={"id": MILLER}, headers=two).status_code == 409
        hash = ada.get("/v1/stats").json()["hash"]
    server.stop()
    assert replayed(place) == hash


def test_a_question_from_asking_to_learning(fresh: tuple[Server, Tokens, Path]) -> None:
    server, tokens, place = fresh
    with client(server, tokens.reader) as rex, client(server, tokens.curator) as ada:
        asked = rex.post("/v1/questions", json={"question": QUESTION}).json()
        assert (asked["answer"], asked["state"]) == (GOLD, "answered")
        path = f"/v1/questions/{asked['id']}"
        assert rex.post(f"{path}/gold", json={"answers": [GOLD]}).status_code == 403, "a gold leads to edits"
        assert ada.post(f"{path}/gold", json={"answers": [GOLD]}).json()["f1"] == 1.0
        assert ada.post(f"{path}/gold", json={"answers": [GOLD]}).status_code == 409
        for _ in range(200):
            if (state := rex.get(path).json()["state"]) == "learnt":
                break
            time.sleep(0.02)
        assert state == "learnt"
        # Of another's question a reader says nothing, and cannot even tell that it is there.
        other = ada.post("/v1/questions", json={"question": QUESTION}).json()["id"]
        assert rex.get(f"/v1/questions/{other}").status_code == 404
        stats = rex.get("/v1/stats").json()
        assert stats["links"] > 0 and stats["questions"]["graded"] == 1
        metrics = rex.get("/metrics").text
    assert f"kbgym_links {stats['links']}\n" in metrics and 'route="/v1/questions/{id}/gold",status="409"} 1' in metrics
    server.stop()
    assert replayed(place) == stats["hash"]


def test_a_clients_own_agent(fresh: tuple[Server, Tokens, Path]) -> None:
    server, tokens, _ = fresh
    with client(server, tokens.reader) as rex, client(server, tokens.curator) as ada:
        opened = rex.post("/v1/questions", json={"question": QUESTION, "reader": "caller"}).json()
        assert rex.get(f"/v1/questions/{opened['id']}").json() == opened
        here = {"Kbgym-Question": opened["id"]}
        before = rex.post("/v1/search", json={"query": "job is baker"}, headers=here).json()
        ada.post("/v1/delete", json={"id": BAKER})
        assert rex.post("/v1/search", json={"query": "job is baker"}, headers=here).json() == before
        assert BAKER not in rex.post("/v1/search", json={"query": "job is baker"}).json()["result"]["ids"]
        assert ada.post("/v1/search", json={"query": "x"}, headers=here).status_code == 404, "it is another client's"
        assert rex.post(f"/v1/questions/{opened['id']}/answer", json={"text": " "}).status_code == 422
        answered = rex.post(f"/v1/questions/{opened['id']}/answer", json={"text": GOLD}).json()
        assert (answered["agent"], answered["actions"], answered["answer"]) == ("rex", 3, GOLD)
        calls = [{"tool": "search", "query": "job is baker"}, {"tool": "read", "id": MILLER}]
        told = rex.post("/v1/questions", json={"question": QUESTION, "answer": "Bo", "actions": calls}).json()
        assert (told["answer"], told["actions"]) == ("Bo", 3)
        calls = [{"tool": "delete", "id": MILLER}]
        edit = rex.post("/v1/questions", json={"question": QUESTION, "answer": "Bo", "actions": calls})
        assert edit.status_code == 422


# -- who may -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ACTIONS if name not in ROLES["reader"]])
def test_a_readers_token_edits_by_no_route(served: Served, name: str) -> None:
    server, tokens = served
    with client(server, tokens.reader) as rex:
        before = rex.get("/v1/stats").json()
        response = rex.post(f"/v1/{name}", json=BODIES[name])
        assert response.status_code == 403 and "curator" in response.json()["error"]
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": BODIES[name]}}
        over_mcp = rex.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"})
        assert over_mcp.status_code < 500
        assert rex.get("/v1/stats").json() == before


@pytest.mark.parametrize(
    "path", [*(f"/v1/{name}" for name in ACTIONS), "/v1/questions", "/mcp", "/v1/questions/s1/gold"]
)
@pytest.mark.parametrize(
    "header", [None, "Bearer wrong", "Bearer", "Basic cmV4OnJleA==", "Bearer \xff\xfe", "nonsense"]
)
def test_no_token_no_answer(served: Served, path: str, header: str | None) -> None:
    server, _ = served
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    response = httpx.post(f"{server.url}{path}", json=BODIES.get(path[1:], {}), headers=headers)
    assert response.status_code == 401 and response.headers["www-authenticate"] == "Bearer"


def test_a_token_in_the_address_is_none(served: Served) -> None:
    server, tokens = served
    assert httpx.get(f"{server.url}/v1/stats?token={tokens.curator}").status_code == 401


def test_health_and_the_api_document_need_none(served: Served) -> None:
    server, _ = served
    assert httpx.get(f"{server.url}/health").json()["status"] == "ok"
    assert "/v1/search" in httpx.get(f"{server.url}/openapi.json").json()["paths"]
    assert httpx.get(f"{server.url}/metrics").status_code == 401


def test_other_sites_and_other_hosts_are_refused(served: Served) -> None:
    server, tokens = served
    with client(server, tokens.curator) as ada:
        named = (
            "evil.example",
            "[::1].evil.com",
            "127.0.0.1:evil.com",
            "127.0.0.1:80:80",
            "[::1",
            "127.0.0.1.evil.com",
        )
        hosts = [
            {"Host": name} for name in (*named, "localhost@evil.com", "", "127.0.0.1:", "127.0.0.1/x", "[::1]x:80")
        ]
        for headers in (*hosts, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            assert ada.post("/v1/search", json={"query": "x"}, headers=headers).status_code == 403
        assert ada.post("/v1/search", json={"query": "x"}, headers={"Origin": server.url}).status_code == 200
        for name in ("localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8765", "[::1]"):
            assert ada.post("/v1/search", json={"query": "x"}, headers={"Host": name}).status_code == 200
        preflight = ada.options(
            "/v1/add", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        )
        assert preflight.status_code == 403
        every = [ada.get("/health"), preflight, ada.post("/v1/search", json={"query": "x"})]
        assert not any(name.startswith("access-control") for response in every for name in response.headers)
        form = ada.post("/v1/add", content=b'{"text": "x y."}', headers={"Content-Type": "text/plain"})
        assert form.status_code == 415, "a page can send this without asking"


def test_tokens_are_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [new_token(tmp_path / "tokens.jsonl", f"client {n}", "reader") for n in range(5)]
    known = tokens_module.Tokens(tmp_path / "tokens.jsonl")
    compared: list[int] = []

    compare = hmac.compare_digest
    monkeypatch.setattr(tokens_module.hmac, "compare_digest", lambda a, b: compared.append(len(a)) or compare(a, b))
    for token in (made[0], made[4], "wrong", "", made[2] + "x"):
        compared.clear()
        known.client(token)
        assert compared == [64] * 5, "every hash is compared, whole, whichever fits"
    assert [known.client(token).name for token in made] == [f"client {n}" for n in range(5)]  # type: ignore[union-attr]
    assert known.client("") is None
    assert not any(token in (tmp_path / "tokens.jsonl").read_text() for token in made)
    assert (tmp_path / "tokens.jsonl").stat().st_mode & 0o777 == 0o600


# -- what may be sent --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b'{"query": ' + b'{"a":' * 100_000, 400),
        (b'{"query": "x", "page": ' + b"9" * 5_000 + b"}", 422),
        (b'{"query": "zero\xe2\x80\x8bwidth"}', 422),
        (b"[1]", 422),
        (b"null", 422),
        (b'{"query": 7}', 422),
        (b'{"query": ""}', 422),
        (b'{"query": "\\ud800"}', 422),
        (b'{"query": "x", "page": 0}', 422),
        (b'{"query": "x", "page": 1e400}', 422),
        (b'{"query": "x", "extra": 1}', 422),
        (b'{"query": "' + b"x" * 5_000 + b'"}', 422),
    ],
)
def test_a_bad_body_is_told_what_is_wrong(served: Served, body: bytes, status: int) -> None:
    server, tokens = served
    with client(server, tokens.reader) as rex:
        response = rex.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code in (status, 400), response.text
        assert set(response.json()) == {"error"}


def test_an_oversized_body_is_refused_whatever_it_says_of_its_size(served: Served) -> None:
    server, tokens = served
    with client(server, tokens.curator) as ada:
        assert ada.post("/v1/add", json={"text": "x" * 2_000_000}).status_code == 413

        def endless():  # type: ignore[no-untyped-def]
            yield b'{"text": "'
            for _ in range(40):
                yield b"x" * 100_000

        try:
            status = ada.post("/v1/add", content=endless(), headers={"Content-Type": "application/json"}).status_code
        except httpx.WriteError:
            status = 413  # the server hung up before everything was sent
        assert status == 413
        assert ada.get("/health").status_code == 200


@pytest.mark.parametrize("id", ["../../etc/passwd", "..%2f..%2ftokens.jsonl", "/etc/passwd", "d1\x00", "~", "store@0"])
def test_an_id_is_no_path(served: Served, id: str) -> None:
    server, tokens = served
    with client(server, tokens.reader) as rex:
        read = rex.post("/v1/read", json={"id": id})
        assert read.status_code in (200, 404)
        assert "error" in read.json() or read.json()["result"]["result"] == "error"
        assert "sha256" not in read.text and "root:" not in read.text
        raw = _raw(server, f"GET /v1/questions/{id.replace(chr(0), '%00')} HTTP/1.1", tokens.reader)
        assert b" 404 " in raw.split(b"\r\n")[0]
        for path in ("/../tokens.jsonl", "/store/../tokens.jsonl", "/store/%2e%2e/tokens.jsonl", "/tokens.jsonl"):
            assert b" 404 " in _raw(server, f"GET {path} HTTP/1.1", tokens.reader).split(b"\r\n")[0]


def _raw(server: Server, line: str, token: str) -> bytes:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as one:
        head = f"{line}\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        one.sendall(head.encode())
        received = b""
        while data := one.recv(65536):
            received += data
    return received


@pytest.mark.parametrize(
    "message",
    [
        b"{",
        b"[]",
        b"[1,2]",
        b'{"jsonrpc": "1.0"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
        b'"x"',
        b"\xff",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_malformed_json_rpc_is_refused(served: Served, message: bytes) -> None:
    server, tokens = served
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with client(server, tokens.curator) as ada:
        response = ada.post("/mcp", content=message, headers=kinds)
        assert 400 <= response.status_code < 500


def test_an_mcp_session_belongs_to_its_token(served: Served) -> None:
    server, tokens = served
    kinds = {"Accept": "application/json, text/event-stream"}
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    with client(server, tokens.curator) as ada, client(server, tokens.reader) as rex:
        session = ada.post("/mcp", json=hello, headers=kinds).headers["mcp-session-id"]
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        taken = rex.post("/mcp", json=listing, headers={**kinds, "Mcp-Session-Id": session})
        assert taken.status_code == 404
        assert ada.post("/mcp", json=listing, headers={**kinds, "Mcp-Session-Id": session}).status_code == 200


def test_without_a_token_nobody_is_waited_for(served: Served) -> None:
    server, _ = served
    host, port = server.url.removeprefix("http://").split(":")
    for path in ("/health", "/openapi.json"):
        with socket.create_connection((host, int(port)), timeout=5) as one:
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 50\r\n\r\n".encode())
            assert one.recv(100).startswith(b"HTTP/1.1 200 ")


def test_unknown_routes_and_methods(served: Served) -> None:
    server, tokens = served
    with client(server, tokens.curator) as ada:
        assert ada.get("/nothing").status_code == 404 and set(ada.get("/nothing").json()) == {"error"}
        assert ada.get("/v1/add").status_code == 405
        assert ada.post("/v1/questions/s99/gold", json={"answers": ["x"]}).status_code == 404
        assert ada.get("/v1/questions/s99").status_code == 404


@pytest.mark.slow
def test_slow_bodies_are_refused_and_hold_up_no_other_client(fresh: tuple[Server, Tokens, Path]) -> None:
    """A body that never ends gets 408; other clients are answered meanwhile. Slow heads are left to a reverse proxy."""
    server, tokens, _ = fresh
    host, port = server.url.removeprefix("http://").split(":")
    auth = f"Host: {host}\r\nAuthorization: Bearer {tokens.reader}\r\nContent-Type: application/json\r\n"
    bodies = [f"POST {path} HTTP/1.1\r\n{auth}Content-Length: 50\r\n\r\n{{".encode() for path in ("/v1/search", "/mcp")]
    waiting = []
    for start in bodies * 20:
        one = socket.create_connection((host, int(port)), timeout=40)
        one.sendall(start)
        waiting.append(one)
    with client(server, tokens.reader) as rex:
        assert all(rex.post("/v1/search", json={"query": f"x {n}"}).status_code == 200 for n in range(20))
    for one in waiting:
        with one:
            received = b""
            while data := one.recv(65536):
                received += data
            assert received.startswith(b"HTTP/1.1 408 ")


def test_no_secret_is_ever_logged(tmp_path: Path) -> None:
    from serving import family_store, make_tokens, serving

    place = family_store(tmp_path / "store")
    tokens = make_tokens(place)
    with serving(place) as server:
        with client(server, tokens.curator) as ada:
            ada.post("/v1/search", json={"query": "x"})
            ada.get(f"/{tokens.curator}")
            ada.post("/v1/search", content=tokens.curator.encode(), headers={"Content-Type": "application/json"})
            metrics = ada.get("/metrics").text
        httpx.get(f"{server.url}/v1/stats", headers={"Authorization": "Bearer almost-a-secret"})
        _raw(server, f"GARBAGE {tokens.curator}", tokens.curator)
        said = server.stop()
    for text in (said, metrics, (place / "trace.jsonl").read_text(), (place / "tokens.jsonl").read_text()):
        assert not re.search(r"kbgym_[\w-]{43}|almost-a-secret", text)
        assert tokens.curator not in text


def test_results_are_values_with_filters(served: Served) -> None:
    server, tokens = served
    with client(server, tokens.reader) as rex:
        found = rex.post("/v1/search", json={"query": "Ada Alm's job is baker", "k": 20}).json()
        assert len(found["documents"]) == 20 and [one["id"] for one in found["documents"]] == found["result"]["ids"]
        scores = [one["score"] for one in found["documents"]]
        assert scores == sorted(scores, reverse=True)
        second = rex.post("/v1/search", json={"query": "Ada Alm's job is baker", "k": 10, "page": 2}).json()
        assert second["documents"] == found["documents"][10:]
        assert found["documents"][0] == {**rex.get(f"/v1/documents/{BAKER}").json(), "score": scores[0]}
        assert rex.post("/v1/search", json={"query": "baker", "file": "nowhere.md"}).json()["documents"] == []
        assert rex.get("/v1/documents/nowhere").status_code == 404
        for k in (0, 51):
            assert rex.post("/v1/search", json={"query": "baker", "k": k}).status_code == 422
        assert rex.post("/search", json={"query": "baker"}).status_code == 404
        assert rex.get("/docs").text.startswith("<!doctype html>")


def test_pages_of_named_origins_may_use_the_api(tmp_path: Path) -> None:
    place, origin = family_store(tmp_path / "store"), "https://app.example.org"
    with serving(place, "--no-auth", "--set", f"cors={origin}") as server, httpx.Client(base_url=server.url) as page:
        asking = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        preflight = page.options("/v1/search", headers={"Origin": origin, **asking})
        assert preflight.headers["access-control-allow-origin"] == origin
        found = page.post("/v1/search", json={"query": "baker"}, headers={"Origin": origin})
        assert found.status_code == 200 and found.headers["access-control-allow-origin"] == origin
        other = page.post("/v1/search", json={"query": "baker"}, headers={"Origin": "https://evil.example"})
        assert other.status_code == 403 and "access-control-allow-origin" not in other.headers
