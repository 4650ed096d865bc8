"""The web server's own limits: the size of a head, small replies without delay, a quiet shutdown."""

from __future__ import annotations

import asyncio
import inspect
import logging
import socket
from pathlib import Path

import pytest
import uvicorn
from serving import family_store, serving

from kbgym.serving.server import HEAD_BYTES, listen, worth_saying


@pytest.mark.parametrize(("size", "status"), [(HEAD_BYTES // 2, b"200"), (4 * HEAD_BYTES, b"400")])
def test_the_size_of_a_head_is_limited(tmp_path: Path, size: int, status: bytes) -> None:
    with serving(family_store(tmp_path / "store"), "--no-auth") as server:
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=20) as one:
            head = f"GET /health HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\nA: {'b' * size}\r\n\r\n"
            one.sendall(head.encode())
            assert one.recv(100).startswith(b"HTTP/1.1 " + status)


def test_small_answers_are_sent_at_once() -> None:
    async def work() -> int:
        listening, _ = listen("127.0.0.1", 0, 8)
        made: list[int] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            made.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(serve, sock=listening):
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            await reader.read()
            writer.close()
        return made[0]

    assert asyncio.run(work())


def test_that_nothing_was_cut_short_is_no_error() -> None:
    said = "Cancel %s running task(s), timeout graceful shutdown exceeded"
    assert f'"{said}"' in inspect.getsource(uvicorn.Server.shutdown), "the wording changed"
    records = [logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, said, (count,), None) for count in (0, 2)]
    assert [worth_saying(record) for record in records] == [False, True]
    other = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "%s failed", (0,), None)
    assert worth_saying(other)
