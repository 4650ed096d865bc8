"""HTML into blocks, by a scanner that reads every character once.

The standard library's parser takes quadratic to cubic time on hostile input (a hundred kilobytes of `<a b="` take it
minutes), and the fast libraries do not say where in the file a text stands; so the few rules needed are here: tags,
comments, raw text, entities. What is never closed ends with the file, as browsers have it. Scripts, styles, navigation
and forms are left out, and said to be. The reader of Markdown gives its raw HTML to this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import unquote

from kbgym.corpus.blocks import MOST_HEADING, Block, Broken, Headings, Kind, Page, Plain, folded, row_text

MOST_DEPTH = 1_000

_NAME = re.compile(r"/?[a-zA-Z][^\s/>\"'=<]*")
_STOP = re.compile(r"[>\"']")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_RAW = ("script", "style", "textarea", "title", "xmp", "noframes")
_LEFT_OUT = frozenset("script style template noscript svg math nav form select button iframe object head".split())
_CODE = frozenset("script style template noscript svg math head".split())
_SOLID = ("code", "tt", "kbd", "samp", "var")
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
    """Tags, comments (as tags named `!`), and the ranges of text between them."""
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
            yield _Tag("!", open_, text[open_:at], True)
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


def read_html(
    text: str, base: int = 0, keep_code: bool = True, page: Page | None = None, headings: Headings | None = None
) -> Page:
    """The blocks of an HTML text that starts at `base` of its file, put into a page under its headings so far."""
    reader = _Reader(text, base, keep_code, page or Page(), headings or Headings())
    for found in _scan(text):
        if isinstance(found, _Tag):
            reader.tag(found)
        else:
            reader.text_range(*found)
    reader.finish()
    if headings is None:
        reader.page.title = reader.headings.title or reader.named
        reader.page.lost += [("heading", heading) for heading in reader.headings.close()]
    return reader.page


class _Reader:
    def __init__(self, text: str, base: int, keep_code: bool, page: Page, headings: Headings) -> None:
        self.text, self.base, self.keep_code = text, base, keep_code
        self.page = page
        self.headings = headings
        self.named = ""  # the <title>
        self.depth = 0
        self.skipping: list[str] = []
        self.plain = Plain()
        self.links: list[tuple[int, str]] = []
        self.solid: list[tuple[int, int]] = []
        self.code_from = -1
        self.lists: list[Block | None] = []
        self.last: Block | None = None
        self.term: str | None = None  # of a definition list: what the next definitions are of
        self.pre = False
        self.headers: list[str] = []
        self.cells: list[str] | None = None
        self.in_cell = False
        self.row_links: list[tuple[int, str]] = []
        self.row_start = 0
        self.row_headers = 0  # of the row's cells
        self.rows = 0
        self.above_table: Block | None = None

    def text_range(self, start: int, end: int) -> None:
        if self.skipping:
            if self.skipping in (["head", "title"], ["title"]) and not self.named:
                self.named = folded(unescape(self.text[start:end][:1_000]))
            elif said := self.text[start:end].strip():
                code = not _CODE.isdisjoint(self.skipping)
                self.page.lost.append(("script or style" if code else "navigation or form", unescape(said)))
            return
        at = start
        for entity in _ENTITY.finditer(self.text, start, end):
            self.plain.add(self.text[at : entity.start()], self.base + at)
            self.plain.add(unescape(entity[0]), self.base + entity.start())
            at = entity.end()
        self.plain.add(self.text[at:end], self.base + at)

    def tag(self, tag: _Tag) -> None:
        name = tag.name
        if name == "!":
            self.page.lost.append(("comment", tag.attributes))
            return
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
                target = unquote(unescape(href[1] or href[2] or href[3] or ""))
                self.links.append((len(self.plain), target))
                self.page.lost.append(("link target", target))
        elif name in _SOLID:
            if tag.end and self.code_from >= 0:
                self.solid.append((self.code_from, len(self.plain)))
            self.code_from = -1 if tag.end else len(self.plain)
        elif name == "img" and (said := _ALT.search(tag.attributes[:2_000])):
            self.plain.add(f" {unescape(said[1] or said[2] or '')} ", self.base + tag.place)
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
                self.row_headers += name == "th"
                self.in_cell = True
            return
        if name in ("tr", "table", "tbody", "thead", "tfoot"):
            self._row(tag)
            return
        if name[0] == "h" and name[1:].isdigit():
            if tag.end:
                self._heading(int(name[1:]))
            else:
                self.flush()
            return
        if name == "dt" and tag.end:
            self._term()
            return
        self.flush()
        if name in ("ul", "ol"):
            if tag.end and self.lists:
                self.lists.pop()
                self.last = None
            elif not tag.end and len(self.lists) < MOST_DEPTH:
                self._open_list()
        elif name == "li":
            self.last = None
        elif name == "dl" or (name == "dt" and not tag.end):
            self.term = None
        elif name == "dd" and not tag.end and self.term is None:
            self.term = ""
        elif name == "pre":
            self.pre = not tag.end

    def _heading(self, level: int) -> None:
        heading, plain, links = folded(self.plain.text), self.plain, self.links
        self._clear()
        self.last = None
        if len(heading) > MOST_HEADING:
            self.headings.enter(level, f"{heading[: MOST_HEADING - 1]}…")
            self._add("sentence", plain, links)
        elif heading:
            self.headings.enter(level, heading)

    def _term(self) -> None:
        self.term = folded(self.plain.text) or None
        if self.term is not None and len(self.term) > MOST_HEADING:
            self.flush()
            self.term = None
        self._clear()

    def _clear(self) -> None:
        self.plain, self.links, self.solid, self.code_from = Plain(), [], [], -1

    def _introduction(self) -> Block | None:
        """What introduces a list, a table or code that begins here."""
        if self.last is not None and self.last.text.text.rstrip().endswith(":"):
            self.last.introduces = True
            return self.last
        return self.lists[-1] if self.lists else None

    def _open_list(self) -> None:
        self.lists.append(self._introduction())

    def _cell(self) -> None:
        """A cell ends where the next one, or its row, does."""
        if self.cells is not None:
            cell = folded(self.plain.text)
            if self.in_cell or cell:
                self.cells.append(cell)
            self.in_cell = False
            self.row_links += self.links
            self._clear()

    def _row(self, tag: _Tag) -> None:
        if self.cells is None:
            self.flush()
        else:
            self._cell()
            if any(self.cells):
                if self.row_headers == len(self.cells) and not self.headers:
                    self.headers = self.cells
                else:
                    row = Plain()
                    if self.row_headers == 1 and not self.headers:  # a heading at the row's side
                        self.cells = [f"{self.cells[0]}: {'; '.join(filter(None, self.cells[1:]))}"]
                    row.add(row_text(self.headers, self.cells), self.base + self.row_start)
                    span = (self.base + self.row_start, self.base + tag.place)
                    links = [(0, target) for _, target in self.row_links]
                    self._add("row", row, links, span, whole=True, under=self.above_table)
                    self.rows += 1
            self.cells = None
        if tag.name == "table":
            if self.headers and not self.rows:
                self.page.lost += [("column", header) for header in self.headers]
            self.headers, self.rows = [], 0
            self.above_table = None if tag.end else self._introduction()
        if tag.name == "tr" and not tag.end:
            self.cells, self.row_links, self.row_start, self.row_headers = [], [], tag.place, 0

    def flush(self) -> None:
        """The text gathered so far is a block."""
        plain, links, solid = self.plain, self.links, self.solid
        if not len(plain):
            return
        self._clear()
        if not plain.text.strip():
            return
        if self.pre:
            self.page.code_blocks += 1
            if self.keep_code:
                self._add("code", plain, [], plain.span(0, len(plain)), whole=True, under=self._introduction())
            else:
                self.page.lost.append(("code block", plain.text))
            self.last = None
            return
        self.last = self._add("item" if self.lists else "sentence", plain, links)
        self.last.solid = solid
        if self.term:
            self.last.kind, self.last.label = "field", f"{self.term}: "

    def _add(
        self,
        kind: Kind,
        text: Plain,
        links: list[tuple[int, str]],
        span: tuple[int, int] | None = None,
        whole: bool = False,
        under: Block | None = None,
    ) -> Block:
        under = under or (self.lists[-1] if self.lists else None)
        block = Block(kind, text, self.headings.use(), under, None, span, whole, links)
        self.page.blocks.append(block)
        return block

    def finish(self) -> None:
        if self.cells is not None:
            self._row(_Tag("table", len(self.text), "", True))
        self.flush()


def html_words(text: str) -> str:
    """Everything between the tags of an HTML text."""
    return " ".join(unescape(text[found[0] : found[1]]) for found in _scan(text) if not isinstance(found, _Tag))
