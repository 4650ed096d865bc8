"""The proxy's configuration in docs/security.md, run by nginx in front of a server."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from serving import family_store, make_tokens, serving

PAGE = Path(__file__).parents[2] / "docs" / "security.md"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def configuration(folder: Path, port: int, server: str) -> str:
    """Return the documented configuration, for this machine and without TLS."""
    found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    text = found[1].replace("listen 443 ssl;", f"listen 127.0.0.1:{port};").replace("http://127.0.0.1:8765", server)
    text = re.sub(r"\n *ssl_certificate.*", "", text)
    kinds = "client_body proxy fastcgi uwsgi scgi".split()
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    return f"pid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{text}}}\n"


def test_the_documented_proxy_serves_and_limits(tmp_path: Path) -> None:
    place = family_store(tmp_path / "store")
    tokens, port = make_tokens(place), free_port()
    with serving(place) as server:
        file = tmp_path / "nginx.conf"
        file.write_text(configuration(tmp_path, port, server.url))
        proxy = subprocess.Popen(["nginx", "-c", str(file), "-g", "daemon off;"], stderr=subprocess.PIPE)
        try:
            headers = {"Authorization": f"Bearer {tokens.reader}", "Host": "kb.example.org"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=10) as rex:
                for _ in range(100):
                    try:
                        assert rex.get("/health").status_code == 200
                        break
                    except httpx.ConnectError:
                        time.sleep(0.05)
                assert rex.post("/v1/search", json={"query": "baker"}).json()["documents"]
                assert rex.post("/v1/search", content=b"x" * 2_000_000).status_code == 413
                assert rex.get("/v1/stats", headers={"Authorization": "Bearer x"}).status_code == 401
                call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
                assert rex.post("/mcp", json=call).json()["result"]["tools"]
            idle = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(40)]
            for one in idle:
                one.sendall(b"POST /v1/search HTTP/1.1\r\nHost: kb.example.org\r\nContent-Length: 9\r\n\r\n")
            refused = 0
            for one in idle:
                with one:
                    one.settimeout(1)
                    try:
                        refused += one.recv(100).startswith(b"HTTP/1.1 503")
                    except TimeoutError:
                        continue
            assert refused >= 8, "a client has at most 32 connections"
        finally:
            proxy.terminate()
            proxy.wait(10)
