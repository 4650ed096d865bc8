"""Tokenization for word indexes: normalised words, and identifiers both whole and in parts.

`foo_bar`, `FooBar` and `foo-bar` are one term, `foobar`, beside `foo` and `bar`; `2014-04-30` and `2014/04/30` are one
term beside their numbers; `RFC 1102`, `RFC-1102` and `RFC1102` are `rfc1102` beside `rfc` and `1102`. Accents and case
are ignored, plurals and possessives become the singular, and a few English stop words are dropped. Scripts written
without spaces are split into character bigrams. Terms are the same under every Python version, except for characters
newer than its Unicode tables.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import chain

# Scripts whose vowel signs are combining marks, which `\w` does not match; a danda ends a sentence.
_MARKED = "\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_PART = rf"(?:[^\W_]|[{_MARKED}])+"
_TOKEN = re.compile(rf"{_PART}(?:['’._:/@+&-]+{_PART})*")
_PARTS = re.compile(_PART)
_OWNED = re.compile(r"['’]s$")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_AROUND = ".,;:!?()[]\"'"
_CALLED = re.compile(r"\b([A-Z]{2,})\s+([0-9]+(?:\.[0-9]+)*)")
_ACCENTS = dict.fromkeys(range(768, 880))
_REMEMBERED, _LONGEST = 200_000, 64
_SMALL = frozenset(
    "a an and are as at be by for from in is it of on or that the to was were who whose will with".split()
)


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, without stop words unless it has no other words."""
    found = list(chain.from_iterable(map(_known.__getitem__, text.split())))
    for acronym, number in _CALLED.findall(text):
        found.append(f"{acronym.lower()}{number.replace('.', '-')}")
    return found or [word.casefold() for word in _PARTS.findall(text)]


class _Known(dict[str, tuple[str, ...]]):
    """A cache from the chunk between two spaces to its terms."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if len(self) >= _REMEMBERED:
            self.clear()
        found = _terms_of(chunk)
        if len(chunk) <= _LONGEST:
            self[chunk] = found
        return found


_known = _Known()


def _terms_of(chunk: str) -> tuple[str, ...]:
    """Return the distinct terms of a chunk between two spaces."""
    bare = chunk.strip(_AROUND)
    # A fast path for most words, at a third of the cost.
    if bare.isascii() and bare.isalpha() and (bare.islower() or bare.istitle()):
        word = _plain(bare)
        return () if word in _SMALL else (word,)
    if not chunk.isascii():
        chunk = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", chunk).translate(_ACCENTS))
    if "," in chunk:
        chunk = _THOUSANDS.sub("", chunk)
    found: dict[str, None] = {}
    for match in _TOKEN.finditer(chunk):
        token = _OWNED.sub("", match.group())
        parts = _PARTS.findall(token)
        if len(parts) > 1 and len(token) <= _LONGEST:
            found[_joined(parts)] = None
        for part in parts:
            for word in _words(part):
                found[word] = None
    return tuple(found)


def _joined(parts: list[str]) -> str:
    """Join parts to one term; a mark between two numbers is kept, so that 1.23 does not become 123."""
    whole = parts[0]
    for part in parts[1:]:
        whole += f"-{part}" if whole[-1].isdigit() and part[0].isdigit() else part
    return _plain(whole)


def _words(part: str) -> list[str]:
    if not part.isascii() and _UNSPACED.search(part):
        return _pairs(part)
    whole = _plain(part)
    if part.isascii() and not part.isdigit() and not (part.islower() and part.isalpha()):
        humps = [hump for hump in _HUMPS.findall(part) if hump != part and (len(hump) > 1 or hump.isdigit())]
        if humps:
            return [whole, *map(_plain, humps)]
    return [] if whole in _SMALL else [whole]


def _pairs(part: str) -> list[str]:
    found: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(part):
        found += _words(part[at : run.start()]) if run.start() > at else []
        text, at = run.group(), run.end()
        found += [text[place : place + 2] for place in range(len(text) - 1)] or [text]
    return found + (_words(part[at:]) if at < len(part) else [])


def _plain(word: str) -> str:
    word = word.casefold()
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
