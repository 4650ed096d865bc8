"""A Ray cluster on this machine, as processes of its own: what an address leads to."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).resolve().parent


@contextmanager
def ray_cluster(nodes: int) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Nodes of one worker each; the addresses they are reached by, and the variables that hold their token."""
    from ray.util import get_node_ip_address

    port, client, here = free_port(), free_port(), get_node_ip_address()
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    where = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"}
    environment = {**os.environ, **token, **where}
    ray = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--block", "--num-cpus=1"]
    with tempfile.TemporaryDirectory(prefix="kbgym-ray-", dir="/tmp", ignore_cleanup_errors=True) as scratch:
        head = ["--head", f"--port={port}", f"--ray-client-server-port={client}", f"--temp-dir={scratch}"]
        started: list[subprocess.Popen[bytes]] = []
        try:
            for options in ([*head, "--include-dashboard=false"], *[[f"--address={here}:{port}"]] * (nodes - 1)):
                said = Path(scratch) / f"node{len(started)}.log"
                with said.open("wb") as log:
                    started.append(subprocess.Popen([*ray, *options], env=environment, stdout=log, stderr=log))
                _wait_for(said, lambda said=said: b"Ray runtime started" in said.read_bytes())
            _wait_for(Path(scratch) / "node0.log", lambda: _listens(client))  # which it does a little later
            yield {"client": f"ray://127.0.0.1:{client}", "direct": f"{here}:{port}"}, token
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for(log: Path, ready: Callable[[], bool]) -> None:
    for _ in range(900):
        if ready():
            return
        time.sleep(0.2)
    raise AssertionError(f"the cluster did not start:\n{log.read_text()}")
