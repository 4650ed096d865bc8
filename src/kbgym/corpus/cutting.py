"""A long Markdown text cut where two blocks certainly meet, so that it can be read in parts.

The parser's memory is many times its text, and a progress bar wants to move. A cut is made before a heading, or before
a paragraph after an empty line, never inside a fence or a block of raw HTML; so the parts read one after the other give
what the whole would.
"""

from __future__ import annotations

import re

PART = 64 << 10
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_RAW = re.compile(r" {0,3}<(?:(!--)|(script|pre|style|textarea)\b|(\?)|(!\[CDATA\[)|(![a-zA-Z]))", re.IGNORECASE)
_RAW_END = (re.compile("-->"), re.compile("</(?:script|pre|style|textarea)>", re.IGNORECASE), re.compile(r"\?>"),
            re.compile(r"\]\]>"), re.compile(">"))  # fmt: skip
_START = re.compile(r"#{1,6}[ \t]|[^\W\d_]")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]\n^][^\]\n]{0,300}\]:.*(?:\n[ \t]+\S.*){0,2}", re.MULTILINE)


def parts(text: str, start: int = 0) -> list[tuple[int, int]]:
    """The text from `start` on in parts of at least so many characters."""
    if len(text) - start <= 2 * PART:
        return [(start, len(text))]
    found, begin, fence, raw, empty = list[tuple[int, int]](), start, "", None, False
    for line in _LINE.finditer(text, start):
        at, said = line.start(), line[0]
        if raw is not None:
            raw = None if raw.search(said) else raw
        elif fence:
            closing = _FENCE.match(said)
            if closing and closing[1].startswith(fence) and not said[closing.end() :].strip():
                fence = ""
        else:
            if empty and at - begin >= PART and _START.match(said):
                found.append((begin, at))
                begin = at
            if opening := _FENCE.match(said):
                fence = opening[1] if not (opening[1][0] == "`" and "`" in said[opening.end() :]) else ""
            elif opening := _RAW.match(said):
                ending = _RAW_END[next(n for n, group in enumerate(opening.groups()) if group)]
                raw = None if ending.search(said, opening.end()) else ending
        empty = not said.strip()
    return [*found, (begin, len(text))]


def references(text: str, start: int = 0) -> str:
    """The lines that say where links lead: they count for the whole text, wherever they stand."""
    return "\n\n".join(found[0] for found in _REFERENCE.finditer(text, start))
