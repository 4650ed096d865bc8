"""Blocks into sentences that can stand alone.

The splitting is sentencex's, a small compiled library of the Wikimedia Foundation: of six splitters tried on thirty
nasty lines it was right most often, it errs towards not splitting, and it is linear in the length of the text. Two of
its habits are put right here: a sentence does not start with a small letter, and `vol.` or `approx.` before a number
ends none.

A sentence that would dangle (it begins with a pronoun, or with an article and no name; or it names nothing) is given
its page's title and section: `Boats > Kestrel: She was built in 1923.`
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kbgym.characters import made_plain
from kbgym.errors import Missing

MOST_TEXT = 4_000  # what the `add` and `edit` tools take, too
MOST_CONTEXT = 300

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
        raise Missing("splitting text into sentences needs sentencex; run: pip install 'kbgym[corpus]'") from None
    boundaries: Callable[[str, str], list[dict[str, Any]]] = module.get_sentence_boundaries
    return boundaries


def split(text: str, language: str = "en") -> list[tuple[int, int]]:
    """Where each sentence of a text starts and ends, white space at its ends left out."""
    spans: list[tuple[int, int]] = []
    for found in _library()(language, text):
        start, end = _trimmed(text, found["start_index"], found["end_index"])
        if start == end:
            continue
        if spans and _goes_on(text, spans[-1], start):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _goes_on(text: str, before: tuple[int, int], start: int) -> bool:
    """Whether what starts here belongs to the sentence before it."""
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


def pieces(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """A stretch that is too long, cut at the last clause boundary that fits, else at a space, else anywhere."""
    while end - start > most:
        cut = start + most
        for boundary in _CLAUSES:
            places = [match.end() for match in boundary.finditer(text, start + most // 2, start + most)]
            if places:
                cut = places[-1]
                break
        yield _trimmed(text, start, cut)
        start, end = _trimmed(text, cut, end)
    if start < end:
        yield start, end


# Words that point at something said before; a sentence that begins with one cannot be read alone.
POINTING = frozenset(
    "he she it they we you i him her them us his hers its their theirs our ours my mine your yours himself herself"
    " itself themselves this that these those there here such both neither either each some others another one ones"
    " none all any many most few several former latter then thus so therefore hence however moreover furthermore"
    " besides also instead otherwise meanwhile later afterwards again still but and or yet nor".split()
)
_ARTICLES = frozenset(("the", "a", "an"))
_WORD = re.compile(r"[^\W_][\w'’.-]*")


def dangles(sentence: str) -> bool:
    """Whether a sentence needs its title and section to be understood."""
    words = _WORD.findall(sentence)
    if not words:
        return True
    first = words[0].lower().partition("'")[0].partition("’")[0]
    if first in POINTING:
        return True
    if first in _ARTICLES and len(words) > 1 and not _is_name(words[1]):
        return True
    if _is_name(words[0]) and (sum(c.isupper() for c in words[0]) > 1 or any(c.isdigit() for c in words[0])):
        return False
    return not any(_is_name(word) for word in words[1:])


def _is_name(word: str) -> bool:
    return word[0].isupper() and word not in ("I", "I'm", "I'll", "I've", "I’m", "I’ll", "I’ve")


def clean(text: str) -> str:
    """A text on one line, without characters that no agent could send."""
    return " ".join(made_plain(text)[0].split())


def context(title: str, sections: tuple[str, ...]) -> str:
    """`Title > Section: `, shortened from the front when it is very long."""
    parts = [part for part in (title, *sections) if part]
    while len(parts) > 1 and len(" > ".join(parts)) > MOST_CONTEXT:
        del parts[0]
    return f"{' > '.join(parts)[:MOST_CONTEXT]}: " if parts else ""
