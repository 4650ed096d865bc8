"""Configuration files of agents: where they keep their MCP servers, and a store as an entry there.

TOML keeps its comments and layout (tomlkit). JSON is parsed and written again with its own indentation; a file with
comments, and a YAML file that has other content, are left alone, and the error shows the entry to paste.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import decode
from kbgym.errors import BadInput, Missing
from kbgym.gym.tools import Role

Entry = dict[str, Any]


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


class AgentFile(msgspec.Struct, frozen=True):
    """The configuration file of an agent.

    `below` is the key that holds its MCP servers; `entry` makes an entry from the command that serves a store.
    """

    title: str
    where: str
    below: str
    entry: Callable[[list[str]], Entry] = _plain
    where_mac: str = ""

    @property
    def path(self) -> Path:
        """The path of the file: below the current folder or in the user's own configuration."""
        place = self.where_mac if self.where_mac and sys.platform == "darwin" else self.where
        for name, default in (("XDG_CONFIG_HOME", "~/.config"), ("CODEX_HOME", "~/.codex")):
            if place.startswith(f"${name}/"):
                place = os.environ.get(name, default) + place.removeprefix(f"${name}")
        return Path(place).expanduser()

    def written(self, text: str, name: str, entry: Entry | None) -> str:
        """Return the text of the file with the entry under `name`, or without it if `entry` is None."""
        edit = {".json": _edit_json, ".toml": _edit_toml, ".yaml": _edit_yaml}[Path(self.where).suffix]
        changed = edit(text.replace("\r\n", "\n"), self.below, name, entry)
        return changed.replace("\n", "\r\n") if "\r\n" in text else changed


def _edit_json(text: str, below: str, name: str, entry: Entry | None) -> str:
    try:
        value = decode(text.encode()) if text.strip() else {}
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise _by_hand("it has comments or is not valid JSON", json.dumps({name: entry}, indent=2)) from None
    servers = value.get(below, {}) if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise BadInput(f"the file is not an object whose {below!r} is an object.")
    if servers.get(name) == entry:
        return text
    changed = {**servers, name: entry} if entry is not None else {key: servers[key] for key in servers if key != name}
    value = {**value, below: changed}
    if not changed:
        del value[below]
    indent = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return json.dumps(value, indent=indent[1] if indent else "  ", ensure_ascii=False) + "\n"


def _edit_toml(text: str, below: str, name: str, entry: Entry | None) -> str:
    try:
        import tomlkit
        import tomlkit.exceptions
    except ImportError:
        raise Missing("editing TOML needs tomlkit; run: pip install 'kbgym[serve]'") from None
    try:
        document = tomlkit.parse(text)
    except tomlkit.exceptions.TOMLKitError as error:
        raise BadInput(f"it is not valid TOML: {error}.") from None
    servers = document.get(below)
    if isinstance(servers, tomlkit.items.InlineTable):
        table = tomlkit.dumps({below: {name: entry or {}}})
        raise _by_hand(f"its {below!r} is an inline table", table)
    if (servers or {}).get(name) == entry:
        return text
    if servers is not None and name in servers:
        if entry is None:
            return _without_table(text, document, below, name)
        for key in [key for key in servers[name] if key not in entry]:
            del servers[name][key]
        servers[name].update(entry)
        return tomlkit.dumps(document)
    table = tomlkit.dumps({below: {name: entry}})
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{chr(10) if text else ''}{table}"


def _without_table(text: str, document: Any, below: str, name: str) -> str:
    import tomlkit

    del document[below][name]
    if not document[below]:
        del document[below]
    left = tomlkit.dumps(document)
    return left.rstrip("\n") + "\n" if left.strip() else ""


def _edit_yaml(text: str, below: str, name: str, entry: Entry | None) -> str:
    ours = f"{below}:\n  {name}:\n" + "".join(
        f"    {key}: {json.dumps(value)}\n" for key, value in (entry or {}).items()
    )
    if entry is not None and text in ("", ours):
        return ours
    if entry is None and (
        not text
        or (
            text.startswith(f"{below}:\n  {name}:\n")
            and not re.search(r"^ {0,2}\S", text.partition(f"  {name}:\n")[2], re.MULTILINE)
        )
    ):
        return ""
    raise _by_hand("YAML with other content is not edited", ours)


def _by_hand(why: str, snippet: str) -> BadInput:
    return BadInput(f"{why}; edit it by hand. The entry:\n{snippet}")


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


def rules_with(text: str, name: str, role: Role | None) -> str:
    """Return the text with the rules for a store between two marks; without a role, with the rules removed."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    first, last = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    marks = text.count(first), text.count(last)
    block = line_end.join([first, *_rules(name, role), last]) if role is not None else ""
    if marks == (0, 0):
        if not block:
            return text
        gap = "" if not text else line_end if text.endswith("\n") else 2 * line_end
        return f"{text}{gap}{block}{line_end}"
    begin, end = text.find(first), text.find(last) + len(last)
    if marks != (1, 1) or end < begin:
        raise BadInput(f"the marks of {name} in it are not one pair; put that right by hand.")
    if block:
        return text[:begin] + block + text[end:]
    before, after = text[:begin], text[end:].removeprefix(line_end)
    return before + after if after else before.removesuffix(line_end)


def _rules(name: str, role: Role) -> list[str]:
    rules = [
        f"- When a question may be answered from the store behind the MCP server `{name}`, search there first,",
        "  and read what you find; say so when the store does not hold it.",
    ]
    if role == "curator":
        rules += [
            "- When somebody corrects an answer, call `teach` with the question and what is right. Teach nothing",
            "  that a person did not say. Tell which `undo` takes it back.",
        ]
    return rules
