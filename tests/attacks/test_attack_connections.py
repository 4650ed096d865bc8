"""Strangers without a token against a real server: its memory stays where it was, and an honest client is answered."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import pytest
from serving import Server, Tokens, client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
GROWTH = 60_000_000  # bytes a server may need more under an attack than before it
TIMES = 100  # an attacker connects again whenever it is hung up on
PARTS = 1_000  # what it would send each time if nobody stopped it: up to 150 MB


def memory(server: Server) -> int:
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * 4_096


def connect(server: Server) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def answered(server: Server, tokens: Tokens) -> bool:
    with client(server, tokens.reader) as rex:
        return rex.post("/search", json={"query": "baker"}).status_code == 200


HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "lines": (HEAD, b"X-Header: value\r\n" * 4_000),
    "a line": (HEAD + b"X-Header: ", b"v" * 65_536),
    "an address": (b"GET /", b"v" * 65_536),
    "lines behind a body": (CHUNKED + b"0\r\n", b"X-Header: value\r\n" * 4_000),
    "requests whose answers nobody reads": (b"", (HEAD.replace(b"health", b"openapi.json") + b"\r\n") * 1_000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_memory_without_a_token(attacked: tuple[Server, Tokens, Path], what: str) -> None:
    server, tokens, _ = attacked
    assert answered(server, tokens)
    before = memory(server)
    start, part = ENDLESS[what]
    for _ in range(TIMES):
        with contextlib.suppress(OSError), connect(server) as one:
            one.sendall(start)
            for _ in range(PARTS):
                one.sendall(part)
    assert memory(server) - before < GROWTH
    assert answered(server, tokens)


def test_2001_silent_connections_shut_nobody_out(attacked: tuple[Server, Tokens, Path]) -> None:
    server, tokens, _ = attacked
    before = memory(server)
    with contextlib.ExitStack() as held:
        for _ in range(2_001):
            held.enter_context(connect(server))
        assert all(answered(server, tokens) for _ in range(20))
        assert memory(server) - before < GROWTH
    assert answered(server, tokens)


def test_500_slow_clients_hold_up_nobody(attacked: tuple[Server, Tokens, Path]) -> None:
    server, tokens, _ = attacked
    starts = (b"", b"POST /sea", HEAD, CHUNKED, CHUNKED + b"5\r\nab", HEAD + b"Content-Length: 50\r\n\r\n")
    with contextlib.ExitStack() as held:
        for number in range(500):
            one = held.enter_context(connect(server))
            one.sendall(starts[number % len(starts)])
        assert all(answered(server, tokens) for _ in range(20))
