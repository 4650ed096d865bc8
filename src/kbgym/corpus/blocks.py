"""Pages and blocks, the output of the format readers.

The text of a block is plain: markup is removed, entities are decoded. `WordPositions` finds it in the file; positions
are counted in characters of the file read as text with one-character line ends.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

TABLES: dict[str, Any] = tomllib.loads((files("kbgym.corpus") / "tables.toml").read_text(encoding="utf-8"))
Kind = Literal["sentence", "item", "row", "code", "field"]
MOST_HEADING = 150  # of a heading before a sentence; a longer one is also a text of its own
MOST_LOOKED_FOR = 200
SOON, NEAR = 100, 12  # words from one text to the next, and between two words of a text
_WORD, _CLOSING = re.compile(r"[^\W_]+"), re.compile(r"[.!?…)\"'”’]*")


class Broken(Exception):
    """A file that does not match its format; the message gives the reason without the file's name."""


class WordPositions:
    """Positions of texts in their file, found by their words in reading order.

    Markup between the words does not matter. A text that is not found gets the position after the text before it.
    """

    def __init__(self, text: str) -> None:
        self._spans = [found.span() for found in _WORD.finditer(text)]
        self._numbers: dict[str, list[int]] = {}
        for number, (start, end) in enumerate(self._spans):
            self._numbers.setdefault(text[start:end], []).append(number)
        self._next = 0
        self._text = text

    def skip(self, position: int) -> None:
        """Continue after a position of the file."""
        self._next = max(self._next, bisect_left(self._spans, (position, 0)))

    def find(self, said: str) -> tuple[int, int]:
        words = _WORD.findall(said)
        first = self._start(words, self._next)
        first = self._start(words, 0) if first is None else first  # a footnote may stand anywhere
        if first is None:
            end = self._spans[self._next - 1][1] if self._next else 0
            start = max(0, min(end, len(self._text) - len(said)))
            return start, max(start + 1, min(len(self._text), start + len(said)))
        last = first
        for word in words[1:]:
            number = self._following(word, last + 1, NEAR)
            last = last if number is None else number
        self._next = max(self._next, last + 1)
        closed = _CLOSING.match(self._text, self._spans[last][1])
        return self._spans[first][0], closed.end() if closed else self._spans[last][1]

    def _start(self, words: list[str], number: int) -> int | None:
        """Return the number of the first word, where the next ones follow it as closely as anywhere soon or later."""
        numbers = self._numbers.get(words[0], []) if words else []
        candidates = numbers[(at := bisect_left(numbers, number)) : at + MOST_LOOKED_FOR]
        for soon in ([one for one in candidates if one < number + SOON], candidates):
            for most, near in ((5, 2), (3, NEAR), (1, 0)):
                found = (one for one in soon if self._goes_on(words[1:most], one, near))
                if (first := next(found, None)) is not None:
                    return first
        return None

    def _goes_on(self, words: list[str], number: int, near: int) -> bool:
        for word in words:
            following = self._following(word, number + 1, near)
            if following is None:
                return False
            number = following
        return True

    def _following(self, word: str, number: int, most: int) -> int | None:
        """Return the number of the next such word, if it is at most `most` words away."""
        numbers = self._numbers.get(word, [])
        at = bisect_left(numbers, number)
        return numbers[at] if at < len(numbers) and numbers[at] - number <= most else None


@dataclass(slots=True, eq=False)
class Block:
    """A paragraph, a list item, a table row, a field or a code block.

    `under` is the block that introduces it ("The crew are:"), `span` its range in the file if the reader knows it.
    `links` are ranges of the text with link targets, `notes` positions with the names of footnotes. A
    `whole` block is never split, nor is a range in `solid` (a code span). `label`, the path of a field, precedes every
    sentence of the block and is part of it. `words` are those of the file, if the text has others.
    """

    kind: Kind
    text: str
    sections: tuple[str, ...] = ()
    under: Block | None = None
    span: tuple[int, int] | None = None
    whole: bool = False
    links: list[tuple[int, str]] = field(default_factory=list)
    introduces: bool = False
    label: str = ""
    notes: list[tuple[int, str]] = field(default_factory=list)
    solid: list[tuple[int, int]] = field(default_factory=list)
    words: str = ""


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

    def __init__(self) -> None:
        self.title = ""
        self._stack: list[tuple[int, str]] = []
        self._all: list[str] = []
        self._used: set[str] = set()

    def enter(self, level: int, text: str) -> None:
        self._stack = [one for one in self._stack if one[0] < level]
        if level == 1 and not (self.title or self._all) and text.lower() not in _NO_TITLE:
            self.title = text
        elif text and text != self.title:
            self._stack.append((level, text))
            self._all.append(text)

    def use(self) -> tuple[str, ...]:
        """Return the current sections and mark them as used."""
        sections = tuple(text for _, text in self._stack)
        self._used.update(sections)
        return sections

    def unused(self) -> list[str]:
        """Return the headings without text below them."""
        return [text for text in self._all if text not in self._used]


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
