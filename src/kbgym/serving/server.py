"""A listening socket and the web server on it, shared by the HTTP API and the viewer.

Head size and number of connections are limited by uvicorn and h11. Slow clients, unread replies and fairness between
clients are the work of a reverse proxy (docs/security.md).
"""

from __future__ import annotations

import logging
import socket

import uvicorn
from starlette.types import ASGIApp

from kbgym.errors import BadInput

HEAD_BYTES = 32_768  # at most, of a request line and its headers
CONNECTIONS = 1_000  # concurrent connections; beyond that the server answers 503


def listen(host: str, port: int, waiting: int) -> tuple[socket.socket, str]:
    """Return a listening socket (port 0: any free port) and its URL; `waiting` is the backlog."""
    # Declared as TCP: asyncio sets TCP_NODELAY only then; otherwise each small response takes 40 ms.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(waiting)
    except OSError as error:
        raise BadInput(f"cannot listen on {host}:{port}: {error.strerror}.") from error
    shown = f"[{host}]" if ":" in host else host
    return listening, f"http://{shown}:{listening.getsockname()[1]}"


def worth_saying(record: logging.LogRecord) -> bool:
    """Return False for the message that no running task was cancelled at shutdown."""
    return not (str(record.msg).startswith("Cancel %s running") and record.args == (0,))


def serve(app: ASGIApp, listening: socket.socket, keep_alive: int = 5, patience: int = 1) -> None:
    """Serve until interrupted. `keep_alive` and `patience` (graceful shutdown) are in seconds."""
    config = uvicorn.Config(
        app,
        http="h11",  # this parser limits the size of a request head
        h11_max_incomplete_event_size=HEAD_BYTES,
        limit_concurrency=CONNECTIONS,
        ws="none",
        log_level="error",  # clients can trigger any number of warnings
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=patience,
    )
    logging.getLogger("uvicorn.error").addFilter(worth_saying)
    uvicorn.Server(config).run(sockets=[listening])
