"""Programs people have, headless, against a scripted model: what they play is what the same agent plays in process.

They are looked for in $PATH and in $KBGYM_AGENTS (a folder of `npm install --prefix`), and skipped where they are not.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from model_server import ModelServer
from msgspec.structs import replace
from test_command import exam_of, questions

from kbgym.agents.external.agent import CommandAgent, CommandLimits
from kbgym.agents.external.command_line import READY
from kbgym.agents.llm.prompting import skill_of
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api import train
from kbgym.canonical import encode
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
