"""Sentences of a text, and self-contained statements from the blocks of a page.

Every sentence is prefixed with its page's title and sections (`Boats > Kestrel: She is old.`) and the introduction
of its list, table or code. The sentence itself is unchanged, and its id is derived from it alone.

The splitter is sentencex, a small compiled library; it was the most accurate of six splitters
on thirty difficult lines. Long texts are split in windows, because its search for quotation marks takes quadratic time.
Corrections: no sentence starts with a lower-case letter, ends at `vol.` or `approx.` before a number, or ends inside a
code span.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from kbgym.corpus.blocks import Block, Page, WordPositions
from kbgym.errors import Missing
from kbgym.sanitize import is_plain, sanitize
from kbgym.worlds.world import Source

MOST_TEXT = 4_000  # the limit of the `add` and `edit` tools
MOST_CONTEXT = 300
WINDOW = 4_000
MOST_CODE = 800
ROOM = 2 * MOST_CONTEXT + 40  # limit of a sentence's prefix

_EXPECTS_NUMBER = re.compile(
    r"\b(?:vols?|approx|ca|nos?|pp?|figs?|secs?|chs?|eqs?|arts?|est|min|max)\.\s*$", re.IGNORECASE
)
_DIGIT = re.compile(r"[(\[]?\d")
_BULLET = re.compile(r"(?:^|\s)(?:\d{1,3}|[a-zA-Z])\.\s*$")


@cache
def _library() -> Callable[[str, str], list[dict[str, Any]]]:
    try:
        module = importlib.import_module("sentencex")
    except ImportError:
        raise Missing("splitting text into sentences needs sentencex; run: pip install 'kbgym[documents]'") from None
    boundaries: Callable[[str, str], list[dict[str, Any]]] = module.get_sentence_boundaries
    return boundaries


def split(
    text: str, language: str = "en", solid: Sequence[tuple[int, int]] = (), spaced: bool = True
) -> list[tuple[int, int]]:
    """Return where each sentence of a text starts and ends, without the white space around it.

    No sentence ends inside a `solid` range, which the splitter sees as a capitalised word, or without white space after
    it ("strings.Join"), unless `spaced` is False.
    """
    if solid:
        shown, at = list[str](), 0
        for start, end in solid:
            shown += (text[at:start], "X" * min(1, end - start) + "x" * (end - start - 1))
            at = end
        text = "".join(shown) + text[at:]
    spans: list[tuple[int, int]] = []
    for found in _boundaries(text, language):
        start, end = _trimmed(text, *found)
        if start == end:
            continue
        if spans and ((spaced and spans[-1][1] == start) or _goes_on(text, spans[-1], start)):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _boundaries(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a text, window by window; the last of each window is read again with the next."""
    start, begun = 0, 0  # start of the window, and of the sentence that reaches into it
    while True:
        window = text[start : start + WINDOW] if start or len(text) > WINDOW else text
        found = [(start + one["start_index"], start + one["end_index"]) for one in _library()(language, window)]
        if start + len(window) >= len(text):
            yield begun, found[0][1] if found else len(text)
            yield from found[1:]
            return
        if len(found) > 1:
            yield begun, found[0][1]
            yield from found[1:-1]
            start = begun = found[-1][0]
        else:  # no end in this window: the sentence continues
            space = text.rfind(" ", start + WINDOW // 2, start + WINDOW)
            start = space + 1 if space > 0 else start + WINDOW


def _goes_on(text: str, before: tuple[int, int], start: int) -> bool:
    """Return True if the text that starts here belongs to the previous sentence."""
    if "\n\n" in text[before[1] : start]:
        return False
    first = text[start]
    tail = text[max(before[0], before[1] - 12) : before[1]]
    if first.islower():
        return tail[-1] in ".…" or tail.endswith(('."', ".”"))
    if _DIGIT.match(text, start) and _EXPECTS_NUMBER.search(tail):
        return True
    return before[1] - before[0] <= 4 and bool(_BULLET.search(tail))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


_CLAUSES = (re.compile(r"[;:](?=\s)|\s[—–-](?=\s)"), re.compile(r",(?=\s)"), re.compile(r"\s"))
_LINES = (re.compile(r"\n"), re.compile(r"\s"))


def pieces(text: str, start: int, end: int, most: int, lines: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the pieces of a long range, cut at the last clause (or line) that fits, else at a space, else anywhere."""
    while end - start > most:
        cut = start + most
        for boundary in _LINES if lines else _CLAUSES:
            places = [match.end() for match in boundary.finditer(text, start + most // 2, start + most)]
            if places:
                cut = places[-1]
                break
        yield _trimmed(text, start, cut)
        start, end = _trimmed(text, cut, end)
    if start < end:
        yield start, end


def clean(text: str) -> str:
    """Return a text on one line without characters that the tools reject."""
    plain = " ".join(sanitize(text)[0].split())
    while not is_plain(plain):  # removed characters may have separated others
        plain = " ".join(sanitize(plain)[0].split())
    return plain


# -- statements -------------------------------------------------------------------------------------------------------


class Statement(msgspec.Struct):
    """A sentence, row, field or code block of a page.

    `own` is the text in the file, `prefix` the context that makes it self-contained. The rest is its position: the
    numbers of its page and block, title and sections, its introduction, the label of a field, the part of a long code
    block. `names` are the targets of its links, `first_of` the names under which links reach its page.
    """

    own: str
    prefix: str
    kind: str
    source: Source
    names: list[str]
    title: str
    sections: tuple[str, ...] = ()
    lead: str = ""
    label: str = ""
    part: str = ""
    first_of: tuple[str, ...] = ()
    page: int = 0
    block: int = 0


def statements(
    page: Page, file: str, title: str, language: str, number: int, places: WordPositions
) -> tuple[list[Statement], int]:
    """Return a page's statements in order, and the number of sentences truncated for length."""
    reader = _Reader(page, file, clean(title), language, number, places)
    for place, block in enumerate(page.blocks):
        reader.read(block, place)
    return reader.found, reader.cut


class _Reader:
    def __init__(self, page: Page, file: str, title: str, language: str, number: int, places: WordPositions) -> None:
        self.page, self.file, self.title, self.language, self.number = page, file, title, language, number
        self.places = places
        self.found: list[Statement] = []
        self.cut = 0
        self.last_of: dict[int, str] = {}  # the last sentence of a block that may introduce others

    def read(self, block: Block, number: int) -> None:
        text, label = block.text, clean(block.label)
        if block.span:
            self.places.skip(block.span[1])
        spans = [(0, len(text))] if block.whole else split(text, self.language, block.solid)
        if not spans:
            return
        sections, label = tuple(map(clean, block.sections)), f"{label} " if label else ""
        lead = self._lead(block)
        self.last_of[id(block)] = ending = clean(text[slice(*spans[-1])])
        # Everything introduced by a sentence carries it, unless the sentence is too long for that.
        if block.introduces and text[spans[-1][1] - 1] == ":" and len(ending) < MOST_CONTEXT // 2:
            spans.pop()
        most = MOST_CODE if block.kind == "code" else MOST_TEXT - ROOM - len(label)
        for start, end in spans:
            parts = list(pieces(text, start, end, most, block.kind == "code"))
            self.cut += len(parts) > 1 and block.kind != "code"
            for piece, (first, last) in enumerate(parts, 1):
                own = clean(label + text[first:last])
                if any(c.isalnum() for c in own):
                    own += self._notes(block, first, last)
                    part = f"(part {piece} of {len(parts)}) " if len(parts) > 1 and block.kind == "code" else ""
                    prefix = context(self.title, sections) + lead + part
                    source = Source(self.file, *(block.span or self.places.find(block.words or text[first:last])))
                    links = [target for at, target in block.links if first <= at < last]
                    where = (self.title, sections, lead, label, part, (), self.number, number)
                    self.found.append(Statement(own, prefix, block.kind, source, links, *where))

    def _lead(self, block: Block) -> str:
        """Return the introduction of a list's items, as the prefix of each: `The crew are: `."""
        under, leads = block.under, list[str]()
        while under is not None and len(leads) < 5:
            said = self.last_of.get(id(under), "")
            if said and under is not block:
                leads.append(said if said.endswith(":") else said.rstrip(",") + ":")
            under = under.under
        return f"{' '.join(reversed(leads))[-MOST_CONTEXT:]} " if leads else ""

    def _notes(self, block: Block, start: int, end: int) -> str:
        """Return the footnotes referenced in a range."""
        known = self.page.footnotes
        notes = [known[name] for at, name in block.notes if start < (at or 1) <= end and name in known]
        return "".join(f" (Note: {clean(note)})" for note in dict.fromkeys(notes))


def context(title: str, sections: Sequence[str]) -> str:
    """Return `Title > Section: `; a long one omits the sections in the middle, and is then truncated."""
    parts = [part for part in (one.rstrip(": ") for one in (title, *sections)) if part]
    while len(parts) > 2 and len(" > ".join(parts)) > MOST_CONTEXT:
        del parts[1]
    return f"{' > '.join(parts)[:MOST_CONTEXT]}: " if parts else ""
