"""No network at run time: demo, train, exam, serve and view open no connection and look up no name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kbgym

SOURCE = Path(kbgym.__file__).parent
KBGYM = [sys.executable, "-c", "from kbgym.cli.main import run; run()"]
ALONE = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
TRACE = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o"]
# Sockets inside the machine: loopback, local sockets, the self-pipe of an event loop, questions to the kernel.
_INSIDE = re.compile(r"AF_UNIX|AF_NETLINK|127\.\d+\.\d+\.\d+|\"::1\"|, NULL, 0\)|msg_name=NULL|resumed>")
SERVE = """
import signal, subprocess, sys, time, json, urllib.request
server = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
url = json.loads(server.stdout.readline())["url"]
urllib.request.urlopen(url).read() if "view" in sys.argv else None
if "serve" in sys.argv:
    body = json.dumps({"query": "job is baker"}).encode()
    asked = urllib.request.Request(url + "/v1/search", body, {"Content-Type": "application/json"})
    assert json.loads(urllib.request.urlopen(asked).read())["documents"]
time.sleep(3)
server.send_signal(signal.SIGINT)
server.wait(20)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not all(map(shutil.which, ("strace", "unshare", "ip"))), reason="needs strace, unshare and ip"),
]


def traced(tmp_path: Path, *command: object) -> list[str]:
    """Run a command where no network is and return its calls that would have left the machine."""
    log = tmp_path / "strace.log"
    environment = {**os.environ, "KBGYM_CACHE": str(tmp_path / "cache")}  # nothing is embedded already
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    done = subprocess.run(
        [*TRACE, str(log), *ALONE, *map(str, command)], env=environment, capture_output=True, timeout=1100, check=False
    )
    assert done.returncode in (0, -2, 130), done.stderr.decode()
    calls = [line for line in log.read_text().splitlines() if "(" in line and not _INSIDE.search(line)]
    return [line for line in calls if "exited" not in line and "SIG" not in line]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("network")
    made = [*KBGYM, "generate", "--people", "80", "--seed", "1", "--out", str(folder / "world"), "--quiet"]
    subprocess.run(made, check=True, timeout=120)
    trained = ["--world", folder / "world", "--out", folder / "run", "--questions", 3, "--epochs", 1, "--quiet"]
    assert traced(folder, *KBGYM, "train", *trained) == []
    return folder / "run"


def test_the_demo_asks_nobody(tmp_path: Path) -> None:
    assert traced(tmp_path, *KBGYM, "demo", "--out", tmp_path / "demo", "--quiet") == []


def test_the_telemetry_of_onnxruntime_is_off_before_it_is_loaded() -> None:
    """Importing anything of kbgym sets the switch, so it is set in every subprocess too."""
    loading = [file for file in SOURCE.rglob("*.py") if re.search(r"^ *import onnxruntime", file.read_text(), re.M)]
    assert len(loading) == 3
    for file in loading:
        module = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts)
        code = f"import {module}, os, sys; print(os.environ['ORT_DISABLE_TELEMETRY'], 'onnxruntime' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONPATH": str(SOURCE.parent)}, capture_output=True, check=True
        )
        assert done.stdout == b"1 False\n"


def test_an_exam_asks_nobody(run: Path, tmp_path: Path) -> None:
    assert traced(tmp_path, *KBGYM, "exam", run, "--set", "eval", "--agent", "reference", "--quiet") == []


@pytest.mark.parametrize("verb", [("serve", "--http", "127.0.0.1:0", "--no-auth"), ("view", "--port", "0")])
def test_a_server_asks_nobody(run: Path, tmp_path: Path, verb: tuple[str, ...]) -> None:
    name, *flags = verb
    assert traced(tmp_path, sys.executable, "-c", SERVE, *KBGYM, name, run, *flags, "--json") == []


def test_a_connection_would_be_noticed(tmp_path: Path) -> None:
    code = "import socket\ntry: socket.create_connection(('192.0.2.1', 443), 1)\nexcept OSError: pass"
    assert traced(tmp_path, sys.executable, "-c", code)
