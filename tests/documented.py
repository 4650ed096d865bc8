"""Every command line on the site, in the order of its pages: in blocks, indented, in a sentence, in a verb's help."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from kbgym.cli.main import app
from kbgym.cli.settings import PlaceArgument, verb_settings

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_PIECES = re.compile(
    r"^```(?P<language>\w*)\n(?P<block>.*?)^```|^    (?P<indented>[^\n]+)$|`(?P<sentence>kbgym [^`]+)`",
    re.MULTILINE | re.DOTALL,
)
_OURS = re.compile(r"(?:^|.* -- )(kbgym [a-z-]+(?: .*)?)$")
_OTHERS = re.compile(r"(claude|codex|docker|inspect|pip|pipx|uvx|vf-eval) ")


class Line(NamedTuple):
    """A command as it is typed, and what the page says that it prints."""

    text: str
    printed: str = ""


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [piece["block"] for piece in _PIECES.finditer(text) if piece["language"] == language]


def commands(page: Path) -> list[Line]:
    """Return the commands that a reader of the page types: `kbgym` lines, and every line of `sh` blocks."""
    found = []
    for line, language in _lines(page):
        ours = _OURS.match(line.text)
        if ours or (language == "sh" and not line.text.startswith(("#", "make "))):
            found.append(line._replace(text=ours[1] if ours else line.text))
    return found


def of_other_programs(page: Path) -> list[str]:
    """Lines that start something else, which is theirs to test."""
    return [line.text for line, _ in _lines(page) if _OTHERS.match(line.text) and not _OURS.match(line.text)]


def mentions(page: Path) -> list[str]:
    """Return commands in sentences that are incomplete: a verb alone, or one with a placeholder."""
    return [text for text in _within(page) if not _is_whole(text)]


def helped() -> list[Line]:
    """The examples in the help of every verb."""
    told = "\n".join(f"{command.help}\n{command.epilog or ''}" for command in _verbs(app))
    return [Line(match[1]) for match in re.finditer(r"^ *(?:\S.* -- )?(kbgym .*)$", told, re.MULTILINE)]


PLACES = ("run", "world", "documents")


def parsed(line: str, whole: bool) -> None:
    """Fails with click's own sentence where the command line would not take the line."""
    words = [word for word in shlex.split(line.partition(" > ")[0], comments=True)[1:] if word != "..."]
    command, name = app, "kbgym"
    while isinstance(command, click.Group) and words and not re.search(r"\||^[A-Z-]", words[0]):
        name, command, words = words[0], command.get_command(click.Context(command), words[0]), words[1:]
        assert command is not None, f"there is no {name}: {line}"
    context = click.Context(command, info_name=name, resilient_parsing=not whole)
    given, _, _ = command.make_parser(context).parse_args(list(words))
    for option in command.params:
        value = given.get(option.name)
        if value in (None, ()) or not isinstance(value, str | tuple):
            # A project's kbgym.toml gives its places.
            place = any(isinstance(one, PlaceArgument) for one in command.params)
            given_by_project = (isinstance(option, click.Argument) and place) or getattr(option, "key", "") in PLACES
            assert not (whole and option.required) or given_by_project, f"{option.name} is missing: {line}"
        elif not isinstance(option.type, click.Path) and not str(value).isupper():  # a path may have yet to be made
            option.type_cast_value(context, value)
    for text in given["set"] if isinstance(given.get("set"), list) else ():
        key, equals, value = text.partition("=")
        setting = verb_settings(command).get(key if equals else "set")
        assert setting is not None, f"there is no setting {key}: {line}"
        if equals and not value.isupper():
            setting.type_cast_value(context, value)


def _lines(page: Path) -> Iterator[tuple[Line, str]]:
    """With the kind of block each stands in; a block without a prompt has nothing but commands."""
    for piece in _PIECES.finditer(page.read_text(encoding="utf-8").replace("\\\n", " ")):
        if piece["sentence"]:
            text = " ".join(piece["sentence"].split())
            if _is_whole(text):
                yield Line(text), "sentence"
        elif piece["indented"]:
            yield Line(" ".join(piece["indented"].split())), "indented"
        elif piece["language"] in ("sh", "console"):
            prompt = "$ " if piece["block"].startswith("$ ") else ""
            for typed in re.split(rf"^{re.escape(prompt)}", piece["block"], flags=re.MULTILINE)[1:]:
                text, _, printed = typed.partition("\n")
                if text.strip():
                    yield Line(" ".join(text.split()), printed), piece["language"]


def _within(page: Path) -> list[str]:
    pieces = _PIECES.finditer(page.read_text(encoding="utf-8"))
    return [" ".join(piece["sentence"].split()) for piece in pieces if piece["sentence"]]


def _is_whole(text: str) -> bool:
    """Return True if the text could be typed: it names its arguments and contains no placeholder."""
    words = text.split()
    if re.search(r"\.\.\.|\|| [A-Z]+( |$)", text) or not any(re.search(r"[/-]", word) for word in words[2:]):
        return False
    try:
        parsed(text, whole=True)
    except (AssertionError, click.ClickException):
        return False
    return True


def _verbs(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if isinstance(command, click.Group):
            yield command
            yield from _verbs(command)
        elif command is not None and not command.hidden:
            yield command
