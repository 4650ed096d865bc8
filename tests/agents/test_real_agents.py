"""Programs people have, headless, against a scripted model: what they play is what the same agent plays in process.

Connected to a store as `kbgym connect` writes it, they search, teach and cite, also two at once on one folder.

They are looked for in $PATH and in $KBGYM_AGENTS (a folder of `npm install --prefix`), and skipped where they are not.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from model_server import ModelServer, Past
from msgspec.structs import replace
from test_command import exam_of, questions

from kbgym.agents.external.agent import CommandAgent, CommandLimits
from kbgym.agents.external.command_line import READY
from kbgym.agents.llm.prompting import skill_of
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api import import_corpus, train
from kbgym.canonical import encode
from kbgym.cli.main import app
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import read_rows
from kbgym.worlds.people import generate

pytestmark = pytest.mark.slow
LIMITS = CommandLimits(seconds=90, at_once=2)


def _codex(home: Path, url: str) -> dict[str, str]:
    home.joinpath("config.toml").write_text(
        'model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
        f'base_url = "{url}"\nwire_api = "responses"\n'
    )
    return {"CODEX_HOME": str(home)}


def _opencode(home: Path, url: str) -> dict[str, str]:
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": url, "apiKey": "none"}}
    config = {"model": "scripted/one", "provider": {"scripted": {**provider, "models": {"one": {"name": "one"}}}}}
    home.joinpath("opencode.json").write_text(json.dumps(config))
    folders = {f"XDG_{kind}_HOME": str(home / kind) for kind in ("DATA", "CACHE", "STATE", "CONFIG")}
    return {"OPENCODE_CONFIG": str(home / "opencode.json"), **folders}


def _claude(home: Path, url: str) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": url.removesuffix("/v1"), "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": str(home)}


def _gemini(home: Path, url: str) -> dict[str, str]:
    home.joinpath(".gemini").mkdir()
    home.joinpath(".gemini/settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    own = {"GOOGLE_GEMINI_BASE_URL": url.removesuffix("/v1"), "GEMINI_API_KEY": "none"}
    return {**own, "GEMINI_MODEL": "gemini-2.5-flash"}


PROGRAMS: dict[str, Callable[[Path, str], dict[str, str]]] = {
    "codex": _codex,
    "opencode": _opencode,
    "claude-code": _claude,
    "gemini": _gemini,
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    own = os.environ.get("KBGYM_AGENTS")
    if own:
        monkeypatch.setenv("PATH", f"{own}/node_modules/.bin", prepend=os.pathsep)
    if shutil.which(READY[request.param].arguments[0]) is None:
        pytest.skip(f"{request.param} is not installed (npm install it, and name the folder in $KBGYM_AGENTS)")
    home = tmp_path / "home"
    home.mkdir()
    with ModelServer() as server:
        for name, value in {"HOME": str(home), **PROGRAMS[request.param](home, server.url)}.items():
            monkeypatch.setenv(name, value)
        yield request.param
        offered = {name for tools in server.offered for name in tools if "kbgym" not in name}
        assert not offered & {
            "shell",
            "bash",
            "Bash",
            "Read",
            "Edit",
            "Write",
            "WebFetch",
            "exec_command",
            "apply_patch",
            "edit",
            "write",
            "web_search",
            "webfetch",
        }
        server.shutdown()


def test_an_exam(program: str, tmp_path: Path) -> None:
    here = exam_of(ReferenceReader, questions(), tmp_path / "here.jsonl")
    agent = CommandAgent(program, "reader", skill_of("reader"), tmp_path / "kept.jsonl", LIMITS)
    exam_of(agent, questions(), tmp_path / "there.jsonl")
    rows = read_rows(tmp_path / "there.jsonl")
    said = (tmp_path / "kept.jsonl").read_text()[-3000:]
    assert b"".join(encode(replace(row, usage=None)) + b"\n" for row in rows) == here, said
    assert all(row.usage and row.usage["prompt"] for row in rows), said


def test_a_lesson(program: str, tmp_path: Path) -> None:
    world = generate(people=40, seed=3)
    how = {"questions": 1, "epochs": 1, "eval": False, "embedder": "hash"}
    events = []
    for name, who in (("here", "reference"), ("there", program)):
        asyncio.run(asyncio.to_thread(train, world, tmp_path / name, reader=who, curator=who, **how))
        found = [msgspec.to_builtins(event) for event in StoreFolder(tmp_path / name).events]
        events.append([{k: v for k, v in event.items() if k not in ("agent", "settings", "usage")} for event in found])
    assert events[0] == events[1], (tmp_path / "there" / "passes.jsonl").read_text()[-3000:]


# -- connected to a store -------------------------------------------------------------------------------------------

WAIT = 900  # seconds; programs start slowly on a busy machine
QUESTION, OTHER_WORDS = "Who is the baker of Ystad?", "Ystad has which baker?"
TASK = "# Your task\n\nFind out who the baker of Ystad is, and record what I told you."
HEADLESS: dict[str, list[str]] = {
    "codex": ["codex", "exec", "--skip-git-repo-check", "-c", 'approval_policy="never"'],
    "claude-code": ["claude", "-p", "--allowedTools", "mcp__kbgym"],
    "gemini": ["gemini", "--skip-trust"],
    "opencode": ["opencode", "run"],
}


class Session:
    """A program in a folder of its own, connected to a store; its model searches, teaches, searches and cites."""

    def __init__(self, program: str, folder: Path, store: Path) -> None:
        self.program, self.folder, self.results = program, folder, list[str]()
        self.may_teach = threading.Event()
        self.has_searched = threading.Event()
        home = folder / "home"
        home.mkdir(parents=True)
        self.server = ModelServer(self._play)
        self.env = {**os.environ, "HOME": str(home), **PROGRAMS[program](home, self.server.url)}
        files = {"opencode": home / "opencode.json", "codex": home / "config.toml"}
        file = files.get(program, folder / ".mcp.json" if program == "claude-code" else home / ".gemini/settings.json")
        flags = ["--role", "curator", "--file", str(file), "--write"]
        connected = CliRunner().invoke(app, ["connect", program, str(store), *flags])
        assert connected.exit_code == 0, connected.output
        if program == "gemini":
            settings = json.loads(file.read_text())
            settings["mcpServers"]["kbgym"]["trust"] = True
            file.write_text(json.dumps(settings))

    def _play(self, _: str, past: Past) -> tuple[str, str] | str:
        self.results = [result for _, _, result in past]
        if len(past) == 1:
            self.has_searched.set()
            self.may_teach.wait(WAIT)
        said = {"question": QUESTION, "answers": ["Cy Dahl"], "answer": "Bo Berg"}
        calls = [("search", {"query": QUESTION}), ("teach", said), ("search", {"query": OTHER_WORDS})]
        if len(past) < len(calls):
            name, arguments = calls[len(past)]
            return name, json.dumps(arguments)
        cited = re.search(r"[\w/]+\.md", past[-1][2])
        return f"Source: {cited[0] if cited else 'none'}"

    def run(self) -> str:
        """Play the session to its end; return what the program printed."""
        command = HEADLESS[self.program]
        done = subprocess.run(
            command, input=TASK, env=self.env, cwd=self.folder, text=True, capture_output=True, timeout=WAIT
        )
        return done.stdout + done.stderr

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = tmp_path_factory.mktemp("files")
    (files / "ystad.md").write_text("# Ystad\n\nThe baker of Ystad is Bo Berg. He opens at six.\n")
    (files / "lund.md").write_text("# Lund\n\nThe baker of Lund is Ada Alm.\n")
    import_corpus(files, out=files / "world")
    return files / "world"


@pytest.mark.timeout(2 * WAIT)
def test_two_sessions(program: str, tmp_path: Path, store: Path) -> None:
    """The first session has the store while every other program plays: it teaches, the others read and are told why."""
    shutil.copytree(store, tmp_path / "store")
    first = Session(program, tmp_path / "first", tmp_path / "store")
    printed: list[str] = []
    playing = threading.Thread(target=lambda: printed.append(first.run()))
    playing.start()
    try:
        assert first.has_searched.wait(WAIT), printed
        for other in [name for name in HEADLESS if shutil.which(HEADLESS[name][0])]:
            second = Session(other, tmp_path / other, tmp_path / "store")
            second.may_teach.set()
            said = second.run()
            second.close()
            assert "Source: ystad.md" in said, (other, said, second.results)
            assert "another session is writing this store" in second.results[1], second.results
            assert any(re.search("kbgym.*search$", name) for name in second.server.offered[0]), second.server.offered
    finally:
        first.may_teach.set()
        playing.join(WAIT)
        first.close()
    assert "Source: ystad.md" in printed[0], (printed, first.results)
    assert "Correction [n1] was added and supersedes" in first.results[1]
    assert "Cy Dahl" in first.results[2]
