"""Markdown into blocks, with markdown-it-py (CommonMark and tables).

The library finds the structure and says which lines a block covers; where inside them a sentence stands is found here,
by looking each piece of text up in its own lines. Front matter is left out, except for its title.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from kbgym.corpus.blocks import Block, Headings, Kind, Page, Plain, folded, row_text
from kbgym.errors import Missing

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_MARKUP = re.compile(r"[\\`*_\[\]<>&!~]")
_WIKI = re.compile(r"!?\[\[([^\[\]|\n]{1,300})(?:\|([^\[\]\n]{0,300}))?\]\]")
_NOTE = re.compile(r"\[\^[^\]\s]{1,40}\]")
MOST_INLINE = 20_000  # the library's inline rules are quadratic on hostile text; what is longer is taken as it is


@cache
def _parser() -> MarkdownIt:
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise Missing("reading Markdown needs markdown-it-py; run: pip install 'kbgym[corpus]'") from None
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.disable("inline")
    return parser


def read_markdown(text: str, keep_code: bool = False) -> Page:
    return _Reader(text, keep_code).read()


class _Reader:
    def __init__(self, text: str, keep_code: bool) -> None:
        front = _FRONT.match(text)
        title = _TITLE.search(front[1] or "") if front else None
        self.headings = Headings(title[1].strip("\"'") if title else "")
        self.base = front.end() if front else 0
        self.text = text
        self.keep_code = keep_code
        self.page = Page()
        self.env: dict[str, Any] = {}
        self.lists: list[Block | None] = []
        self.last: Block | None = None
        self.lines = [self.base]
        for line in text[self.base :].split("\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)

    def read(self) -> Page:
        tokens = _parser().parse(self.text[self.base :], self.env)
        place = 0
        while place < len(tokens):
            place = self._token(tokens, place)
        self.page.title = self.headings.title
        return self.page

    def _token(self, tokens: list[Token], place: int) -> int:
        """Read one construct; gives the place after it."""
        token = tokens[place]
        match token.type:
            case "heading_open":
                heading = folded(self._inline(tokens[place + 1])[0].text)
                self.headings.enter(int(token.tag[1:]), heading)
                self.last = None
                return place + 3
            case "inline":
                self._text(token)
            case "bullet_list_open" | "ordered_list_open":
                introduced = self.last
                if introduced is not None and _introduces(introduced, bool(self.lists)):
                    introduced.introduces = True
                else:
                    introduced = self.lists[-1] if self.lists else None
                self.lists.append(introduced)
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
                self.last = None
            case "list_item_open":
                self.last = None
            case "fence" | "code_block":
                self._code(token)
            case "html_block":
                self._html(token)
            case "table_open":
                return self._table(tokens, place)
        return place + 1

    def _add(self, kind: Kind, text: Plain, links: list[tuple[int, str]], **more: Any) -> Block:
        under = self.lists[-1] if self.lists else None
        block = Block(kind, text, self.headings.sections, under, links=links, **more)
        self.page.blocks.append(block)
        return block

    def _text(self, token: Token) -> None:
        plain, links = self._inline(token)
        if plain.text.strip():
            self.last = self._add("item" if self.lists else "sentence", plain, links)

    def _code(self, token: Token) -> None:
        self.page.code_blocks += 1
        if self.keep_code and token.content.strip():
            plain = Plain()
            plain.add(token.content, 0)
            self._add("code", plain, [], span=self._span(token), whole=True)

    def _html(self, token: Token) -> None:
        from kbgym.corpus.hypertext import read_html

        start, end = self._span(token)
        for block in read_html(self.text[start:end], start).blocks:
            block.sections = (*self.headings.sections, *block.sections)
            self.page.blocks.append(block)

    def _table(self, tokens: list[Token], place: int) -> int:
        headers: list[str] = []
        cells: list[str] = []
        links: list[tuple[int, str]] = []
        in_head, span = False, (0, 0)
        while tokens[place].type != "table_close":
            token = tokens[place]
            match token.type:
                case "thead_open":
                    in_head = True
                case "thead_close":
                    in_head, headers = False, cells
                case "tr_open":
                    cells, links = [], []
                    span = self._span(token) if token.map else span
                case "inline":
                    plain, found = self._inline(token)
                    cells.append(folded(plain.text))
                    links += [(0, target) for _, target in found]
                case "tr_close" if not in_head and any(cells):
                    row = Plain()
                    row.add(row_text(headers, cells), span[0])
                    self._add("row", row, links, span=span, whole=True)
            place += 1
        self.last = None
        return place + 1

    def _span(self, token: Token) -> tuple[int, int]:
        first, last = token.map or (0, 0)
        return self.lines[first], max(self.lines[first], min(self.lines[last] - 1, len(self.text)))

    # -- inside a block -----------------------------------------------------------------------------------------------

    def _inline(self, token: Token) -> tuple[Plain, list[tuple[int, str]]]:
        """A block's text without markup, and the links in it."""
        content = token.content
        where = self._places(token)
        plain = Plain()
        if len(content) > MOST_INLINE or not _MARKUP.search(content):
            start = 0
            for line in content.split("\n"):
                plain.add(line + "\n", where(start))
                start += len(line) + 1
            return plain, []
        links: list[tuple[int, str]] = []
        at = 0
        parser = _parser()
        children: list[Token] = []
        parser.inline.parse(content, parser, self.env, children)
        for child in children:
            match child.type:
                case "text" | "text_special" | "code_inline":
                    written = child.markup if child.type == "text_special" else child.content
                    found = content.find(written, at)
                    found = at if found < 0 else found
                    plain.add(child.content, where(found))
                    at = found + len(written)
                case "softbreak" | "hardbreak":
                    at = max(at, content.find("\n", at) + 1)
                    plain.add(" ", where(max(at - 1, 0)))
                case "link_open":
                    links.append((len(plain), unquote(str(child.attrs.get("href", "")))))
        return _without_wiki(plain, links) if "[" in plain.text else (plain, links)

    def _places(self, token: Token) -> Any:
        """From a character of a block's content to its place in the file."""
        first = (token.map or (0, 0))[0]
        starts, places, at = [], [], 0
        for number, line in enumerate(token.content.split("\n"), first):
            begin, end = self.lines[number], self.lines[min(number + 1, len(self.lines) - 1)]
            column = self.text.find(line, begin, end)
            starts.append(at)
            places.append(begin if column < 0 else column)
            at += len(line) + 1
        if len(starts) == 1:
            return lambda position: places[0] + position

        def where(position: int) -> int:
            line = bisect_right(starts, position) - 1
            return places[line] + position - starts[line]

        return where


def _introduces(block: Block, in_item: bool) -> bool:
    """Whether a list right after this text belongs to it: it ends with a colon, or is an item that is no sentence."""
    text = block.text.text.rstrip()
    return text.endswith(":") or (in_item and not text.endswith((".", "!", "?", ";")))


def _without_wiki(plain: Plain, links: list[tuple[int, str]]) -> tuple[Plain, list[tuple[int, str]]]:
    """`[[Page]]` and `[[Page|label]]` as their words, with a link; footnote marks as nothing."""
    text = plain.text
    marks = sorted([*_WIKI.finditer(text), *_NOTE.finditer(text)], key=lambda match: match.start())
    if not marks:
        return plain, links
    made, at = Plain(), 0
    found: list[tuple[int, str]] = []
    rest = list(reversed(links))
    for match in marks:
        if match.start() < at:
            continue
        while rest and rest[-1][0] <= match.start():
            position, target = rest.pop()
            found.append((len(made) + max(0, position - at), target))
        _copy(made, plain, at, match.start())
        if match.re is _WIKI:
            found.append((len(made), f"[[{match[1].strip()}"))
            group = 2 if match[2] else 1
            made.add(match[group], plain.place(match.start(group)))
        at = match.end()
    found += [(len(made) + max(0, position - at), target) for position, target in reversed(rest)]
    _copy(made, plain, at, len(text))
    return made, found


def _copy(made: Plain, plain: Plain, start: int, end: int) -> None:
    """Append a stretch of another text, part by part, so that its places stay exact."""
    for first, last in plain.parts(start, end):
        made.add(plain.text[first:last], plain.place(first))
