"""Pages and blocks: the output of the readers.

The text of a block is plain: markup is removed, entities are decoded. `Plain` maps it to offsets in the file, counted
in characters of the file read as text with one-character line ends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["sentence", "item", "row", "code", "field"]
MOST_HEADING = 150  # of a heading in front of a sentence; a longer one is a text of its own as well


class Broken(Exception):
    """A file that cannot be read as what it says it is; the message says why, without the file's name."""


class Plain:
    """Text put together from stretches of a file."""

    __slots__ = ("_at", "_length", "_parts", "_place")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._at: list[int] = []
        self._place: list[int] = []

    def add(self, text: str, place: int) -> None:
        """Append a stretch that stands at this place of the file."""
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

    `under` is the block that introduces it ("The crew are:"), `span` the place of the whole where sentences have none
    of their own. `links` are places in the text with the targets of links, `notes` places with the names of footnotes.
    A `whole` block is never split, nor is a stretch in `solid` (a code span). `label`, the path of a field, stands
    before every sentence of the block and is part of it.
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
    """Something with a title: a file, or a row of one. `title` is empty where the text gives none.

    `footnotes` are texts by name, `addresses` where the page says it is found (a permalink), `lost` what was left out
    of the file: what it is (nothing, where it is nothing to speak of), and its text.
    """

    title: str = ""
    blocks: list[Block] = field(default_factory=list)
    footnotes: dict[str, str] = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)


# Headings that are the first part of a page and not what it is called, also where they are of level one.
_NO_TITLE = frozenset("abstract summary overview introduction motivation description contents background".split())


class Headings:
    """The headings above the place one is reading; one of level one with no other before it is the page's title."""

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.unused: list[str] = []  # headings that nothing stood under
        self._stack: list[tuple[int, str]] = []
        self._entered = False
        self._used = 0  # so many of the stack have text under them

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
    """Return a row of a table as `header: value; header: value`; without headers every cell keeps its column."""
    if not any(headers):
        return "; ".join(cell or "-" for cell in cells)
    return "; ".join(
        f"{headers[place]}: {cell}" if place < len(headers) and headers[place] else cell
        for place, cell in enumerate(cells)
        if cell
    )


def folded(text: str) -> str:
    """Return a text with single spaces and none at its ends."""
    return " ".join(text.split())
