"""`kbgym connect`: an MCP server for a store in an agent's own configuration, and its skill."""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from pathlib import Path

import click

from kbgym.canonical import read_file, write_whole
from kbgym.cli import read_table
from kbgym.cli.common import STORE, Printed, verb
from kbgym.cli.settings import place
from kbgym.errors import BadInput
from kbgym.gym.tools import Role
from kbgym.serving.connect import AGENTS, AgentFile, Entry
from kbgym.trace import is_url

_MOST = 10_000_000  # maximum bytes of a configuration file


@verb("connect")
@click.argument("program", metavar="AGENT", type=click.Choice(list(AGENTS)))
@place("[STORE]", type=STORE, required=False)
def command(
    program: str,
    place: str | None,
    role: Role,
    name: str,
    file: Path | None,
    write: bool,
    remove: bool,
    skill: Path | None,
    url: str | None,
    token: str | None,
) -> Printed:
    """Connect AGENT to a STORE through an MCP server in its configuration. Other content of the file stays.

    \b
    Examples:
      kbgym connect codex runs/first
      kbgym connect zed runs/first --role curator --write
      kbgym connect claude-code runs/first --write --skill .claude/skills
      kbgym connect opencode --url https://kb.example.org --token $KBGYM_TOKEN --write
      kbgym connect zed runs/first --remove --write
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,40}", name):
        raise BadInput(f"a name is a letter and then letters, digits, - and _; not {name!r}.")
    if token is not None and url is None:
        raise BadInput("--token goes with --url.")
    if place is None and url is None:
        raise BadInput("name a STORE or give --url; beside a kbgym.toml neither is needed.")
    kind = AGENTS[program]
    path = file or kind.path
    before = _text(path)
    try:
        after = kind.written(before, name, None if remove else _entry(kind, program, place or "", role, url, token))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    changes = [(path, before, after)]
    if skill is not None:
        target = skill / name / "SKILL.md"
        changes.append((target, _text(target), "" if remove else skill_text(name, role)))
    changes = [change for change in changes if change[1] != change[2]]
    lines: list[str] = []
    for target, old, new in changes:
        lines += difflib.unified_diff(old.splitlines(), new.splitlines(), str(target), str(target), lineterm="")
    if write:
        for target, _, text in changes:
            _write(target, text, private=token is not None)
    changed = [str(target) for target, *_ in changes] if write else []
    result = {"agent": program, "file": str(path), "changed": changed, "difference": lines}
    if not changes:
        return result, f"{path} says so already; nothing is changed."
    end = f"Written; {kind.title} reads it when it starts." if write else "Nothing was written; use --write to do so."
    return result, [*lines, end]


def _entry(kind: AgentFile, program: str, place: str, role: Role, url: str | None, token: str | None) -> Entry:
    """Return the entry for a server at a URL, or for one that the agent starts itself."""
    if url is not None:
        if not url.startswith(("http://", "https://")):
            raise BadInput(f"--url takes http:// or https://, not {url!r}.")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return kind.entry_at(url.rstrip("/").removesuffix("/mcp") + "/mcp", headers)
    where = place if is_url(place) else str(Path(place).resolve())
    found = shutil.which("kbgym")
    program_line = [found] if found else [sys.executable, "-m", "kbgym"]
    return kind.entry([*program_line, "serve", where, "--mcp", "--role", role, "--set", f"client={program}"])


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    if path.stat().st_size > _MOST:
        raise BadInput(f"{path} is too large for a configuration.")
    try:
        return read_file(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} cannot be read: {error}.") from error


def _write(path: Path, text: str, private: bool) -> None:
    """Replace the file atomically, keeping links and permissions. Remove it if no content is left."""
    path = path.resolve()
    if text.strip() in ("", "{}"):
        path.unlink(missing_ok=True)
        return
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    try:
        with write_whole(path) as scratch:
            scratch.touch(0o600)
            scratch.write_bytes(text.encode())
            scratch.chmod(mode & 0o700 if private else mode)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.") from error


def skill_text(name: str, role: Role) -> str:
    """Return the skills of a role in the format that agents load."""
    from kbgym.agents.llm.prompting import prompt
    from kbgym.serving.mcp_tools import TEACH

    does = "find answers in" if role == "reader" else "find answers in, and keep in order,"
    prompts = ["retrieval", *(["curation"] if role == "curator" else [])]
    head: str = read_table("texts.toml")["skill"].format(name=name, does=does)
    parts = [head, *map(prompt, prompts), *([TEACH] if role == "curator" else [])]
    return "\n\n".join(parts).rstrip("\n") + "\n"
