"""`kbgym connect` adds one entry to an agent's configuration file and changes nothing else in it."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kbgym.errors import BadInput
from kbgym.serving.connect import AGENTS

Kbgym = Callable[..., tuple[int, str, str]]
TOML = """# my own settings
model = "some-model"   # the good one

[mcp_servers.docs]
command = "docs"
args = [
  "--all",
]

# what the terminal looks like
[tui]
theme = "dark"
"""
SERVING = ["kbgym", "serve", "/stores/first", "--mcp", "--role", "reader"]
OTHER = ["kbgym", "serve", "/stores/other", "--mcp", "--role", "curator"]


def values(agent: str, text: str) -> dict[str, Any]:
    """Return the parsed content of the file."""
    suffix = Path(AGENTS[agent].where).suffix
    if suffix == ".toml":
        return tomllib.loads(text)
    return dict(yaml.safe_load(text) or {}) if suffix == ".yaml" else json.loads(text or "{}")


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "goose"])
@pytest.mark.parametrize("before", ["", "with content"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_entry_is_added_changed_and_removed(agent: str, before: str, line_end: str) -> None:
    kind = AGENTS[agent]
    if before:
        before = TOML if agent == "codex" else json.dumps({"a": 1, kind.below: {"other": {"command": "x"}}}, indent=4)
        before = before.replace("\n", line_end)
    once = kind.written(before, "kbgym", kind.entry(SERVING))
    expected = values(agent, before)
    expected[kind.below] = {**expected.get(kind.below, {}), "kbgym": kind.entry(SERVING)}
    assert values(agent, once) == expected
    assert kind.written(once, "kbgym", kind.entry(SERVING)) == once, "a second time changes nothing"
    assert line_end not in before or "\n" not in once.replace(line_end, "")
    changed = kind.written(once, "kbgym", kind.entry(OTHER))
    assert values(agent, changed)[kind.below]["kbgym"] == kind.entry(OTHER)
    assert values(agent, kind.written(once, "kbgym", None)) == values(agent, before)
    if agent == "codex":
        assert all(line in once for line in before.splitlines()), "comments stay"


@pytest.mark.parametrize(("agent", "text"), [("zed", '{\n  // mine\n  "a": 1\n}'), ("goose", "GOOSE_MODEL: x\n")])
def test_a_file_that_is_not_edited_gets_its_entry_shown(agent: str, text: str) -> None:
    kind = AGENTS[agent]
    with pytest.raises(BadInput) as refused:
        kind.written(text, "kbgym", kind.entry(SERVING))
    assert "/stores/first" in str(refused.value)


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent not in ("claude-desktop", "goose")])
def test_a_server_is_connected_by_its_url_and_token(kbgym: Kbgym, tmp_path: Path, agent: str) -> None:
    file = tmp_path / "theirs"
    more = ("--file", file, "--url", "https://kb.example.org/", "--token", "kbgym_secret", "--write")
    assert kbgym("connect", agent, *more)[0] == 0, "a URL needs no store on this machine"
    text = file.read_text()
    assert "https://kb.example.org/mcp" in text and "Bearer kbgym_secret" in text
    assert file.stat().st_mode & 0o077 == 0, "a token is for its owner alone"


def test_what_no_url_can_be_written_for_is_told(kbgym: Kbgym, tmp_path: Path) -> None:
    for agent, more in (
        ("claude-desktop", ("--url", "https://kb.example.org")),
        ("cursor", ("--url", "kb.example.org")),
        ("cursor", ("--token", "x")),
    ):
        assert kbgym("connect", agent, tmp_path, "--file", tmp_path / "theirs", *more, "--write")[0] == 2
    assert kbgym("connect", "cursor", "--file", tmp_path / "theirs", "--write")[0] == 2, "neither a store nor a URL"
    assert not (tmp_path / "theirs").exists()


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("cursor", "{"),
        ("cursor", '{"mcpServers": 7}'),
        ("cursor", "[1]"),
        ("cursor", "[" * 100_000),
        ("cursor", '{"a": 1} /*'),
        ("codex", "[x"),
        ("codex", 'mcp_servers = { kbgym = { command = "x" } }'),
        ("goose", "extensions: {a: {b: 1}}"),
        ("goose", "a: [1"),
    ],
)
def test_what_cannot_be_changed_is_left_alone(kbgym: Kbgym, tmp_path: Path, agent: str, text: str) -> None:
    file = tmp_path / "theirs"
    file.write_text(text)
    code, _, err = kbgym("connect", agent, tmp_path, "--file", file, "--write")
    assert code == 2 and str(file) in err and "Traceback" not in err
    assert file.read_text() == text


def test_the_verb_shows_then_writes_then_takes_back(
    kbgym: Kbgym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    file = tmp_path / "config.toml"
    file.write_text(TOML)
    file.chmod(0o600)
    before = file.read_bytes()
    code, out, _ = kbgym("connect", "codex", tmp_path)
    assert code == 0 and "+[mcp_servers.kbgym]" in out and "use --write" in out and file.read_bytes() == before
    more = ("--skill", tmp_path / "skills")
    code, out, _ = kbgym("connect", "codex", tmp_path, "--write", *more, "--role", "curator")
    assert code == 0 and "Written" in out and file.stat().st_mode & 0o777 == 0o600
    skill = (tmp_path / "skills" / "kbgym" / "SKILL.md").read_text()
    assert skill.startswith("---\nname: kbgym\ndescription: ") and "# Keeping a store in order" in skill
    code, out, _ = kbgym("connect", "codex", tmp_path, "--write", *more, "--role", "curator")
    assert code == 0 and "nothing is changed" in out
    code, _, _ = kbgym("connect", "codex", tmp_path, "--remove", "--write", *more)
    assert code == 0 and file.read_bytes() == before and not (tmp_path / "skills" / "kbgym" / "SKILL.md").exists()
    assert kbgym("connect", "codex", tmp_path, "--name", "a b")[0] == 2


def test_a_linked_file_stays_a_link_and_a_new_one_goes_again(kbgym: Kbgym, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text('{"x": 1}')
    os.symlink(real, link)
    assert kbgym("connect", "cursor", tmp_path, "--file", link, "--write")[0] == 0
    assert link.is_symlink() and "kbgym" in real.read_text()
    new = tmp_path / "deep" / "new.json"
    assert kbgym("connect", "cursor", tmp_path, "--file", new, "--write")[0] == 0 and new.exists()
    assert kbgym("connect", "cursor", tmp_path, "--file", new, "--remove", "--write")[0] == 0 and not new.exists()
