"""JSON with comments, changed at one place: everything that is not changed keeps its bytes.

It reads what editors accept: comments and a comma after the last member too.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from kbgym.errors import BadInput


class PlacedValue(msgspec.Struct, frozen=True):
    """A value and where it stands; `key` is where its name begins, where it is a member of an object."""

    value: Any
    start: int
    end: int
    key: int = -1
    members: dict[str, PlacedValue] = {}


def read(text: str) -> PlacedValue:
    """The one value a text holds; a text of nothing is an empty object."""
    scanner = _Scanner(text)
    try:
        if scanner.space() == len(text):
            return PlacedValue({}, len(text), len(text))
        node = scanner.value()
        if scanner.space() != len(text):
            raise ValueError
    except (ValueError, IndexError, RecursionError):
        line = text.count("\n", 0, scanner.at) + 1
        raise BadInput(f"it is no JSON that can be read, at line {line}.") from None
    return node


def with_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with the value at a path of names, put there or put in place of another."""
    node = read(text)
    if node.start == node.end:
        text, node = text + "{}\n", read(text + "{}\n")
    around = node
    for number, name in enumerate(path):
        if not isinstance(node.value, dict):
            raise BadInput(f"{'.'.join(path[:number]) or 'the file'} is no object there.")
        if name not in node.members:
            for inner in reversed(path[number + 1 :]):
                value = {inner: value}
            return _inserted(text, node, name, value)
        around, node = node, node.members[name]
    if json.dumps(node.value) == json.dumps(value):
        return text
    on_a_line = "\n" not in text[around.start : node.key]
    written = json.dumps(value, ensure_ascii=False) if on_a_line else _written(text, value, _indent(text, node.key))
    return text[: node.start] + written + text[node.end :]


def without_member(text: str, path: tuple[str, ...]) -> str:
    """The text without the member at a path, and without the objects around it that it leaves empty."""
    node = read(text)
    for name in path[:-1]:
        node = node.members.get(name, PlacedValue(None, 0, 0))
    gone = node.members.get(path[-1])
    if gone is None:
        return text
    if len(node.members) == 1:
        if len(path) > 1:
            return without_member(text, path[:-1])
        return text[: node.start] + "{}" + text[node.end :]
    return _removed(text, node, gone)


def _inserted(text: str, node: PlacedValue, name: str, value: Any) -> str:
    unit, line_end = _unit(text), _line_end(text)
    if not node.members:
        outer = _indent(text, node.key if node.key >= 0 else node.start)
        member = f"{json.dumps(name)}: {_written(text, value, outer + unit)}"
        inside = text[node.start + 1 : node.end - 1].rstrip()  # comments
        return f"{text[: node.start]}{{{inside}{line_end}{outer}{unit}{member}{line_end}{outer}}}{text[node.end :]}"
    last = list(node.members.values())[-1]
    if "\n" not in text[node.start : last.key]:
        member = f"{json.dumps(name)}: {json.dumps(value)}"
        return f"{text[: last.end]}, {member}{text[last.end :]}"
    indent = _indent(text, last.key)
    member = f"{json.dumps(name)}: {_written(text, value, indent)}"
    scanner = _Scanner(text, last.end)
    comma = scanner.space()
    trails = text[comma] == ","
    if not trails:
        text = f"{text[: last.end]},{text[last.end :]}"
        comma = last.end
    # A comment behind the last member stays behind it.
    at = _Scanner(text, comma + 1).rest_of_line()
    return f"{text[:at]}{line_end}{indent}{member}{',' if trails else ''}{text[at:]}"


def _removed(text: str, node: PlacedValue, gone: PlacedValue) -> str:
    members = list(node.members.values())
    number = members.index(gone)
    behind = _Scanner(text, gone.end)
    comma = behind.space()
    end = comma + 1 if text[comma] == "," else gone.end
    begin = gone.key
    while begin > 0 and text[begin - 1] in " \t":
        begin -= 1
    if begin > 0 and text[begin - 1] == "\n":
        begin -= 2 if text[begin - 2 : begin] == "\r\n" else 1
    text = text[:begin] + text[end:]
    if number == len(members) - 1 and end == gone.end:  # the comma before it was there for its sake
        before = members[number - 1].end
        comma = _Scanner(text, before).space()
        text = text[:comma] + text[comma + 1 :]
    return text


def _written(text: str, value: Any, indent: str) -> str:
    """A value over several lines, as the rest of the text is written."""
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_line_end(text)}{indent}".join(lines)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str, at: int) -> str:
    """The white space before the line on which something stands."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    for line in text.splitlines():
        if line.lstrip(" \t").startswith('"') and line[0] in " \t":
            return line[: len(line) - len(line.lstrip(" \t"))]
    return "  "


class _Scanner:
    def __init__(self, text: str, at: int = 0) -> None:
        self.text, self.at = text, at

    def space(self) -> int:
        """Go over white space and comments."""
        while self.at < len(self.text):
            if self.text[self.at] in " \t\r\n\ufeff":
                self.at += 1
            elif self.text.startswith("//", self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text.startswith("/*", self.at):
                self.at = self.text.index("*/", self.at) + 2
            else:
                break
        return self.at

    def rest_of_line(self) -> int:
        """Where this line ends, if nothing but white space and comments stands on it; else here."""
        begin, end = self.at, self.text.find("\n", self.at)
        self.space()
        if end < 0 or self.at < end:
            return begin
        return end - 1 if self.text[end - 1] == "\r" else end

    def value(self, key: int = -1) -> PlacedValue:
        begin = self.space()
        if self.text[begin] == "{":
            return self._object(begin, key)
        if self.text[begin] == "[":
            values = []
            self.at += 1
            while self.text[self.space()] != "]":
                values.append(self.value().value)
                self._comma("]")
            self.at += 1
            return PlacedValue(values, begin, self.at, key)
        value, self.at = json.JSONDecoder(strict=False).raw_decode(self.text, begin)
        return PlacedValue(value, begin, self.at, key)

    def _object(self, begin: int, key: int) -> PlacedValue:
        members: dict[str, PlacedValue] = {}
        self.at += 1
        while self.text[self.space()] != "}":
            name = self.value()
            if not isinstance(name.value, str) or self.text[self.space()] != ":":
                raise ValueError
            self.at += 1
            members[name.value] = self.value(name.start)
            self._comma("}")
        self.at += 1
        return PlacedValue({name: node.value for name, node in members.items()}, begin, self.at, key, members)

    def _comma(self, end: str) -> None:
        if self.text[self.space()] == ",":
            self.at += 1
        elif self.text[self.at] != end:
            raise ValueError
