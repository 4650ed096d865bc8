"""A socket and a web server on it, as every HTTP service here wants them: quiet, bounded, naming nothing of itself."""

from __future__ import annotations

import contextlib
import logging
import resource
import socket

import msgspec
import uvicorn
from starlette.types import ASGIApp

from kbgym.errors import BadInput
from kbgym.serving.connections import Limits, bounded

SPARE = 100  # files a process has open besides its connections


def _files() -> int:
    """How many files may be open at once, after asking for as many as there may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


def listen(host: str, port: int, waiting: int) -> tuple[socket.socket, str]:
    """A listening socket, port 0 being any free one, and its address; `waiting` connections may be queued."""
    # Named as TCP, for asyncio sends small answers at once (TCP_NODELAY) only where it is: else each takes 40 ms.
    listening = socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(waiting)
    except OSError as error:
        raise BadInput(f"cannot listen on {host}:{port}: {error.strerror}.") from error
    shown = f"[{host}]" if ":" in host else host
    return listening, f"http://{shown}:{listening.getsockname()[1]}"


def worth_saying(record: logging.LogRecord) -> bool:
    """Not that nothing was cut short: a busy machine may have kept it from seeing its last client go in time."""
    return not (str(record.msg).startswith("Cancel %s running") and record.args == (0,))


def serve(app: ASGIApp, listening: socket.socket, keep_alive: int = 5, patience: int = 1) -> None:
    """Answer until interrupted; idle connections are kept, and the last requests waited for, so many seconds."""
    limits = Limits()
    limits = msgspec.structs.replace(limits, connections=max(16, min(limits.connections, _files() - SPARE)))
    config = uvicorn.Config(
        app,
        http=bounded(limits),
        ws="none",
        log_level="error",  # a stranger can have any number of warnings written
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=patience,
    )
    logging.getLogger("uvicorn.error").addFilter(worth_saying)
    uvicorn.Server(config).run(sockets=[listening])
