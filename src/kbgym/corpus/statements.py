"""Self-contained statements from the blocks of a page.

Every sentence is prefixed with its page's title and sections (`Boats > Kestrel: She is old.`) and the introduction
of its list, table or code. The sentence itself is unchanged, and its id is derived from it alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kbgym.corpus.blocks import Block, Page
from kbgym.corpus.sentences import MOST_CONTEXT, MOST_TEXT, clean, pieces, split
from kbgym.worlds.world import Source

MOST_CODE = 800
ROOM = 2 * MOST_CONTEXT + 40  # limit of a sentence's prefix


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


def statements(page: Page, file: str, title: str, language: str, number: int = 0) -> tuple[list[Statement], int]:
    """Return a page's statements in order, and the number of sentences truncated for length."""
    return _Reader(page, file, clean(title), language, number).read()


class _Reader:
    def __init__(self, page: Page, file: str, title: str, language: str, number: int) -> None:
        self.page, self.file, self.title, self.language, self.number = page, file, title, language, number
        self.found: list[Statement] = []
        self.cut = 0
        self.last_of: dict[int, str] = {}  # the last sentence of a block that may introduce others

    def read(self) -> tuple[list[Statement], int]:
        for number, block in enumerate(self.page.blocks):
            self._block(block, number)
        return self.found, self.cut

    def _block(self, block: Block, number: int) -> None:
        text, label = block.text.text, clean(block.label)
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
                    source = Source(self.file, *(block.span or block.text.span(first, last)))
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
