"""HTML into blocks, by a scanner that reads every character once.

The standard library's parser takes quadratic to cubic time on hostile input (a hundred kilobytes of `<a b="` take it
minutes), and the fast libraries do not say where in the file a text stands; so the few rules needed are here: tags,
comments, raw text, entities. What is never closed ends with the file, as browsers have it. Scripts, styles, navigation
and forms are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import unquote

from kbgym.corpus.blocks import Block, Broken, Headings, Kind, Page, Plain, folded, row_text

MOST_DEPTH = 1_000

_NAME = re.compile(r"/?[a-zA-Z][^\s/>\"'=<]*")
_STOP = re.compile(r"[>\"']")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""", re.IGNORECASE)
_RAW = ("script", "style", "textarea", "title", "xmp", "noframes")
_LEFT_OUT = frozenset("script style template noscript svg math nav form select button iframe object head".split())
_NOT_CLOSED = frozenset(
    "p li dt dd td th tr thead tbody tfoot option area base br col embed hr img input link meta source track wbr"
    " param".split()
)
_BLOCKS = frozenset(
    "p div section article main header footer aside blockquote figure figcaption address details summary ul ol li dl"
    " dt dd table caption thead tbody tfoot tr td th pre h1 h2 h3 h4 h5 h6 hr br body html fieldset".split()
)


class _Tag:
    __slots__ = ("attributes", "end", "name", "place")

    def __init__(self, name: str, place: int, attributes: str, end: bool) -> None:
        self.name, self.place, self.attributes, self.end = name, place, attributes, end


def _scan(text: str) -> Iterator[_Tag | tuple[int, int]]:
    """Tags, and the ranges of text between them."""
    at, size = 0, len(text)
    while at < size:
        open_ = text.find("<", at)
        if open_ < 0:
            yield at, size
            return
        if open_ > at:
            yield at, open_
        if text.startswith("<!--", open_):
            at = _after(text, "-->", open_ + 4)
        elif text.startswith(("<!", "<?"), open_):
            at = _after(text, ">", open_)
        elif name := _NAME.match(text, open_ + 1):
            at = _tag_end(text, name.end())
            tag = _Tag(name[0].lstrip("/").lower(), open_, text[name.end() : at], name[0].startswith("/"))
            yield tag
            if not tag.end and tag.name in _RAW:
                close = re.compile(f"</{tag.name}", re.IGNORECASE).search(text, at)
                until = close.start() if close else size
                yield at, until
                at = until
        else:
            yield open_, open_ + 1
            at = open_ + 1


def _after(text: str, what: str, at: int) -> int:
    found = text.find(what, at)
    return len(text) if found < 0 else found + len(what)


def _tag_end(text: str, at: int) -> int:
    """Behind the `>` that closes a tag; one in quotes does not count."""
    while stop := _STOP.search(text, at):
        if stop[0] == ">":
            return stop.end()
        at = text.find(stop[0], stop.end()) + 1
        if not at:
            break
    return len(text)


def read_html(text: str, base: int = 0, keep_code: bool = False) -> Page:
    """The blocks of an HTML text that starts at `base` of its file."""
    reader = _Reader(text, base, keep_code)
    for found in _scan(text):
        if isinstance(found, _Tag):
            reader.tag(found)
        else:
            reader.text_range(*found)
    return reader.finish()


class _Reader:
    def __init__(self, text: str, base: int, keep_code: bool) -> None:
        self.text, self.base, self.keep_code = text, base, keep_code
        self.page = Page()
        self.headings = Headings()
        self.named = ""  # the <title>
        self.depth = 0
        self.skipping: list[str] = []
        self.plain = Plain()
        self.links: list[tuple[int, str]] = []
        self.lists: list[Block | None] = []
        self.last: Block | None = None
        self.pre = False
        self.headers: list[str] = []
        self.cells: list[str] | None = None
        self.row_links: list[tuple[int, str]] = []
        self.row_start = 0
        self.row_of_headers = True

    def text_range(self, start: int, end: int) -> None:
        if self.skipping == ["head", "title"] or self.skipping == ["title"]:
            self.named = self.named or folded(unescape(self.text[start:end][:1_000]))
        if self.skipping:
            return
        at = start
        for entity in _ENTITY.finditer(self.text, start, end):
            self.plain.add(self.text[at : entity.start()], self.base + at)
            self.plain.add(unescape(entity[0]), self.base + entity.start())
            at = entity.end()
        self.plain.add(self.text[at:end], self.base + at)

    def tag(self, tag: _Tag) -> None:
        name = tag.name
        if name not in _NOT_CLOSED and not tag.attributes.endswith("/>"):
            self.depth = max(0, self.depth + (-1 if tag.end else 1))
            if self.depth > MOST_DEPTH:
                raise Broken(f"its elements are nested more than {MOST_DEPTH:,} deep")
        if self.skipping:
            if tag.end and name in self.skipping:
                del self.skipping[self.skipping.index(name) :]
            elif name == "body":
                self.skipping = []
            elif not tag.end and (name in _LEFT_OUT or name == "title") and len(self.skipping) < 50:
                self.skipping.append(name)
            return
        if not tag.end and (name in _LEFT_OUT or name == "title"):
            self.flush()
            if not tag.attributes.endswith("/>"):
                self.skipping = [name]
        elif name == "a" and not tag.end:
            href = _HREF.search(tag.attributes[:2_000])
            if href:
                self.links.append((len(self.plain), unquote(unescape(href[1] or href[2] or href[3] or ""))))
        elif name in ("br", "img", "wbr") or (name not in _BLOCKS and self.cells is None):
            if name == "br":
                self.plain.add("\n", self.base + tag.place)
        elif self.cells is not None and name not in ("td", "th", "tr", "table", "tbody", "thead", "tfoot"):
            self.plain.add(" ", self.base + tag.place)
        elif name in _BLOCKS:
            self._block(tag)

    def _block(self, tag: _Tag) -> None:
        name = tag.name
        if name in ("td", "th"):
            self._cell()
            if not tag.end and self.cells is not None:
                self.row_of_headers = self.row_of_headers and name == "th"
            return
        if name in ("tr", "table", "tbody", "thead", "tfoot"):
            self._row(tag)
            return
        if name[0] == "h" and name[1:].isdigit():
            if tag.end:
                heading = folded(self.plain.text)
                self.plain, self.links, self.last = Plain(), [], None
                if heading:
                    self.headings.enter(int(name[1:]), heading)
            else:
                self.flush()
            return
        self.flush(tag.place)
        if name in ("ul", "ol"):
            if tag.end and self.lists:
                self.lists.pop()
                self.last = None
            elif not tag.end and len(self.lists) < MOST_DEPTH:
                self._open_list()
        elif name == "li":
            self.last = None
        elif name == "pre":
            self.pre = not tag.end

    def _open_list(self) -> None:
        introduced = self.last
        if introduced is not None and introduced.text.text.rstrip().endswith(":"):
            introduced.introduces = True
        else:
            introduced = self.lists[-1] if self.lists else None
        self.lists.append(introduced)

    def _cell(self) -> None:
        """A cell ends where the next one, or its row, does."""
        if self.cells is not None:
            if cell := folded(self.plain.text):
                self.cells.append(cell)
            elif len(self.plain):
                self.cells.append("")
            self.row_links += self.links
            self.plain, self.links = Plain(), []

    def _row(self, tag: _Tag) -> None:
        if self.cells is None:
            self.flush()
        else:
            self._cell()
            if any(self.cells):
                if self.row_of_headers:
                    self.headers = self.cells
                else:
                    row = Plain()
                    row.add(row_text(self.headers, self.cells), self.base + self.row_start)
                    span = (self.base + self.row_start, self.base + tag.place)
                    links = [(0, target) for _, target in self.row_links]
                    self._add("row", row, links, span, whole=True)
            self.cells = None
        if tag.name == "table":
            self.headers = []
        if tag.name == "tr" and not tag.end:
            self.cells, self.row_links, self.row_start, self.row_of_headers = [], [], tag.place, True

    def flush(self, end: int | None = None) -> None:
        """The text gathered so far is a block."""
        plain, links = self.plain, self.links
        if not len(plain):
            return
        self.plain, self.links = Plain(), []
        if not plain.text.strip():
            return
        if self.pre:
            self.page.code_blocks += 1
            if self.keep_code:
                self._add("code", plain, [], plain.span(0, len(plain)), whole=True)
            return
        self.last = self._add("item" if self.lists else "sentence", plain, links)

    def _add(
        self,
        kind: Kind,
        text: Plain,
        links: list[tuple[int, str]],
        span: tuple[int, int] | None = None,
        whole: bool = False,
    ) -> Block:
        under = self.lists[-1] if self.lists else None
        block = Block(kind, text, self.headings.sections, under, span, whole, links)
        self.page.blocks.append(block)
        return block

    def finish(self) -> Page:
        if self.cells is not None:
            self._row(_Tag("table", len(self.text), "", True))
        self.flush()
        self.page.title = self.headings.title or self.named
        return self.page
