"""Pages of the site that are not in docs/: the help of every verb, the public names, and pages from other folders.

A hook of mkdocs, named in mkdocs.yml. Links that lead out of docs/ are led to the pages made here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files

import kbgym
from kbgym.cli.main import app
from kbgym.cli.settings import KEYS

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = {  # what a link out of docs/ says: what the site calls it
    "benchmarks/RESULTS.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "examples/python.ipynb": "python.ipynb",
}


def on_config(config: Any) -> None:
    config.site_name = f"kbgym {kbgym.__version__}"
    config.copyright = f"kbgym {kbgym.__version__}, Apache-2.0"


def on_files(files: Files, config: Any) -> Files:
    for path, name in ELSEWHERE.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text(encoding="utf-8")))
    files.append(File.generated(config, "commands.md", content=commands()))
    files.append(File.generated(config, "api.md", content=names()))
    files.append(File.generated(config, "files.md", content=source_tree()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return re.sub(r"\]\(\.\./([^)#]+)", lambda link: f"]({ELSEWHERE.get(link[1], link[0])}", markdown)


def commands() -> str:
    """The help of every verb, as the command line prints it."""
    lines = ["# Every command", "", "What `kbgym VERB --help` prints, then every setting.", ""]
    for name, command in _leaves(app, "kbgym"):
        context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
        lines += ["", f"## {name.removeprefix('kbgym ')}", "", "```text", command.get_help(context), "```"]
    lines += ["", "## Settings", "", "| key | table of `kbgym.toml` | meaning |", "| --- | --- | --- |"]
    for key, info in KEYS.items():
        lines.append(f"| `{key}` | {f'`[{info.table}]`' if info.table else ''} | {info.help.replace('|', ' or ')} |")
    return "\n".join(lines)


def _leaves(group: click.Group, name: str) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    context = click.Context(group, info_name=name)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if isinstance(command, click.Group):
            found += _leaves(command, f"{name} {word}")
        elif command is not None and not command.hidden:
            found.append((f"{name} {word}", command))
    return found


def source_tree() -> str:
    """Return a page with the first sentence of every module's docstring."""
    lines = ["# The source tree", "", "Every module with the first sentence of its docstring."]
    folder = None
    for path in sorted((ROOT / "src" / "kbgym").rglob("*.py"), key=lambda one: (one.parent, one.name)):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        sentence = re.split(r"(?<=[.!?]) (?=[A-Z`])", " ".join(docstring.split("\n\n")[0].split()))[0]
        if path.parent != folder:
            folder = path.parent
            lines += ["", f"## {folder.relative_to(ROOT / 'src')}", ""]
        if sentence:
            lines.append(f"- `{path.name}`: {sentence}")
    return "\n".join(lines)


def names() -> str:
    """Every name `kbgym` promises, from the docstrings of the modules they live in."""
    lines = ["# The public names", "", "All of them are `kbgym.NAME`. A tour of them: [From Python](python.md)."]
    for module, homed in kbgym._HOME.items():
        lines += ["", f"## {module}", ""]
        lines += [f"::: {_home(name) or module}.{name}\n" for name in homed.split()]
    return "\n".join(lines)


def _home(name: str) -> str | None:
    """The module that defines it; a package may have a module of the same name. None where nothing says."""
    try:
        found = str(getattr(getattr(kbgym, name), "__module__", ""))
    except kbgym.Missing:
        return None
    return found if found.startswith("kbgym.") else None
