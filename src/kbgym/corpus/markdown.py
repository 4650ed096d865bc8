"""Markdown reader: blocks from markdown-it-py (CommonMark, tables and footnotes).

Front matter becomes fields.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kbgym.corpus.blocks import MOST_HEADING, TABLES, Block, Broken, Headings, Kind, Page, folded, row_text
from kbgym.corpus.fields import Node, add_fields, read_toml, read_yaml
from kbgym.corpus.html import html_to_markdown
from kbgym.corpus.markdown_inline import Inline, parser, read_inline

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?\n)??(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LABEL = re.compile(r"[^\W\d_][\w /().'’-]{0,40}:\s+\S")
_TARGET = re.compile(r"\([\w.:-]+\)=")  # MyST: a label for the next block
_ADMONITION = re.compile(r"\{([\w:-]+)\}(.*)")
_OPTIONS = re.compile(r"(?:[ \t]*:[\w-]+:[^\n]*\n)+")
_ENDS = (".", "!", "?", ";", ")", "。", "…")
MOST_NOTE = 800  # a footnote up to this length is put where it is referenced


def read_markdown(text: str) -> Page:
    """Return the page of a Markdown text."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.page = Page()
        self.headings = Headings()
        self.base = self._front()
        self.env: dict[str, Any] = {}
        self.lines: list[str] = []
        self.lists: list[Block | None] = []
        self.quotes: list[Block | None] = []
        self.last: Block | None = None
        self.note = ""  # the current footnote
        self.notes: dict[str, list[Block]] = {}

    def read(self) -> Page:
        self._blocks(self.text[self.base :], self.env)
        self._finish_notes()
        self.page.title = self.headings.title
        self.page.lost += [("heading", heading) for heading in self.headings.unused()]
        for name, found in self.env.get("references", {}).items():
            said = (name.lower(), found.get("href", ""), found.get("title", ""))
            self.page.lost.append(("link target", " ".join(filter(None, said))))
        return self.page

    def _front(self) -> int:
        """Read front matter as fields and return the offset of the text after it."""
        front = _FRONT.match(self.text)
        if front is None or not (front[2] or "").strip():
            return front.end() if front and front[2] is None else 0
        said, base = front[2], front.start(2)
        try:
            if front[1] == "+++":
                trees, comments = read_toml(said)
            else:
                trees, comments = read_yaml(said, base)
        except Broken:
            if front[1] == "---" and not all(_LABEL.match(line) for line in said.split("\n") if line.strip()):
                return 0  # a text between two horizontal rules
            trees, comments = [_lines(said, base)], []
        if any(tree.items is None for tree in trees):
            return 0
        self.headings.title = folded(next((title for tree in trees if (title := tree.get("title"))), ""))
        add_fields(self.page, trees, len(said), (base, front.end(2)), frozenset(("title",)))
        self.page.lost += [("comment", comment) for comment in comments]
        self.page.lost.append(("", "title"))  # the prefix of every sentence already contains that key
        return front.end()

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _token(self, tokens: list[Token], place: int) -> int:
        """Read one construct and return the position after it."""
        token = tokens[place]
        match token.type:
            case "heading_open":
                self._heading(int(token.tag[1:]), tokens[place + 1])
                return place + 3
            case "inline":
                self._text(token)
            case "bullet_list_open" | "ordered_list_open":
                self.lists.append(self._introduction())
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
                self.last = None
            case "blockquote_open":
                self.quotes.append(self._introduction())
            case "blockquote_close":
                self.quotes.pop()
                self.last = None
            case "list_item_open":
                self.last = None
            case "fence" | "code_block":
                self._code(token)
            case "html_block":
                self._html(token.content)
            case "table_open":
                return self._table(tokens, place)
            case "footnote_reference_open":
                self.note = str(token.meta["label"])
            case "footnote_reference_close":
                self.note, self.last = "", None
        return place + 1

    def _html(self, text: str) -> None:
        markdown, _, lost = html_to_markdown(text)
        self.page.lost += lost
        self._blocks(markdown, {})
        self.last = None

    def _blocks(self, text: str, env: dict[str, Any]) -> None:
        outer, self.lines = self.lines, text.split("\n")
        tokens, place = parser().parse(text, env), 0
        while place < len(tokens):
            place = self._token(tokens, place)
        self.lines = outer

    def _introduction(self) -> Block | None:
        """Return the block that introduces a list, a table or code that begins here."""
        block = self.last
        if block is not None and not block.text.rstrip().endswith(_ENDS):  # it continues in what follows
            block.introduces = True
            return block
        return self._under()

    def _under(self) -> Block | None:
        return self.lists[-1] if self.lists else self.quotes[-1] if self.quotes else None

    def _add(self, kind: Kind, text: str, **more: Any) -> Block:
        under = more.pop("under", self._under())
        block = Block(kind, text, self.headings.use(), under, **more)
        into = self.notes.setdefault(self.note, []) if self.note else self.page.blocks
        into.append(block)
        return block

    def _heading(self, level: int, token: Token) -> None:
        found = self._inline(token)
        heading = folded(found.text)
        self.last = None
        self.headings.enter(level, heading if len(heading) <= MOST_HEADING else f"{heading[: MOST_HEADING - 1]}…")
        if len(heading) > MOST_HEADING:
            self._add("sentence", found.text, links=found.links, notes=found.notes, solid=found.solid)

    def _text(self, token: Token) -> None:
        found = self._inline(token)
        text = found.text
        if not text.strip():
            return
        if _TARGET.fullmatch(text.strip()):
            self.page.lost.append(("directive", text.strip()))
            self.page.addresses.append(text.strip()[1:-2])
            return
        kind: Kind = "item" if self.lists else "sentence"
        # `Status: open` and `Owner: Ruth` on separate lines are separate sentences; a line may continue on the next.
        lines = list(pairwise([0, *found.breaks, len(text)]))
        labels = [start for start, end in lines if _LABEL.match(text[start:end].strip())]
        spans = [(0, len(text))]
        if len(labels) > 1 and labels[0] == 0 and 5 * len(labels) >= 3 * len(lines):
            kind, spans = "field", list(pairwise([*labels, len(text)]))
        for start, end in spans:
            said = text[start:end].strip()
            if kind == "field" and not self.headings.title and said.lower().startswith("title:"):
                self.headings.title = folded(said[6:])
            self.last = self._add(
                kind,
                text[start:end],
                links=_within(found.links, start, end),
                notes=_within(found.notes, start, end, 1),
                solid=[(a - start, b - start) for a, b in found.solid if start <= a < end],
                whole=kind == "field" and end - start < MOST_HEADING,
            )

    def _code(self, token: Token) -> None:
        said = _ADMONITION.fullmatch(token.info.strip())
        if said:  # MyST: a directive or a note, written like code
            self._directive(token, said)
            return
        self._code_block(token, token.content)

    def _directive(self, token: Token, said: re.Match[str]) -> None:
        options = _OPTIONS.match(token.content)
        content = token.content[options.end() :] if options else token.content
        self.page.lost.append(("directive", f"{token.info} {options[0] if options else ''}".strip()))
        if said[1] in TABLES["silent"].split():
            self.page.lost.append(("directive", content))
        elif said[1] in TABLES["myst"]:
            label, given = TABLES["myst"][said[1]], said[2].strip()
            head = f"{label}{given}: " if label.endswith(" ") else f"{label}: " if label else ""
            self._blocks(head + content if content.strip() else label + given, self.env)
            self.last = None
        else:
            self._code_block(token, content)

    def _code_block(self, token: Token, content: str) -> None:
        if token.info:
            self.page.lost.append(("language of a code block", token.info))
        if content.strip():
            last, under = self.page.blocks[-1] if self.page.blocks else None, self._introduction()
            if under is None and last is not None and last.kind == "code" and last.sections == self.headings.use():
                under = last.under  # a program, then its output
            self._add("code", content, whole=True, under=under)
        self.last = None

    def _table(self, tokens: list[Token], place: int) -> int:
        headers: list[str] = []
        filled: set[int] = set()
        row = Inline()
        cells: list[str] = []
        in_head, line, under = False, "", self._introduction()
        while tokens[place].type != "table_close":
            token = tokens[place]
            match token.type:
                case "thead_open":
                    in_head = True
                case "thead_close":
                    in_head, headers = False, cells
                case "tr_open":
                    cells, row = [], Inline()
                    line = self.lines[token.map[0]] if token.map else ""
                case "inline":
                    found = self._inline(token)
                    cells.append(folded(found.text))
                    row.links += [(0, target) for _, target in found.links]
                    row.notes += [(1, name) for _, name in found.notes]
                case "tr_close" if not in_head:
                    cells += _surplus(line, len(cells))
                    filled |= {number for number, cell in enumerate(cells) if cell}
                    if any(cells):
                        more = {"whole": True, "under": under, "words": " ".join(cells)}
                        self._add("row", row_text(headers, cells), links=row.links, notes=row.notes, **more)
            place += 1
        self.page.lost += [("column", name) for number, name in enumerate(headers) if name and number not in filled]
        self.last = None
        return place + 1

    def _inline(self, token: Token) -> Inline:
        found = read_inline(token.content, self.env)
        self.page.lost += found.lost
        return found

    def _finish_notes(self) -> None:
        """Put footnotes where they are referenced; long ones and unreferenced ones become blocks."""
        called = {name for block in self.page.blocks for _, name in block.notes}
        for name, blocks in self.notes.items():
            text = folded(" ".join(block.text for block in blocks))
            if name in called and len(text) <= MOST_NOTE:
                self.page.footnotes[name] = text
            else:
                self.page.blocks += blocks


def _surplus(line: str, known: int) -> list[str]:
    """Return the cells of a row beyond its table's columns, which the library drops."""
    cells = line.strip().removeprefix("|").removesuffix("|").replace("\\|", "\0").split("|")[known:]
    return [folded(cell.replace("\0", "|")) for cell in cells]


def _within(found: list[tuple[int, str]], start: int, end: int, more: int = 0) -> list[tuple[int, str]]:
    return [(at - start, name) for at, name in found if start + more <= at < end + more]


def _lines(said: str, base: int) -> Node:
    """Return front matter that is neither YAML nor TOML as lines of `Label: value`."""
    items, at = list[tuple[str, Node]](), base
    for line in said.split("\n"):
        key, _, value = line.partition(":")
        if line.strip():
            items.append((key.strip(), Node(value.strip(), span=(at, at + len(line)))))
        at += len(line) + 1
    return Node(items=items)
