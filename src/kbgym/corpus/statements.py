"""A page's blocks into statements that can be understood alone.

In front of every sentence stand the page's title and the sections it is in (`Boats > Kestrel: She is old.`), unless it
names the page itself and there is no section; then what introduces the list, table or code it belongs to; and where it
points back ("This is why ..."), the sentence it points at. All of that is put before the sentence, which stays what it
is in the file: its id is made of it alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kbgym.corpus.blocks import Block, Page, Step
from kbgym.corpus.sentences import MOST_CONTEXT, MOST_TEXT, clean, pieces, split
from kbgym.worlds.world import Source

MOST_BEFORE = 400
MOST_ITEM = 200
MOST_CODE = 800
ROOM = 2 * MOST_CONTEXT + MOST_BEFORE + 40  # what may stand before a sentence of a document's length

# Words that point at something said before, and words that go on from it.
POINTING = frozenset(
    "he she it they him her them his hers its their theirs himself herself itself themselves this that these those such"
    " both neither either another others former latter".split()
)
_GOING_ON = (
    "however therefore thus hence moreover furthermore also then instead otherwise so but and or yet nor still again"
    " similarly likewise additionally besides meanwhile consequently nevertheless nonetheless conversely accordingly"
    " here later afterwards alternatively"
)
# Some point back also as second to eighth word, as long as no name came before. "This page" is in front already.
_EARLY = "he she it they him her them his its their this these those above previous aforementioned"
_PAGE = "page document file section chapter article guide tutorial manual rfc RFC pep PEP proposal module"
_BACK = re.compile(
    r"\W*(?:(?i:{first})\b|[\w'’-]++\W++(?:[^\W\dA-Z_][\w'’-]*+\W++){{0,6}}?"
    r"(?:{early}|(?i:(?<=\b(?:of|to|in|by|at|on) )|(?<=\bfor )|(?<=\b(?:with|from|like|than) )|(?<=\bafter ))that)\b)"
    r"(?!\s+(?:{page})\b)".format(
        first="|".join((*sorted(POINTING), *_GOING_ON.split())),
        early="|".join(_EARLY.split()),
        page="|".join(_PAGE.split()),
    )
)
_WHOLE = (".", "!", "?", "…", ":", ")", '"', "”", "。")  # how something ends that can be gone on from
_JOINS = re.compile(r"[\w-]")
_VERB = re.compile(r" (?:is|was|are|were|has|have|had|can|could|will|would|does|did|may|might|must|should)\b")


class Statement(msgspec.Struct):
    """A sentence, row, field or code block of a page.

    `own` stands in the file, `prefix` is what it needs before it to be understood alone. The rest says where it stands:
    the numbers of its page and block, title and sections, what introduces it, the label of a field, the part of a long
    code block. `names` are the targets of its links, `first_of` the names of the page that links to it lead to.
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
    page: Page, file: str, title: str, language: str, number: int = 0, step: Step | None = None
) -> tuple[list[Statement], int]:
    """A page's statements in order, and how many sentences were cut because they are too long."""
    return _Speaker(page, file, clean(title), language, number).read(step)


class _Speaker:
    def __init__(self, page: Page, file: str, title: str, language: str, number: int) -> None:
        self.page, self.file, self.title, self.language, self.number = page, file, title, language, number
        self.found: list[Statement] = []
        self.cut = 0
        self.last_of: dict[int, str] = {}  # what a block that may introduce others ends with
        self.first_of: dict[int, str] = {}
        self.before: list[str] = []  # the sentences just before, of the same section

    def read(self, step: Step | None) -> tuple[list[Statement], int]:
        section: tuple[str, ...] | None = None
        for number, block in enumerate(self.page.blocks):
            if step and number % 1_000 == 999:
                step(number / len(self.page.blocks))
            if block.sections != section or block.kind in ("field", "item"):
                self.before = []
            section = block.sections
            self._block(block, number)
            if block.kind in ("item", "row", "code") and block.under is not None:  # what follows goes on from before it
                self.before = [self.last_of.get(id(block.under), "")]
        return self.found, self.cut

    def _block(self, block: Block, place: int) -> None:
        text = block.text.text
        spans = [(0, len(text))] if block.whole else split(text, self.language, block.solid)
        if not spans:
            return
        sections, label = tuple(map(clean, block.sections)), clean(block.label)
        label = f"{label} " if label else ""
        above = context(self.title, sections)
        lead = self._lead(block)
        self.last_of[id(block)] = ending = clean(text[slice(*spans[-1])])
        self.first_of[id(block)] = clean(block.label + text[slice(*spans[0])])
        for number, (start, end) in enumerate(spans, 1):
            # What introduces something is said by everything it introduces, unless that is too long for it.
            if block.introduces and number == len(spans) and text[end - 1] == ":" and len(ending) < MOST_CONTEXT // 2:
                continue
            most = MOST_CODE if block.kind == "code" else MOST_TEXT - ROOM - len(block.label)
            parts = list(pieces(text, start, end, most, block.kind == "code"))
            self.cut += len(parts) > 1
            for piece, (first, last) in enumerate(parts, 1):
                own = clean(block.label + text[first:last])
                if not any(c.isalnum() for c in own):
                    continue
                own += self._notes(block, first, last)
                back = self._item(block, number) or (self._back(own) if block.kind in ("sentence", "item") else "")
                part = f"(part {piece} of {len(parts)}) " if len(parts) > 1 and block.kind == "code" else ""
                said = block.kind in ("sentence", "item") and not (lead or back or block.sections)
                bare = said and names_page(own, self.title)
                prefix = ("" if bare else above) + lead + back + part
                source = Source(self.file, *(block.span or block.text.span(first, last)))
                links = [target for at, target in block.links if first <= at < last]
                self.found.append(
                    Statement(
                        own, prefix, block.kind, source, links, self.title, sections, lead, label, part,
                        page=self.number, block=place,
                    )
                )  # fmt: skip
                if block.kind in ("sentence", "item") and own.endswith(_WHOLE):
                    self.before.append(own)

    def _lead(self, block: Block) -> str:
        """What introduces a list's items, as the beginning of each: `The crew are: `."""
        under, leads = block.under, list[str]()
        while under is not None and len(leads) < 5:
            said = self.last_of.get(id(under), "")
            if said and under is not block:
                leads.append(said if said.endswith(":") else said.rstrip(",") + ":")
            under = under.under
        return f"{' '.join(reversed(leads))[-MOST_CONTEXT:]} " if leads else ""

    def _notes(self, block: Block, start: int, end: int) -> str:
        """The footnotes that are called in a stretch."""
        known = self.page.footnotes
        notes = [known[name] for at, name in block.notes if start < (at or 1) <= end and name in known]
        return "".join(f" (Note: {clean(note)})" for note in dict.fromkeys(notes))

    def _item(self, block: Block, number: int) -> str:
        """How a list item begins, for what it says afterwards."""
        begins = block.begins or (block if block.kind == "item" and number > 1 else None)
        begins = None if begins is block.under else begins
        said = self.first_of.get(id(begins), "") if begins else ""
        return f"{said} " if 0 < len(said) <= MOST_ITEM else ""

    def _back(self, own: str) -> str:
        """The sentence this one points back at, with those between them if they point back too."""
        if not points_back(own):
            return ""
        said = ""
        for before in reversed(self.before[-4:]):
            if not before or len(said) + len(before) > MOST_BEFORE:
                return said
            said = f"{before} {said}"
            if not points_back(before):
                break
        return said


def points_back(sentence: str) -> bool:
    """Whether a sentence cannot be understood without the one before it."""
    return _BACK.match(sentence, 0, 200) is not None


def names_page(sentence: str, title: str) -> bool:
    """Whether a sentence says its page's title as a name; a single word that begins it is one only before a verb."""
    if not title or not any(c.isupper() for c in title):
        return False
    at = sentence.find(title)
    if at == 0 and " " not in title and not _VERB.match(sentence, len(title)):
        at = sentence.find(title, 1)
    end = at + len(title)
    return at >= 0 and not (at and _JOINS.match(sentence, at - 1)) and not _JOINS.match(sentence, end)


def context(title: str, sections: Sequence[str]) -> str:
    """`Title > Section: `; where that is long, without the sections in the middle, and then cut."""
    parts = [part for part in (one.rstrip(": ") for one in (title, *sections)) if part]
    while len(parts) > 2 and len(" > ".join(parts)) > MOST_CONTEXT:
        del parts[1]
    return f"{' > '.join(parts)[:MOST_CONTEXT]}: " if parts else ""
