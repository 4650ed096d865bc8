"""Embedding a text looks nothing up and connects to nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Continuous integration suppresses telemetry by itself; without it the promise has to hold too.
_CI = ("CI", "TF_BUILD", "GITHUB_ACTIONS", "JENKINS_URL", "CODEBUILD_BUILD_ID", "ORT_DISABLE_TELEMETRY")
_NETWORK = re.compile(r"AF_INET6?\b|/etc/resolv\.conf|nsswitch|deviceid")
CODE = """
import sys, time
from pathlib import Path
from kbgym.search import minilm
minilm.MiniLM(Path(sys.argv[1]), Path(sys.argv[2])).embed(["one sentence"])
time.sleep(2)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_embedding_uses_no_network(tmp_path: Path, model_folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in _CI}
    environment["HOME"] = environment["XDG_CACHE_HOME"] = str(tmp_path)
    trace = tmp_path / "trace.txt"
    watch = ["strace", "-f", "-o", str(trace), "-e", "trace=network,openat"]
    command = [*watch, sys.executable, "-c", CODE, str(model_folder), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if "ptrace" in done.stderr.lower():
        pytest.skip("this system lets no process be traced")
    assert done.returncode == 0, done.stderr
    assert [line for line in trace.read_text().splitlines() if _NETWORK.search(line)] == []
