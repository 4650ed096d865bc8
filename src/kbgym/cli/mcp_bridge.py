"""`kbgym mcp-bridge`: standard streams for an agent that cannot speak MCP over HTTP itself.

Every line is sent to the address and what comes back is a line. It understands none of them, and ends with its input.
"""

from __future__ import annotations

import http.client
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import click

from kbgym.errors import BadInput

_AT_ONCE = 4


@click.command("mcp-bridge")
@click.argument("url")
def command(url: str) -> None:
    """Carry MCP between standard streams and URL, with the token in $KBGYM_TOKEN.

    \b
    Example:
      KBGYM_TOKEN=... kbgym mcp-bridge http://127.0.0.1:8765/mcp
    """
    parts, token = urlsplit(url), os.environ.get("KBGYM_TOKEN", "")
    if parts.scheme != "http" or not parts.hostname:
        raise BadInput(f"the bridge goes to an http:// address, not {url!r}.")
    host, port, path = parts.hostname, parts.port or 80, parts.path or "/"
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    writing, gone = threading.Lock(), threading.Event()

    def carry(line: bytes) -> None:
        connection = http.client.HTTPConnection(host, port)
        try:
            connection.request("POST", path, line, headers)
            reply = connection.getresponse()
            body = reply.read()
        except OSError:  # the pass is over
            gone.set()
            return
        finally:
            connection.close()
        if reply.status in (401, 403):
            gone.set()
        elif body:
            with writing:
                sys.stdout.buffer.write(body.replace(b"\n", b" ") + b"\n")
                sys.stdout.buffer.flush()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for line in sys.stdin.buffer:
            if gone.is_set():
                raise BadInput("the other end of the bridge is closed, or takes no token like this one.")
            if line.strip():
                pool.submit(carry, line)
