"""Pieces of Markdown text, for readers that write what they found as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbgym.corpus.blocks import folded

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&])")
_BLOCK_START = re.compile(r"^(\s{0,100})(#{1,6}(?=\s)|[-+>=](?=\s|$)|-{2,}|={2,}|\d{1,9}+(?=[.)]\s))")


def escaped(text: str) -> str:
    """Return a text without meaning as Markdown."""
    return _SPECIAL.sub(r"\\\1", text)


def guarded(line: str) -> str:
    """Return a line that begins no block but a paragraph."""
    return _BLOCK_START.sub(lambda found: f"{found[0]}\\" if found[2][0].isdigit() else f"{found[1]}\\{found[2]}", line)


def code_span(text: str) -> str:
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{room}{folded(text) or ' '}{room}{ticks}"


def fenced(text: str, language: str = "") -> list[str]:
    """Return a code block."""
    ticks = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return [ticks + language, *text.split("\n"), ticks, ""]


def indented(lines: Sequence[str], mark: str) -> list[str]:
    """Return lines as one item of a list."""
    if not any(lines):
        return []
    return [f"{mark if not number else ' ' * len(mark)}{line}" if line else "" for number, line in enumerate(lines)]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table whose cells are Markdown; `head` may be empty."""
    width = max(map(len, [head, *rows]))
    lines = [head or [""] * width, ["---"] * width, *rows]
    return [*(f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in lines), ""]
