"""ASGI middleware in front of every HTTP route: access control, rate limit, body limit and metrics.

Host and Origin are checked because a browser can be made to talk to loopback; without CORS headers, pages of other
sites cannot read a reply. A body is read whole, within a size and a time limit. Metrics never contain names of clients,
texts or tokens.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import msgspec
from cachetools import LRUCache
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbgym.sanitize import number_in
from kbgym.serving.tokens import Client, Tokens

MOST_BODY = 1 << 20  # bytes
BODY_SECONDS = 10.0
OPEN_PATHS = ("/health", "/openapi.json")  # need no token
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_MOST_BUCKETS = 10_000
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


def refuse(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as JSON."""
    return JSONResponse({"error": message}, status, headers)


async def read_json(request: Request) -> bytes:
    """Return a body that is declared as JSON. Raise HTTPException if it exceeds its limits of size and time."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "send application/json.")
    close, too_large = {"Connection": "close"}, f"a body has at most {MOST_BODY:,} bytes."
    length = number_in(request.headers.get("content-length", "0"))
    if length is None or length > MOST_BODY:
        raise HTTPException(413, too_large, close)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                chunks.append(chunk)
                size += len(chunk)
                if size > MOST_BODY:
                    raise HTTPException(413, too_large, close)
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {BODY_SECONDS:g} seconds.", close) from None
    except ClientDisconnect:
        raise HTTPException(400, "the body ended early.", close) from None
    return b"".join(chunks)


class Quota(msgspec.Struct, frozen=True):
    """The share of one token: requests per second (0 means unlimited), and sessions of each kind."""

    requests: float = 100.0
    sessions: int = 64


class RateLimit:
    """A token bucket per client that holds two seconds' worth of requests. A rate of 0 means unlimited."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._capacity, self._clock = rate, max(1.0, 2 * rate), clock
        self._levels: LRUCache[str, tuple[float, float]] = LRUCache(_MOST_BUCKETS)  # and when they were updated
        self.refused = 0

    def wait(self, client: str) -> float:
        """Count a request and return 0, or return the seconds the client must wait."""
        if not self._rate:
            return 0.0
        now = self._clock()
        level, updated = self._levels.get(client, (self._capacity, now))
        level = min(self._capacity, level + (now - updated) * self._rate)
        self.refused += level < 1
        self._levels[client] = (level if level < 1 else level - 1), now
        return (1 - level) / self._rate if level < 1 else 0.0


@dataclass
class Guard:
    """Refuse requests without the right Host, Origin or token, or beyond the rate limit.

    Without `tokens` every request comes from `local_client`, which is only safe on loopback.
    """

    app: ASGIApp
    tokens: Tokens | None
    local_client: Client
    hosts: frozenset[str] | None
    rate_limit: RateLimit | None = None
    origins: frozenset[str] = frozenset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._check_origin(headers) or self._check_token(scope, headers) or self._check_rate(scope)
        await (refusal or self.app)(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        """Return True if the request needs no token."""
        return self.tokens is None or scope["path"] in OPEN_PATHS

    def _check_origin(self, headers: Headers) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        name = found[1].lower() if (found := _HOST.fullmatch(host)) else ""  # without the port
        if self.hosts is not None and name not in self.hosts:
            return refuse(403, "this Host is not served here; use the address the server was started with.")
        if origin is not None and origin not in self.origins and origin.partition("://")[2] != host:
            return refuse(403, "requests from pages of other sites are refused.")
        return None

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        scope["kbgym.client"] = self.local_client
        if self.tokens is None or self._is_open(scope):
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        client = self.tokens.client(token.strip()) if kind.lower() == "bearer" else None
        if client is None:
            wanted = {"WWW-Authenticate": "Bearer", "Connection": "close"}
            return refuse(401, "a token is needed: Authorization: Bearer TOKEN.", wanted)
        scope["kbgym.client"] = client
        return None

    def _check_rate(self, scope: Scope) -> Response | None:
        """Count a request with a token against its rate limit."""
        limit = None if self._is_open(scope) else self.rate_limit
        if limit is None or not (wait := limit.wait(scope["kbgym.client"].name)):
            return None
        return refuse(429, "rate limit exceeded; retry later.", {"Retry-After": str(math.ceil(wait))})


_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+)(?::[0-9]{1,5})?")


class Metrics:
    """Requests by route and status, and their latencies, as Prometheus text."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        self._requests[route, status] += 1
        counts = self._times.setdefault(route, [0] * (len(_BUCKETS) + 1))
        counts[bisect_left(_BUCKETS, seconds)] += 1
        self._sums[route] = self._sums.get(route, 0.0) + seconds

    def text(self, gauges: dict[str, tuple[str, str, float]]) -> str:
        """Return all metrics as text, with further values: name to (type, help, value)."""
        lines = _described("requests_total", "counter", "Requests by route and status.")
        for (route, status), count in sorted(self._requests.items()):
            lines.append(f'kbgym_requests_total{{route="{route}",status="{status}"}} {count}')
        lines += _described("request_seconds", "histogram", "Time to answer.")
        for route, counts in sorted(self._times.items()):
            for bound, total in zip((*_BUCKETS, "+Inf"), accumulate(counts), strict=True):
                lines.append(f'kbgym_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'kbgym_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
            lines.append(f'kbgym_request_seconds_count{{route="{route}"}} {sum(counts)}')
        for name, (kind, help, value) in sorted(gauges.items()):
            lines += [*_described(name, kind, help), f"kbgym_{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _described(name: str, kind: str, help: str) -> list[str]:
    return [f"# HELP kbgym_{name} {help}", f"# TYPE kbgym_{name} {kind}"]


class RequestMetrics:
    """Count every reply by route, status and latency; unknown paths count as `other`."""

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: Sequence[BaseRoute]) -> None:
        self._app, self._metrics, self._routes = app, metrics, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        finally:
            known = (r.path for r in self._routes if isinstance(r, Route) and r.matches(scope)[0] is Match.FULL)
            self._metrics.request(next(known, "other"), status, time.perf_counter() - started)
