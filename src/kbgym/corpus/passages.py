"""Packing of a page's statements into a card and passages of 600 to 900 characters.

A passage ends at a heading or the end of a paragraph, and never inside a sentence. Items of a list, rows of a table and
fields of a record repeat their introduction. The card of a page states its title, its own fields and its first
sentence; a page that fits into one passage is its own card.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

import msgspec

from kbgym.corpus.statements import Statement, context
from kbgym.worlds.world import Field, Source

SHORT, LEAST, MOST = 300, 600, 900  # characters
TINY = 200  # a last passage up to this length is merged into the previous one
LONGEST_FIELD = 200  # on a card
MOST_OUTLINE = 12
_ENDS = (".", "!", "?", ":", ";", "…", "。")


class DraftDocument(msgspec.Struct):
    """A document without an id yet. `own` is its text without the prefix, `parts` its statements."""

    own: str
    text: str
    kind: str
    parts: list[Statement]
    fields: tuple[Field, ...] = ()
    first_of: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.parts[0].title

    @property
    def source(self) -> Source:
        sources = [one.source for one in self.parts]
        return Source(sources[0].file, min(one.start for one in sources), max(one.end for one in sources))

    @property
    def names(self) -> list[str]:
        """Return the targets of all links in the document."""
        return [name for one in self.parts for name in one.names]


def sentences(said: Iterable[Statement]) -> list[DraftDocument]:
    """Return a draft for each statement."""
    return [DraftDocument(one.own, one.prefix + one.own, one.kind, [one], first_of=one.first_of) for one in said]


def passages(said: Iterable[Statement]) -> list[DraftDocument]:
    """Return the cards and passages of pages; none is a prefix of another."""
    found: list[DraftDocument] = []
    for _, page in groupby(said, key=lambda one: (one.source.file, one.page)):
        found += _page(list(page))
    return _distinct(found)


def _page(said: list[Statement]) -> list[DraftDocument]:
    """Return the documents of a page, the card first."""
    top, rest, room = list[Statement](), list[Statement](), MOST - len(said[0].title)
    for one in said:
        field = _field(one)
        if field and ": " not in field[0] and len(one.own) <= min(LONGEST_FIELD, room):
            top.append(one)
            room -= len(one.own) + 2
        else:
            rest.append(one)
    drafts = [_draft(group) for group in _groups(rest)]
    if top and len(drafts) == 1 and len(drafts[0].text) <= room:
        drafts = [_draft([*top, *rest])]
    elif top or (len(drafts) > 1 and any(one.sections for one in rest)):
        drafts.insert(0, _card(top, rest))
    card = drafts[0]
    card.kind = card.kind if card.kind == "row" and len(drafts) == 1 else "card"  # a row of a table file
    card.fields = tuple(field for one in said if (field := _field(one)))
    card.first_of = tuple(name for one in said for name in one.first_of)
    return drafts


def _field(one: Statement) -> Field | None:
    """Return label and value if a statement is a field."""
    if one.kind != "field":
        return None
    label = one.label.removesuffix(": ") or one.own.partition(": ")[0]
    value = one.own[len(label) + 2 :]
    return (label, value) if value else None


def _card(top: list[Statement], rest: list[Statement]) -> DraftDocument:
    first = next((one for one in rest if one.kind == "sentence" and not one.label and len(one.own) <= SHORT), None)
    parts = top or rest[:1]
    own = _body(top)
    if first is not None:
        own = f"{own}{_gap(own)}{first.own}"
    if not top:
        headings = dict.fromkeys(one.sections[0] for one in rest if one.sections)
        own = f"{own}{_gap(own)}Sections: {'; '.join(list(headings)[:MOST_OUTLINE])}"
    return DraftDocument(own, context(parts[0].title, ()) + own, "card", parts)


def _groups(said: Sequence[Statement]) -> list[list[Statement]]:
    """Return the statements of each passage."""
    groups: list[list[Statement]] = []
    for _, paragraph in groupby(said, key=lambda one: one.block):
        whole = list(paragraph)
        for number, one in enumerate(whole):
            if not groups or _ends(groups[-1], one, whole if number == 0 else []):
                groups.append([])
            groups[-1].append(one)
    if (
        len(groups) > 1
        and len(_draft(groups[-1]).own) < TINY
        and len(_draft(groups[-2] + groups[-1]).own) < MOST + TINY
    ):
        last = groups.pop()
        groups[-1] += last
    return groups


def _ends(group: list[Statement], one: Statement, paragraph: list[Statement]) -> bool:
    """Return True if a passage ends before a statement; `paragraph` is the paragraph that it begins, if any."""
    size = len(_draft(group).text)
    if size + len(one.own) > MOST and (size >= SHORT or not paragraph):
        return True
    if not paragraph:
        return False
    last = group[-1]
    if (one.kind == "field") != (last.kind == "field"):
        return size >= TINY
    if one.sections != last.sections:
        return size >= SHORT
    if one.lead or one.label:  # the list or record continues
        return size >= LEAST and (one.lead, _path(one)) != (last.lead, _path(last))
    return size >= LEAST or (size >= SHORT and size + sum(len(part.own) + 1 for part in paragraph) > MOST)


def _path(one: Statement) -> str:
    """Return the label of a field without its last key."""
    path, colon, _ = one.label.removesuffix(": ").rpartition(": ")
    return path + colon


def _draft(group: list[Statement]) -> DraftDocument:
    kinds = {one.kind for one in group}
    own = _body(group)
    kind = kinds.pop() if kinds in ({"row"}, {"code"}, {"field"}) else "passage"
    return DraftDocument(own, context(group[0].title, group[0].sections) + own, kind, group)


def _body(group: Sequence[Statement]) -> str:
    """Return the text of statements under the heading of the first; headings, introductions and paths occur once."""
    text, path, last = "", "", None
    for one in group:
        last = last or Statement("", "", "", one.source, [], one.title, one.sections)
        mark, own, here = "", one.own, _path(one) if one.label else ""
        if one.sections != last.sections:
            mark, path = context(one.title, one.sections), ""
        if one.lead != last.lead and not text.endswith(one.lead.strip()):
            mark += one.lead if mark else one.lead.removeprefix(last.lead)
        if one.label and one.label == last.label and not mark:
            own = own.removeprefix(one.label)
        elif one.label:
            own = own.removeprefix(here)
            mark += here if here != path else ""
        between = "; " if not mark and one.kind != "sentence" else ". "
        text += _gap(text, " | " if one.kind == last.kind == "row" and not mark else between) + mark + one.part + own
        last, path = one, here
    return text


def _gap(text: str, between: str = ". ") -> str:
    """Return the separator between a text and the next one."""
    return " " if text.endswith(_ENDS) and between != " | " else between if text else ""


def _distinct(drafts: list[DraftDocument]) -> list[DraftDocument]:
    """Drop documents that repeat others of the page; disambiguate those that are prefixes of other pages' documents."""
    order = sorted(range(len(drafts)), key=lambda at: (drafts[at].text, -at))
    gone: set[int] = set()
    for here, after in pairwise(order):
        one, other = drafts[here], drafts[after]
        if not other.text.startswith(one.text):
            continue
        if _page_of(one) == _page_of(other):
            gone.add(here)
            other.parts += one.parts
            other.fields, other.first_of = other.fields or one.fields, other.first_of or one.first_of
            other.kind = "card" if one.kind == "card" else other.kind
        else:
            file = "" if one.source.file == other.source.file else one.source.file
            one.text += f" ({file or f'character {one.source.start:,}'})"
    return [draft for at, draft in enumerate(drafts) if at not in gone]


def _page_of(draft: DraftDocument) -> tuple[str, int]:
    return draft.parts[0].source.file, draft.parts[0].page
