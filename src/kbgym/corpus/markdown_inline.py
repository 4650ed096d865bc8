"""Inline content of Markdown blocks: words, links, code spans, footnotes and line breaks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from kbgym.errors import Missing

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST_INLINE = 20_000  # the library's inline rules are quadratic on hostile text; longer text is taken literally
_MARKUP = re.compile(r"[\\`*_\[\]<>&!~]")
_MARKS = re.compile(r"!?\[\[([^\[\]|\n]{1,300})(?:\|([^\[\]\n]{0,300}))?\]\]|\[\^([^\]\s]{1,40})\]")
_ATTRIBUTE = re.compile(r"""\b(href|alt)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


@cache
def parser() -> MarkdownIt:
    """Return a CommonMark parser with tables and footnotes; `read_inline` runs its inline rules."""
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.footnote import footnote_plugin
        from mdit_py_plugins.myst_role import myst_role_plugin
    except ImportError:
        raise Missing("reading Markdown needs markdown-it-py; run: pip install 'kbgym[documents]'") from None
    found = MarkdownIt("commonmark").enable("table").use(footnote_plugin).use(myst_role_plugin)
    found.core.ruler.disable(["inline", "footnote_tail"])
    found.inline.ruler.disable(["footnote_inline", "footnote_ref"])
    return found


@dataclass(slots=True)
class Inline:
    """A block's text; all positions refer to it. `lost` is the kind and text of every omission."""

    text: str = ""
    links: list[tuple[int, str]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    solid: list[tuple[int, int]] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)


def read_inline(content: str, env: dict[str, Any]) -> Inline:
    """Return the text of a block."""
    found = Inline()
    if len(content) > MOST_INLINE or not _MARKUP.search(content):
        found.text = content
        found.breaks = [at + 1 for at, character in enumerate(content) if character == "\n"]
        return found
    children: list[Token] = []
    parser().inline.parse(content, parser(), env, children)
    for child in children:
        match child.type:
            case "text":
                _add_text(found, child.content)
            case "text_special":
                found.text += child.content
            case "code_inline":
                _add_code(found, child.content)
            case "myst_role":
                _role(found, child.meta["name"], child.content.strip("`"))
            case "softbreak" | "hardbreak":
                found.breaks.append(len(found.text))
                found.text += " "
            case "link_open":
                target = unquote(str(child.attrs.get("href", "")))
                found.links.append((len(found.text), target))
                if child.markup != "autolink":
                    found.lost.append(("link target", f"{target} {child.attrs.get('title', '')}".strip()))
            case "image":
                _described(found, " ".join(part.content for part in child.children or () if part.content))
                found.lost.append(("image", f"{child.attrs.get('src', '')} {child.attrs.get('title', '')}".strip()))
            case "html_inline":
                _tag(found, child.content)
    return found


def _add_code(found: Inline, said: str) -> None:
    found.solid.append((len(found.text), len(found.text) + len(said)))
    found.text += said


def _role(found: Inline, name: str, said: str) -> None:
    """Add the words of a MyST role, the Markdown of Sphinx: {ref}`words <target>`."""
    words, _, target = said.removesuffix(">").rpartition("<") if said.endswith(">") else (said, "", "")
    words = (words.strip() or target).lstrip("~!")
    found.lost += [("directive", name), *([("link target", target)] if target else [])]
    if name in ("doc", "ref", "numref"):
        found.links.append((len(found.text), f"{'' if name == 'doc' else '/'}{target or words}"))
    _add_code(found, words)


def _described(found: Inline, said: str) -> None:
    """Add the description of an image."""
    if said.strip():
        found.text += f"{'' if not found.text or found.text[-1].isspace() else ' '}{said}"


def _tag(found: Inline, tag: str) -> None:
    found.lost.append(("comment" if tag.startswith("<!--") else "tag", tag))
    if re.match(r"</?(?:br|p|div|li|tr|td|th)\b", tag, re.IGNORECASE):
        found.breaks.append(len(found.text))
        found.text += " "
    for name, double, single in _ATTRIBUTE.findall(tag[:2_000]):
        said = unescape(double or single)
        if name.lower() == "alt":
            _described(found, said)
        else:
            found.links.append((len(found.text), unquote(said)))


def _add_text(found: Inline, text: str) -> None:
    """Add words; `[[Page]]` and `[[Page|label]]` are links, footnote marks are notes."""
    at = 0
    for mark in _MARKS.finditer(text) if "[" in text else ():
        found.text += text[at : mark.start()]
        if mark[3]:
            found.notes.append((len(found.text), mark[3]))
        else:
            found.links.append((len(found.text), f"[[{mark[1].strip()}"))
            found.text += mark[2] or mark[1]
            if mark[2]:
                found.lost.append(("link target", mark[1]))
        at = mark.end()
    found.text += text[at:]
