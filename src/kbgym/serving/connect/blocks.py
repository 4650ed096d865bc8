"""A table of a TOML file and a block of a YAML file, changed as lines: the lines around them stay as they are."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from kbgym.errors import BadInput

_BY_HAND = "it is written there in a way that only a person can change; do it by hand."


# -- TOML --------------------------------------------------------------------------------------------------------------


def toml_with(text: str, path: tuple[str, ...], value: dict[str, Any]) -> str:
    """The text with a table, at its place where there was one, else at the end."""
    body = [
        f"[{'.'.join(path)}]",
        *(f"{name} = {json.dumps(item, ensure_ascii=False)}" for name, item in value.items()),
    ]
    lines = text.splitlines(keepends=True)
    line_end = "\r\n" if "\r\n" in text else "\n"
    block = [line + line_end for line in body]
    found = _toml_block(lines, path)
    if found is not None:
        return "".join(lines[: found[0]] + block + lines[found[1] :])
    if toml_value(text, path) is not None:
        raise BadInput(_BY_HAND)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += line_end
    gap = [line_end] if lines else []
    return "".join(lines + gap + block)


def toml_without(text: str, path: tuple[str, ...]) -> str:
    lines = text.splitlines(keepends=True)
    found = _toml_block(lines, path)
    if found is None:
        if toml_value(text, path) is not None:
            raise BadInput(_BY_HAND)
        return text
    begin, end = found
    if begin and not lines[begin - 1].strip() and (end == len(lines) or not lines[end].strip()):
        begin -= 1  # the empty line that came with it
    return "".join(lines[:begin] + lines[end:])


def toml_value(text: str, path: tuple[str, ...] = ()) -> Any:
    """What stands at a path of names, None where nothing does."""
    try:
        found: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"it is no TOML: {error}.") from None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _toml_block(lines: list[str], path: tuple[str, ...]) -> tuple[int, int] | None:
    """The lines of a table and of those below it; comments before the next table are that one's."""
    names = r"\s*\.\s*".join(map(re.escape, path))
    own = re.compile(rf"\s*\[\s*{names}\s*(\.[^\]]*)?\]\s*(#.*)?$")
    heads = [number for number, line in enumerate(lines) if re.match(r"\s*\[", line) and "=" not in line.split("#")[0]]
    mine = [number for number in heads if own.match(lines[number].rstrip("\r\n"))]
    if not mine:
        return None
    after = [number for number in heads if number > mine[-1]]
    end = after[0] if after else len(lines)
    while end > mine[-1] + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return mine[0], end


# -- YAML --------------------------------------------------------------------------------------------------------------


def yaml_with(text: str, path: tuple[str, ...], value: dict[str, Any]) -> str:
    """The text with a block below a name that stands at the margin."""
    outer, name = path
    lines = text.splitlines(keepends=True)
    line_end = "\r\n" if "\r\n" in text else "\n"
    place = _yaml_line(lines, "", outer)
    if place is None:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += line_end
        return "".join([*lines, f"{outer}:{line_end}", *_yaml_block(name, value, "  ", line_end)])
    rest = lines[place].split(":", 1)[1].split("#")[0].strip()
    if rest not in ("", "{}"):
        raise BadInput(_BY_HAND)
    if rest:
        lines[place] = f"{outer}:{line_end}"
    indent = _yaml_indent(lines, place)
    block = _yaml_block(name, value, indent, line_end)
    found = _yaml_line(lines, indent, name, place + 1)
    if found is not None:
        return "".join(lines[:found] + block + lines[_yaml_end(lines, found, indent) :])
    end = _yaml_end(lines, place, "")
    if not lines[end - 1].endswith("\n"):
        lines[end - 1] += line_end
    return "".join(lines[:end] + block + lines[end:])


def yaml_without(text: str, path: tuple[str, ...]) -> str:
    outer, name = path
    lines = text.splitlines(keepends=True)
    place = _yaml_line(lines, "", outer)
    if place is None:
        return text
    indent = _yaml_indent(lines, place)
    found = _yaml_line(lines, indent, name, place + 1)
    if found is None:
        return text
    lines = lines[:found] + lines[_yaml_end(lines, found, indent) :]
    if _yaml_end(lines, place, "") == place + 1:
        del lines[place]
    return "".join(lines)


def _yaml_block(name: str, value: dict[str, Any], indent: str, line_end: str) -> list[str]:
    unit = indent or "  "
    # JSON is YAML, so a list or a text needs no style of its own.
    items = [f"{indent}{unit}{key}: {json.dumps(item, ensure_ascii=False)}{line_end}" for key, item in value.items()]
    return [f"{indent}{name}:{line_end}", *items]


def _yaml_line(lines: list[str], indent: str, name: str, start: int = 0) -> int | None:
    """The line of a name at an indent; below `start`, before the next name at the margin."""
    for number in range(start, len(lines)):
        line = lines[number]
        if start and line[0] not in " \t#\r\n-":
            return None
        if re.match(rf"{indent}(['\"]?){re.escape(name)}\1\s*:(\s|$)", line):
            return number
    return None


def _yaml_indent(lines: list[str], place: int) -> str:
    for line in lines[place + 1 :]:
        if line.strip() and not line.lstrip().startswith("#"):
            return line[: len(line) - len(line.lstrip(" "))] or "  "
    return "  "


def _yaml_end(lines: list[str], place: int, indent: str) -> int:
    """The line behind a block: its last line that is neither empty nor a comment, plus one."""
    end = place + 1
    for number in range(place + 1, len(lines)):
        line = lines[number]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(line) - len(line.lstrip(" ")) <= len(indent):
            break
        end = number + 1
    return end
