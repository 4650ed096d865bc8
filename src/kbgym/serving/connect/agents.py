"""Where agents keep their MCP servers, and in which form; a store as an entry there.

Every change is checked before it is written: what the file says is the same as before, but for this one entry.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from kbgym.errors import BadInput
from kbgym.serving.connect.blocks import toml_value, toml_with, toml_without, yaml_with, yaml_without
from kbgym.serving.connect.jsonc import read, with_member, without_member

Entry = dict[str, Any]
Names = tuple[str, ...]


def _plain(command: list[str]) -> Entry:
    return {"command": command[0], "args": command[1:]}


def _vscode(command: list[str]) -> Entry:
    return {"type": "stdio", **_plain(command)}


def _zed(command: list[str]) -> Entry:
    return {"source": "custom", **_plain(command), "env": {}}


def _goose(command: list[str]) -> Entry:
    plain = {"cmd": command[0], "args": command[1:], "envs": {}, "env_keys": []}
    return {
        "enabled": True,
        "type": "stdio",
        "name": "kbgym",
        "description": "A trained store",
        **plain,
        "timeout": 300,
    }


# How files of a kind are changed.
_FORMS: dict[str, tuple[Callable[[str, Names, Entry], str], Callable[[str, Names], str]]] = {
    ".json": (with_member, without_member),
    ".toml": (toml_with, toml_without),
    ".yaml": (yaml_with, yaml_without),
}


class AgentFile(msgspec.Struct, frozen=True):
    """An agent's file: the agent's name for people, where the file is, what servers stand below, an entry's form."""

    title: str
    where: str
    below: str
    entry: Callable[[list[str]], Entry] = _plain
    where_mac: str = ""

    @property
    def path(self) -> Path:
        """In the folder of the project one is in, or in one's own."""
        place = self.where_mac if self.where_mac and sys.platform == "darwin" else self.where
        for name, default in (("XDG_CONFIG_HOME", "~/.config"), ("CODEX_HOME", "~/.codex")):
            if place.startswith(f"${name}/"):
                place = os.environ.get(name, default) + place.removeprefix(f"${name}")
        return Path(place).expanduser()

    def written(self, text: str, name: str, entry: Entry | None) -> str:
        """The file's text with the entry under a name, or without any."""
        path = (self.below, name)
        change, take_out = _FORMS[Path(self.where).suffix]
        changed = take_out(text, path) if entry is None else change(text, path, entry)
        self._check(text, changed, name, entry)
        return changed

    def _check(self, before: str, after: str, name: str, entry: Entry | None) -> None:
        meant, found = self._values(before), self._values(after)
        if meant is None or found is None:
            return
        servers = {**(meant.get(self.below) or {}), name: entry}
        if entry is None:
            del servers[name]
        if {**meant, self.below: servers} != {self.below: {}, **found}:
            raise BadInput(f"{self.title}'s file cannot be changed without changing something else; do it by hand.")

    def _values(self, text: str) -> dict[str, Any] | None:
        """What a text says; None for YAML where nothing is installed to read it."""
        if self.where.endswith(".toml"):
            return dict(toml_value(text))
        if self.where.endswith(".yaml"):
            try:
                import yaml
            except ImportError:
                return None
            try:
                return dict(yaml.safe_load(text) or {})
            except (yaml.YAMLError, TypeError, ValueError):
                raise BadInput("it is no YAML that can be read.") from None
        value = read(text).value
        return value if isinstance(value, dict) else {}


AGENTS: dict[str, AgentFile] = {
    "claude-code": AgentFile("Claude Code", ".mcp.json", "mcpServers"),
    "claude-desktop": AgentFile(
        "Claude Desktop",
        "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
        "mcpServers",
        where_mac="~/Library/Application Support/Claude/claude_desktop_config.json",
    ),
    "cursor": AgentFile("Cursor", "~/.cursor/mcp.json", "mcpServers"),
    "vscode": AgentFile("VS Code", ".vscode/mcp.json", "servers", _vscode),
    "codex": AgentFile("Codex CLI", "$CODEX_HOME/config.toml", "mcp_servers"),
    "gemini": AgentFile("Gemini CLI", "~/.gemini/settings.json", "mcpServers"),
    "zed": AgentFile("Zed", "$XDG_CONFIG_HOME/zed/settings.json", "context_servers", _zed),
    "goose": AgentFile("goose", "$XDG_CONFIG_HOME/goose/config.yaml", "extensions", _goose),
}
