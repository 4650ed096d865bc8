"""Connections nobody knows yet: heads, lines, pipelines, unread answers and silence all have an end."""

from __future__ import annotations

import asyncio
import inspect
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from kbgym.serving.connections import Limits, bounded
from kbgym.serving.server import worth_saying

SMALL = Limits(head_bytes=8_192, head_lines=50, head_seconds=30, answer_seconds=30, close_seconds=0.2)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENCE = 20.0  # how long a test waits for what must happen


class App:
    """Answers with so many bytes; `/slow` waits until it is let go."""

    def __init__(self, size: int) -> None:
        self.size, self.asked = size, 0
        self.let_go = threading.Event()

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        self.asked += 1
        while scope["path"] == "/slow" and not self.let_go.is_set():
            await asyncio.sleep(0.01)
        while scope["method"] == "POST" and (await receive()).get("more_body"):
            pass
        headers = [(b"content-length", str(self.size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x" * self.size})


@contextmanager
def serving(limits: Limits, size: int = 5) -> Iterator[tuple[App, int]]:
    app = App(size)
    config = uvicorn.Config(
        app, http=bounded(limits), ws="none", lifespan="off", log_level="critical", timeout_keep_alive=1
    )
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0), backlog=200)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield app, listening.getsockname()[1]
    finally:
        app.let_go.set()
        server.should_exit = server.force_exit = True
        thread.join(timeout=30)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def received(one: socket.socket) -> bytes:
    """Everything until the other side hangs up."""
    found = b""
    try:
        while data := one.recv(65536):
            found += data
    except ConnectionError:
        pass
    return found


def pour(one: socket.socket, start: bytes, part: bytes, most: int = 20_000_000) -> int:
    """Send without end; gives how much went out before the other side had enough."""
    sent = 0
    try:
        one.sendall(start)
        while sent < most:
            one.sendall(part)
            sent += len(part)
    except (ConnectionError, TimeoutError):
        pass
    return sent


CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "lines": (b"GET / HTTP/1.1\r\n", b"X-A: b\r\n" * 1_000),
    "short lines": (b"GET / HTTP/1.1\r\n", b"a:\r\n" * 1_000),
    "one line": (b"GET / HTTP/1.1\r\nX-A: ", b"b" * 10_000),
    "a name": (b"GET / HTTP/1.1\r\n", b"b" * 10_000),
    "an address": (b"GET /", b"b" * 10_000),
    "lines behind the body": (CHUNKED + b"0\r\n", b"X-A: b\r\n" * 1_000),
    "a line behind the body": (CHUNKED + b"0\r\nX-A: ", b"b" * 10_000),
    "a chunk's extension": (CHUNKED + b"1;a=", b"b" * 10_000),
    "empty lines before it": (b"", b"\r\n" * 5_000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_a_head_has_an_end(what: str) -> None:
    with serving(SMALL) as (_, port), connect(port) as one:
        # What fits into the buffers of the two systems is sent in any case.
        assert pour(one, *ENDLESS[what]) < 15_000_000
        with connect(port) as other:
            other.sendall(GET)
            assert other.recv(100).startswith(b"HTTP/1.1 200")


def test_how_long_a_head_may_be() -> None:
    with serving(SMALL) as (_, port):
        for head, status in (
            (b"A: b\r\n" * 49, b"200"),
            (b"A: b\r\n" * 51, b"431"),
            (b"A: " + b"b" * 8_000 + b"\r\n", b"200"),
            (b"A: " + b"b" * 13_000 + b"\r\n", b"431"),
        ):
            with connect(port) as one:
                one.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n" + head + b"\r\n")
                answer = received(one)
            assert answer.startswith(b"HTTP/1.1 " + status), (head[:20], answer[:80])
            assert status != b"431" or b"8192 bytes and 50 lines" in answer


def test_a_body_in_small_parts_is_no_head() -> None:
    with serving(SMALL) as (_, port), connect(port) as one:
        one.sendall(CHUNKED + b"20\r\n" + b"b" * 32 + b"\r\n")
        for _ in range(5_000):
            one.sendall(b"20\r\n" + b"b" * 32 + b"\r\n")
        one.sendall(b"0\r\n\r\n")
        assert one.recv(100).startswith(b"HTTP/1.1 200")


def test_a_few_requests_at_once_are_answered_in_order() -> None:
    with serving(SMALL) as (app, port), connect(port) as one:
        one.sendall(GET * 10 + b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert received(one).count(b"HTTP/1.1 200") == 11 and app.asked == 11


def test_many_requests_at_once_are_hung_up_on() -> None:
    with serving(SMALL) as (app, port), connect(port) as one:
        one.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
        assert pour(one, b"", GET * 1_000) < 15_000_000
        assert received(one) == b"" and app.asked <= 1


def test_answers_that_are_not_read_hold_nothing() -> None:
    limits = Limits(answer_seconds=0.3, close_seconds=0.2)
    size, asked = 4_000_000, 10
    with serving(limits, size) as (app, port), connect(port) as one:
        for _ in range(asked):
            one.sendall(GET)
        time.sleep(2)  # not reading
        assert len(received(one)) < asked * size and app.asked < asked


def test_silent_connections_make_room_for_a_newcomer() -> None:
    with serving(Limits(connections=20, head_seconds=30)) as (app, port):
        busy = connect(port)
        busy.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
        while not app.asked:
            time.sleep(0.01)
        silent = [connect(port) for _ in range(60)]
        with connect(port) as one:
            one.sendall(GET)
            assert one.recv(100).startswith(b"HTTP/1.1 200")
        app.let_go.set()
        assert busy.recv(100).startswith(b"HTTP/1.1 200"), "whoever is being answered keeps the place"
        for one in (busy, *silent):
            one.close()


def test_a_head_that_does_not_come_in_time() -> None:
    with serving(Limits(head_seconds=0.3)) as (_, port):
        for start in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nA: b\r\n", GET + b"GET "):
            with connect(port) as one:
                one.sendall(start)
                assert received(one).count(b"200") == start.count(GET)


def test_that_nothing_was_cut_short_is_no_error() -> None:
    said = "Cancel %s running task(s), timeout graceful shutdown exceeded"
    assert f'"{said}"' in inspect.getsource(uvicorn.Server.shutdown), "it says it otherwise now"
    records = [logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, said, (count,), None) for count in (0, 2)]
    assert [worth_saying(record) for record in records] == [False, True]
    other = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "%s failed", (0,), None)
    assert worth_saying(other)
