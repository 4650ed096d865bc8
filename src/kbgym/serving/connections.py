"""What a connection may take of the server before anybody knows who it is: bytes, lines, requests at once, and time.

The parser in use bounds neither a request's head nor what follows its body, and the web server neither how many
requests wait on one connection nor how long answers go unread. Here all of that has an end, and where there are too
many connections, one that nobody is working for makes room for a newcomer. It knows no routes, tokens or stores.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SLICE = 4_096  # bytes parsed before the limits are looked at again
_REFUSAL = b'{"error":"the head of a request is at most %d bytes and %d lines."}'


class Limits(msgspec.Struct, frozen=True):
    """How much one connection may take; `head_bytes` is also what may come between and behind the parts of a body."""

    head_bytes: int = 32_768
    head_lines: int = 100
    head_seconds: float = 10.0
    answer_seconds: float = 20.0
    close_seconds: float = 5.0
    refused_seconds: float = 0.1
    pipelined: int = 16
    connections: int = 2_000


class _OneByOne(FlowControl):
    """Reads on only where no request waits behind the one being answered."""

    def __init__(self, transport: asyncio.Transport, pipeline: Any) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        if not self._pipeline:
            super().resume_reading()


def bounded(limits: Limits) -> type[asyncio.Protocol]:
    """uvicorn's HTTP protocol within these limits, for the connections of one server."""
    idle: dict[Bounded, None] = {}  # connections nobody is working for, the longest waiting first

    class Bounded(HttpToolsProtocol):
        _late: asyncio.TimerHandle | None = None  # hangs up on a head that does not come
        _unread: asyncio.TimerHandle | None = None  # hangs up on answers that are not read
        _received = _body = _lines = 0

        # -- a connection ---------------------------------------------------------------------------------------------

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.flow = _OneByOne(transport, self.pipeline)
            self._wait()
            if len(self.connections) > limits.connections:
                next(iter(idle)).transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self.pipeline.clear()
            self._stop_waiting()
            idle.pop(self, None)
            if self._unread is not None:
                self._unread.cancel()
            super().connection_lost(exc)
            self.cycle = None  # type: ignore[assignment]  # it knows this: without the ring no garbage collector is needed

        def _wait(self) -> None:
            """For a head; others may need the place more."""
            idle.setdefault(self)
            if self._late is None:
                self._late = self.loop.call_later(limits.head_seconds, self._hang_up)

        def _stop_waiting(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _hang_up(self) -> None:
            """Also on somebody who does not read what is left to be sent."""
            self.transport.close()
            self.loop.call_later(limits.close_seconds, self.transport.abort)

        def _hang_up_later(self) -> None:
            """Somebody refused at once would be back at once, as often as the server can say no."""
            idle.setdefault(self)
            self._stop_waiting()
            self.transport.pause_reading()
            self._late = self.loop.call_later(limits.refused_seconds, self._hang_up)

        # -- what comes in --------------------------------------------------------------------------------------------

        def data_received(self, data: bytes) -> None:
            for start in range(0, len(data), _SLICE):
                part = data[start : start + _SLICE]
                self._received += len(part)
                super().data_received(part)
                if self.transport.is_closing():
                    return
                # A body in many small parts has a frame around each.
                if self._refused or self._received - self._body > limits.head_bytes + self._body:
                    self._refuse()
                    return
                if len(self.pipeline) > limits.pipelined:
                    self.pipeline.clear()
                    self._hang_up_later()
                    return
            if self._busy:
                idle.pop(self, None)
                self._stop_waiting()
            else:
                self._wait()

        @property
        def _refused(self) -> bool:
            return self._lines > limits.head_lines

        @property
        def _busy(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._lines = 0

        def on_header(self, name: bytes, value: bytes) -> None:
            self._lines += 1
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            if not self._refused:
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._body += len(body)
            if not self._refused:
                super().on_body(body)

        def on_message_complete(self) -> None:
            self._received = self._body = 0
            if not self._refused:
                super().on_message_complete()

        def _refuse(self) -> None:
            if not self._busy:  # else it would stand in the middle of another answer
                body = _REFUSAL % (limits.head_bytes, limits.head_lines)
                head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
                self.transport.write(head + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            self._hang_up_later()

        # -- what goes out --------------------------------------------------------------------------------------------

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.transport.is_closing():
                self._hang_up()
            elif not self._busy:
                idle.setdefault(self)  # until its keep-alive ends, or its next head begins

        def pause_writing(self) -> None:
            super().pause_writing()
            idle.setdefault(self)
            self._unread = self.loop.call_later(limits.answer_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None
            if self._busy:
                idle.pop(self, None)

    return Bounded
