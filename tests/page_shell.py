"""Run a page's commands in order in one folder, as a reader of the page would type them.

What answers until it is stopped is started, asked for something, and stopped. Models are a scripted server, programs
that play are scripts named like them, a database and a cluster are the tests' own.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from documented import ROOT, Line
from prompt_reader import Reference
from writers import drafting, summarising

_STAYS = re.compile(r"kbgym (view|watch|play|serve .*(--mcp|--http))\b")
_URL = re.compile(r"http://127\.0\.0\.1:\d+")
_WRITERS = {"suggest": drafting, "summarise": summarising}
# A program that plays over MCP, started as the ready-made line or the page starts it.
_PLAYERS = {"codex": 'cat > prompt; set -- "" "" "" prompt', "my-agent": ""}


@cache
def installed() -> Path:
    """Return the folder of an installed wheel: pages are followed without the repository on the path."""
    folder = Path(tempfile.mkdtemp(prefix="kbgym-wheel-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(ROOT)]
    subprocess.run(pip, check=True)
    return folder


class Model:
    """Replies of the scripted server: the reference agents play, and writers answer drafting tools."""

    def __init__(self) -> None:
        self._plays = Reference()

    def __call__(self, body: dict[str, Any]) -> Any:
        offered = {tool["function"]["name"] for tool in body.get("tools", ())}
        return next((write(body) for name, write in _WRITERS.items() if name in offered), None) or self._plays(body)


class Shell:
    """One folder, and what its commands find in their environment; `model` is the address of the scripted server."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self._token = folder, ""
        cache = os.environ.get("KBGYM_CACHE") or str(Path.home() / ".cache" / "kbgym")
        programs = folder / "programs"
        programs.mkdir()
        (folder / "home").mkdir()
        player = f'exec {sys.executable} {ROOT}/tests/command_agent.py "$4" "$KBGYM_MCP_URL" "$KBGYM_TOKEN"'
        for name, before in _PLAYERS.items():
            (programs / name).write_text(f"#!/bin/sh\n{before}\n{player}\n", encoding="utf-8")
            (programs / name).chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f".:{installed()}",
            "HOME": str(folder / "home"),
            "KBGYM_CACHE": cache,
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": model,
            "BROWSER": "true",
        }

    def run(self, line: Line) -> None:
        text = line.text
        if _STAYS.match(text):
            return self._answers(text)
        words = {"cwd": self.folder, "env": self.environment, "capture_output": True, "text": True}
        done = subprocess.run(text, shell=True, stdin=subprocess.DEVNULL, **words)  # type: ignore[call-overload]
        said = f"{text}\n{done.stdout}\n{done.stderr}"
        refused = line.printed.split("\n")[0] if line.printed.startswith("kbgym: ") else ""
        assert done.returncode == (2 if refused else 0) and refused in done.stderr and "Traceback" not in said, said
        if "--new-token" in text:
            self._token = done.stdout.split()[0]
        return None

    def _answers(self, text: str) -> None:
        """Start it, ask it for something, stop it: it must end in good order, without a word about an error."""
        with (self.folder / "said").open("w+") as said:
            process = subprocess.Popen(
                f"exec {text}",
                shell=True,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
            )
            try:
                if " --mcp" in text:
                    client = _Client(process)
                    client.play() if " play " in text else client.call("search", query="job")
                    process.communicate(timeout=60)  # the client hangs up
                else:
                    self._ask(text, process)
                    process.send_signal(signal.SIGINT)
                    process.communicate(timeout=60)
            finally:
                process.kill()
                process.communicate()
                said.seek(0)
                print(f"{text}\n{said.read()}")
            said.seek(0)
            ended = 0 if " --mcp" in text or "kbgym view" in text else 130
            assert process.returncode == ended and "Traceback" not in said.read()

    def _ask(self, text: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        if " watch " in text:  # the page has just rolled an update back, which the files still say
            assert any(", iteration " in line for line in process.stdout)
            return
        url = next(found[0] for line in process.stdout if (found := _URL.search(line)))
        if " serve " in text:
            headers = {"Authorization": f"Bearer {self._token}"}
            reply = httpx.post(f"{url}/v1/search", json={"query": "job"}, headers=headers, timeout=60)
        else:
            reply = httpx.get(f"{url}/", timeout=60)
        assert reply.status_code == 200, reply.text


class _Client:
    """An agent at the other end of standard streams."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self._number = process, 0
        about = {"name": "test", "version": "1"}
        self._message("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)

    def call(self, tool: str, **arguments: str) -> str:
        result = self._message("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])

    def play(self) -> None:
        """Answer every question without a look at the store, and change nothing in it."""
        while "There is no question left" not in (shown := self.call("next_question")):
            assert "Question: " in shown
            if "Correct answer: " in self.call("answer", text="unknown"):
                self.call("done")

    def _message(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        assert self._process.stdin is not None and self._process.stdout is not None
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        replies = (json.loads(line) for line in self._process.stdout)
        return dict(next(reply for reply in replies if reply.get("id") == self._number)["result"])
