"""Pages and blocks, the output of the format readers.

The text of a block is plain: markup is removed, entities are decoded. `Plain` maps it to offsets in the file, counted
in characters of the file read as text with one-character line ends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["sentence", "item", "row", "code", "field"]
MOST_HEADING = 150  # of a heading before a sentence; a longer one is also a text of its own


class Broken(Exception):
    """A file that does not match its format; the message gives the reason without the file's name."""


class Plain:
    """Text assembled from ranges of a file."""

    __slots__ = ("_at", "_length", "_parts", "_place")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._at: list[int] = []
        self._place: list[int] = []

    def add(self, text: str, place: int) -> None:
        """Append a range that starts at this offset of the file."""
        if text:
            self._at.append(self._length)
            self._place.append(place)
            self._parts.append(text)
            self._length += len(text)

    def __len__(self) -> int:
        return self._length

    @property
    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def place(self, position: int) -> int:
        """Return the offset in the file of a character of the text."""
        part = bisect_right(self._at, position) - 1
        return self._place[part] + position - self._at[part]

    def parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a range that are contiguous in the file."""
        for cut in self._at[bisect_right(self._at, start) : bisect_left(self._at, end)]:
            yield start, cut
            start = cut
        if start < end:
            yield start, end

    def cut(self, start: int, end: int) -> Plain:
        """Return a part of the text with its offsets."""
        if (start, end) == (0, self._length):
            return self
        made = Plain()
        for first, last in self.parts(start, end):
            made.add(self.text[first:last], self.place(first))
        return made

    def span(self, start: int, end: int) -> tuple[int, int]:
        return self.place(start), self.place(end - 1) + 1


@dataclass(slots=True, eq=False)
class Block:
    """A paragraph, a list item, a table row, a field or a code block.

    `under` is the block that introduces it ("The crew are:"), `span` the range of the block if its sentences have none
    of their own. `links` are ranges of the text with link targets, `notes` positions with the names of footnotes. A
    `whole` block is never split, nor is a range in `solid` (a code span). `label`, the path of a field, precedes every
    sentence of the block and is part of it.
    """

    kind: Kind
    text: Plain
    sections: tuple[str, ...] = ()
    under: Block | None = None
    span: tuple[int, int] | None = None
    whole: bool = False
    links: list[tuple[int, str]] = field(default_factory=list)
    introduces: bool = False
    label: str = ""
    notes: list[tuple[int, str]] = field(default_factory=list)
    solid: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Page:
    """A file, or a row of one, with a title. `title` is empty if the text has none.

    `footnotes` are texts by name, `addresses` the permalinks of the page, `lost` the kind
    and text of everything omitted from the file; the kind is empty for negligible text.
    """

    title: str = ""
    blocks: list[Block] = field(default_factory=list)
    footnotes: dict[str, str] = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)


# Headings that name the first part of a page rather than the page, even at level one.
_NO_TITLE = frozenset("abstract summary overview introduction motivation description contents background".split())


class Headings:
    """The headings above the current position; a level-one heading with no other before it is the page's title."""

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.unused: list[str] = []  # headings without text below them
        self._stack: list[tuple[int, str]] = []
        self._entered = False
        self._used = 0  # this many headings of the stack have text below them

    def enter(self, level: int, text: str) -> None:
        while self._stack and self._stack[-1][0] >= level:
            left = self._stack.pop()[1]
            if len(self._stack) < self._used:
                self._used = len(self._stack)
            else:
                self.unused.append(left)
        first = not (self.title or self._stack or self.unused or self._entered)
        self._entered = self._entered or level > 0
        if level == 1 and first and text.lower() not in _NO_TITLE:
            self.title = text
        elif text and text != self.title:
            self._stack.append((level, text))

    def use(self) -> tuple[str, ...]:
        """Return the current sections and mark them as used."""
        self._used = len(self._stack)
        return tuple(text for _, text in self._stack)

    def close(self) -> list[str]:
        """Close all sections and return the headings without text."""
        self.enter(0, "")
        return self.unused


def row_text(headers: list[str], cells: list[str]) -> str:
    """Return a row of a table as `header: value; header: value`; without headers every cell is kept by column."""
    if not any(headers):
        return "; ".join(cell or "-" for cell in cells)
    return "; ".join(
        f"{headers[place]}: {cell}" if place < len(headers) and headers[place] else cell
        for place, cell in enumerate(cells)
        if cell
    )


def folded(text: str) -> str:
    """Return a text with single spaces and no surrounding white space."""
    return " ".join(text.split())
