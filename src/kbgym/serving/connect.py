"""Configuration files of agents: where they keep their MCP servers, and a store as an entry there.

TOML keeps its comments and layout (tomlkit). JSON is parsed and written again with its own indentation. A JSON file
with comments and a YAML file are left alone, and the error shows the entry to paste.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from kbgym.canonical import decode
from kbgym.errors import BadInput, Missing

Entry = dict[str, Any]


class AgentFile(msgspec.Struct, frozen=True):
    """The configuration file of an agent.

    Args:
        below: the key that holds its MCP servers.
        local: the entry for a server that the agent starts.
        remote: the entry for a server at a URL; empty if the file takes none.
    """

    title: str
    where: str
    below: str
    local: Entry
    remote: Entry
    where_mac: str = ""

    def entry(self, command: list[str]) -> Entry:
        """Return the entry for a server that is started by a command."""
        return dict(_filled(self.local, {"$command": command[0], "$args": command[1:], "$whole": command}))

    def entry_at(self, url: str, headers: dict[str, str]) -> Entry:
        """Return the entry for a server at a URL."""
        if not self.remote:
            raise BadInput("this agent's file takes no URL; add the server in its settings, or connect a folder.")
        return dict(_filled(self.remote, {"$url": url, "$headers": headers}))

    @property
    def path(self) -> Path:
        """Return the path of the file, below the current folder or in the user's own configuration."""
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
            del document[below][name]
            if not document[below]:
                del document[below]
            left = tomlkit.dumps(document)
            return left.rstrip("\n") + "\n" if left.strip() else ""
        for key in [key for key in servers[name] if key not in entry]:
            del servers[name][key]
        servers[name].update(entry)
        return tomlkit.dumps(document)
    table = tomlkit.dumps({below: {name: entry}})
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{chr(10) if text else ''}{table}"


def _edit_yaml(text: str, below: str, name: str, entry: Entry | None) -> str:
    """Show the entry: YAML is not edited. An entry that is written in JSON is valid YAML."""
    if entry is None and f"  {name}:" not in text:
        return text
    raise _by_hand("YAML is not edited", f"{below}:\n  {name}: {json.dumps(entry)}")


def _by_hand(why: str, snippet: str) -> BadInput:
    return BadInput(f"{why}; edit it by hand. The entry:\n{snippet}")


def _filled(template: Any, values: Entry) -> Any:
    """Return a template with its placeholders replaced."""
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    return values.get(template, template) if isinstance(template, str) else template


AGENTS: dict[str, AgentFile] = msgspec.toml.decode(
    Path(__file__).with_name("agents.toml").read_bytes(), type=dict[str, AgentFile]
)
