"""Sentence splitting.

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

from kbgym.errors import Missing
from kbgym.sanitize import is_plain, sanitize

MOST_TEXT = 4_000  # the limit of the `add` and `edit` tools
MOST_CONTEXT = 300
WINDOW = 4_000

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
