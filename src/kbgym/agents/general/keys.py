"""Keys of any text: a field that many pages have, a value of it that many share, a name; what a document says of each.

A document of a corpus reads "Title: sentence", "Title > Section: sentence" or "Title: label: value"; one without a
title belongs to the first name it has. Nothing here knows a grammar, a world, an arm or a wording but those of the
indexes that the general curator writes itself.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

import msgspec

from kbgym.agents.general.text import content_words, names, split_title

KeyKind = Literal["field", "value", "name"]
_LABEL = re.compile(r"([^\W\d][^:;.!?\n]{0,40}): (?=\S)")
_MOST_LABEL, _MOST_VALUE = 4, 6  # words
_OWNED = re.compile(r"['’]s?$")
_BRACKET = re.compile(r"\s*\([^()]*\)$")
_WORDS = re.compile(r"[^\W_]+")
_POSSESSION = re.compile(r"['’]s\b")


class TextKey(msgspec.Struct, frozen=True):
    """Something that questions come by and several documents share."""

    kind: KeyKind
    value: str


@lru_cache(maxsize=65_536)
def page_of(text: str) -> str:
    """The page a document belongs to: its title without the section; else the first name it has; else nothing."""
    title, _ = split_title(text)
    if title:
        return title.split(" > ")[0]
    found = names_in(text)
    return found[0] if found else ""


def titled(text: str) -> bool:
    """Whether a document begins with its page's title."""
    return bool(split_title(text)[0])


@lru_cache(maxsize=65_536)
def field_of(text: str) -> str:
    """The label of a field a document states ("Title: label: value"), empty where it states none."""
    title, body = split_title(text)
    found = _LABEL.match(body) if title and " > " not in title else None
    return found[1] if found and len(found[1].split()) <= _MOST_LABEL else ""


@lru_cache(maxsize=65_536)
def value_of(text: str) -> str:
    """The field a document states and its value ("label: value"), empty where it states none or a long one."""
    label = field_of(text)
    value = split_title(text)[1].removeprefix(f"{label}: ") if label else ""
    return f"{label}: {value}" if 0 < len(value.split()) <= _MOST_VALUE else ""


@lru_cache(maxsize=65_536)
def names_in(text: str) -> tuple[str, ...]:
    """The names a text has, without what possession adds."""
    return tuple(dict.fromkeys(_OWNED.sub("", name) for name in names(text)))


@lru_cache(maxsize=65_536)
def plain(text: str) -> str:
    """A text as small words between single spaces, without accents, to look for other such texts in."""
    return cased(text).casefold()


@lru_cache(maxsize=65_536)
def cased(text: str) -> str:
    """The same with capitals left as they are."""
    letters = _POSSESSION.sub("", text)
    if not letters.isascii():
        letters = "".join(c for c in unicodedata.normalize("NFKD", letters) if not unicodedata.combining(c))
    return f" {' '.join(_WORDS.findall(letters))} "


def bare(title: str) -> str:
    """A title without the bracket that tells it from others of its name."""
    return _BRACKET.sub("", title) or title


def holds(text: str, name: str) -> bool:
    """Whether a text has these words, in this order."""
    wanted = plain(name)
    return wanted.strip() != "" and wanted in plain(text)


def label_words(label: str) -> list[str]:
    return content_words(label.replace("_", " "))


def belongs(text: str, key: TextKey) -> bool:
    """Whether a document belongs under a key."""
    match key.kind:
        case "field":
            return field_of(text).casefold() == key.value.casefold()
        case "value":
            return value_of(text).casefold() == key.value.casefold()
    return cased(key.value) in cased(text) and is_statement(text)


def index_text(key: TextKey) -> str:
    """What an index of a key is called."""
    return f"{key.value.replace('_', ' ')}, how many and which" if key.kind == "field" else bare(key.value)


def is_statement(text: str) -> bool:
    """Whether a document says something: a name, a label, a heading or a question does not."""
    return titled(text) or text.endswith((".", "!", '"', "”", ")"))


_ASKING = re.compile(
    r"^(?:(?:in|at|on|from|to|by|for|with|of|under|after|before|below) )?"
    r"(?:who|whom|whose|what|which|when|where|why|how (?:many|much|old|long|far)|how)\b"
    r"(?: (?:is|are|was|were|do|does|did|has|have|had|will|can|of|the|an?)\b)*\s*",
    re.IGNORECASE,
)


def key_of_question(question: str) -> str:
    """What a question asks for, in its own words, without how it asks."""
    text = " ".join(question.replace(": ", " ").split()).rstrip(" ?.!")
    return _ASKING.sub("", text) or text


def query_of(key: TextKey) -> str:
    """What to search for to see what belongs under a key."""
    return key.value.replace("_", " ") if key.kind == "field" else key.value
