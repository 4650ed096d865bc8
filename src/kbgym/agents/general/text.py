"""Words, names and identifiers of a text, without a grammar of its language.

This module is independent of worlds, index wordings and arms. Documents of a corpus begin with the title of their page
("Title: sentence"), which is their subject; without a title the subject is the document's first name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['’.\-/_][^\W_]+)*")
_SMALL = frozenset(
    "a about after all also an and any are as at be been before being between both but by can could did do does during "
    "each for from had has have he her him his how i if in into is it its many more most much no not of on one only or "
    "other over same she should since so some such than that the their them then there these they this those through "
    "to under until up was we were what when where which while who whom whose why will with would you your".split()
)
# Lower-case words inside names: "University of Lund", "Ludwig van Beethoven".
_INSIDE = frozenset("of the de la le du des van von der den di da del and for in on y &".split())
_TITLE = re.compile(r"(.{2,120}?): (?=\S)")
_MOST_WORDS = 8
_ENDS = frozenset(".!?:")
_PEOPLES = ("ian", "ish", "ese", "can")  # "American" and "English" are not distinctive
_MONTHS = frozenset("january february march april may june july august september october november december".split())


@lru_cache(maxsize=65_536)
def split_title(text: str) -> tuple[str, str]:
    """Return the title a document begins with, and the rest; the title is empty if there is none."""
    found = _TITLE.match(text)
    if found is None or found[1].endswith((".", "!", "?")) or len(found[1].split()) > 14:
        return "", text
    return found[1], text[found.end() :]


def content_words(text: str) -> list[str]:
    """Return the content words in order, lower-case and singular."""
    return [stem(word) for word in _WORD.findall(text.lower()) if word not in _SMALL and len(word) > 1]


def stem(word: str) -> str:
    """Return a word without plural and possessive endings."""
    word = word.removesuffix("'s").removesuffix("’s")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def names(text: str) -> list[str]:
    """Return runs of capitalised words, and identifiers; a function word that begins a sentence is not a name."""
    found: list[str] = []
    run: list[str] = []
    tokens = list(re.finditer(r"[^\s]+", text))
    for place, token in enumerate(tokens):
        raw = token[0]
        word = raw.strip("\"'“”‘’()[],;:.!?")
        begins = place == 0 or tokens[place - 1][0][-1:] in ".!?:"
        capital = word[:1].isupper() and (not begins or word.lower() not in _SMALL)
        if capital or (run and word.isdigit()) or is_identifier(word):
            run.append(word)
        elif run and word.lower() in _INSIDE and not raw.endswith((",", ".", ";")):
            run.append(word)
            continue
        else:
            _close(run, found)
            run = []
            continue
        if raw.endswith((",", ".", ";", ":", "!", "?", ")")):
            _close(run, found)
            run = []
    _close(run, found)
    return found


@lru_cache(maxsize=65_536)
def word_set(text: str) -> frozenset[str]:
    """Return the set of content words."""
    return frozenset(content_words(text))


@lru_cache(maxsize=65_536)
def names_after_title(text: str) -> tuple[str, ...]:
    """Return the different names of a document's body."""
    return tuple(dict.fromkeys(names(split_title(text)[1])))


@lru_cache(maxsize=65_536)
def telling_names(text: str, most: int) -> tuple[str, ...]:
    """Return the first distinctive names of a text."""
    return tuple(name for name in names_after_title(text)[:most] if is_telling(name, text))


def is_telling(name: str, text: str) -> bool:
    """Return True if a name is distinctive: no date, not too long, not a word capitalised only as a sentence start."""
    words = name.split()
    if len(words) > _MOST_WORDS or any(word.lower() in _MONTHS for word in words):
        return False
    if len(words) > 1 or is_identifier(name):
        return True
    return not name.endswith(_PEOPLES) and any(_inside(name, split_title(text)[1]))


def _inside(name: str, body: str) -> Iterator[bool]:
    """Yield, for every occurrence of a word, True if it is not the first word of a sentence."""
    at = body.find(name)
    while at >= 0:
        around = body[at - 1 : at] + body[at + len(name) : at + len(name) + 1]
        yield at > 0 and body[max(0, at - 2) : at - 1] not in _ENDS and not any(map(str.isalnum, around))
        at = body.find(name, at + 1)


def _close(run: list[str], found: list[str]) -> None:
    while run and run[-1].lower() in _INSIDE:
        run.pop()
    while run and run[0].lower() in _SMALL:
        del run[0]
    name = " ".join(run)
    if len(name) > 2 and name.lower() not in _MONTHS and not name.isdigit():
        found.append(name)


def is_identifier(word: str) -> bool:
    """Return True for a code: digits and letters together, an underscore, or capitals inside."""
    inner = word[1:]
    mixed = any(c.isdigit() for c in word) and any(c.isalpha() for c in word)
    return len(word) > 2 and (
        mixed or "_" in word or (any(c.isupper() for c in inner) and any(c.islower() for c in inner))
    )
