"""Inline content of Markdown blocks: words, links, code spans, footnotes and line breaks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from kbgym.corpus.blocks import Plain
from kbgym.errors import Missing

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST_INLINE = 20_000  # the library's inline rules are quadratic on hostile text; longer text is taken literally
_MARKUP = re.compile(r"[\\`*_\[\]<>&!~]")
_MARKS = re.compile(r"!?\[\[([^\[\]|\n]{1,300})(?:\|([^\[\]\n]{0,300}))?\]\]|\[\^([^\]\s]{1,40})\]")
_ROLE = re.compile(r"\{[\w:.+-]{1,40}\}$")  # MyST, the Markdown of Sphinx: {ref}`words <target>`
_ROLE_TARGET = re.compile(r"(?<!\s)\s*<([^<>]+)>$")
_LINKS = ("{doc}", "{ref}", "{numref}")
_ATTRIBUTE = re.compile(r"""\b(href|alt)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


@cache
def parser() -> MarkdownIt:
    """Return a CommonMark parser with tables and footnotes; `read_inline` runs its inline rules."""
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.footnote import footnote_plugin
    except ImportError:
        raise Missing("reading Markdown needs markdown-it-py; run: pip install 'kbgym[documents]'") from None
    found = MarkdownIt("commonmark").enable("table").use(footnote_plugin)
    found.core.ruler.disable(["inline", "footnote_tail"])
    found.inline.ruler.disable(["footnote_inline", "footnote_ref"])
    return found


@dataclass(slots=True)
class Inline:
    """A block's text; all positions refer to it. `lost` is the kind and text of every omission."""

    plain: Plain = field(default_factory=Plain)
    links: list[tuple[int, str]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    solid: list[tuple[int, int]] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)


def read_inline(content: str, where: Callable[[int], int], env: dict[str, Any]) -> Inline:
    """Return the text of a block; `where` maps characters of its content to offsets in the file."""
    found = Inline()
    if len(content) > MOST_INLINE or not _MARKUP.search(content):
        start = 0
        for line in content.split("\n"):
            found.plain.add(line, where(start))
            start += len(line) + 1
            if start <= len(content):
                found.breaks.append(len(found.plain))
                found.plain.add("\n", where(start - 1))
        return found
    children: list[Token] = []
    parser().inline.parse(content, parser(), env, children)
    at = 0
    role = ""
    for child, after in zip(children, [*children[1:], None], strict=True):
        match child.type:
            case "text" | "text_special" | "code_inline":
                written = child.markup if child.type == "text_special" else child.content
                place = content.find(written, at)
                place = at if place < 0 else place
                at = place + len(written)
                said = child.content
                if child.type == "text":
                    role = ""
                    if after is not None and after.type == "code_inline" and (mark := _ROLE.search(said)):
                        role, said = mark[0], said[: mark.start()]
                        found.lost.append(("directive", role))
                    _add_text(found, said, where(place))
                    continue
                said = said.lstrip("~!") if role else said
                aim = _ROLE_TARGET.search(said) if role else None
                if aim:
                    said = said[: aim.start()]
                    found.lost.append(("link target", aim[1]))
                if role in _LINKS:
                    target = aim[1] if aim else said
                    found.links.append((len(found.plain), target if role == "{doc}" else f"/{target}"))
                if child.type == "code_inline":
                    found.solid.append((len(found.plain), len(found.plain) + len(said)))
                found.plain.add(said, where(place))
                role = ""
            case "softbreak" | "hardbreak":
                at = max(at, content.find("\n", at) + 1)
                found.breaks.append(len(found.plain))
                found.plain.add(" ", where(max(at - 1, 0)))
            case "link_open":
                target = unquote(str(child.attrs.get("href", "")))
                found.links.append((len(found.plain), target))
                if child.markup != "autolink":
                    found.lost.append(("link target", f"{target} {child.attrs.get('title', '')}".strip()))
            case "image":
                said = " ".join(part.content for part in child.children or () if part.content)
                _described(found, said, where(at))
                found.lost.append(("image", f"{child.attrs.get('src', '')} {child.attrs.get('title', '')}".strip()))
            case "html_inline":
                _tag(found, child.content, where(max(content.find(child.content, at), 0)))
    return found


def _described(found: Inline, said: str, place: int) -> None:
    """Add the description of an image."""
    if said.strip():
        if len(found.plain) and not found.plain.text[-1].isspace():
            found.plain.add(" ", place)
        found.plain.add(said, place)


def _tag(found: Inline, tag: str, place: int) -> None:
    found.lost.append(("comment" if tag.startswith("<!--") else "tag", tag))
    if re.match(r"</?(?:br|p|div|li|tr|td|th)\b", tag, re.IGNORECASE):
        found.breaks.append(len(found.plain))
        found.plain.add(" ", place)
    for name, double, single in _ATTRIBUTE.findall(tag[:2_000]):
        said = unescape(double or single)
        if name.lower() == "alt":
            _described(found, said, place)
        else:
            found.links.append((len(found.plain), unquote(said)))


def _add_text(found: Inline, text: str, place: int) -> None:
    """Add words; `[[Page]]` and `[[Page|label]]` are links, footnote marks are notes."""
    if "[" not in text:
        found.plain.add(text, place)
        return
    at = 0
    for mark in _MARKS.finditer(text):
        found.plain.add(text[at : mark.start()], place + at)
        if mark[3]:
            found.notes.append((len(found.plain), mark[3]))
        else:
            found.links.append((len(found.plain), f"[[{mark[1].strip()}"))
            group = 2 if mark[2] else 1
            found.plain.add(mark[group], place + mark.start(group))
            if group == 2:
                found.lost.append(("link target", mark[1]))
        at = mark.end()
    found.plain.add(text[at:], place + at)


def places(content: str, text: str, lines: list[int], first: int) -> Callable[[int], int]:
    """Return a map from characters of a block's content to offsets in the file."""
    starts, found, at = [], [], 0
    for number, line in enumerate(content.split("\n"), first):
        begin, end = lines[min(number, len(lines) - 1)], lines[min(number + 1, len(lines) - 1)]
        column = text.find(line, begin, end)
        starts.append(at)
        found.append(begin if column < 0 else column)
        at += len(line) + 1
    if len(starts) == 1:
        return lambda position: found[0] + position

    def where(position: int) -> int:
        line = bisect_right(starts, position) - 1
        return found[line] + position - starts[line]

    return where
