"""Fields of any text: `Label: value` statements of documents, and the words and names to match in them.

A document of a corpus reads "Title: text" or "Title > Section: text"; its text may hold several fields, separated by
semicolons or full stops, and a label may follow a path ("releases: 22.04: eol: 2027-04-01"). This module is
independent of grammars, worlds and arms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from kbgym.agents.general.text import content_words, names, split_title

_LABEL = re.compile(r"[^\W\d][^:;.!?\n]{0,40}")
_MOST_LABEL, _MOST_VALUE = 4, 6  # words
_CODE = re.compile(r"[a-z0-9][a-z0-9+._-]*")
_OWNED = re.compile(r"['’]s?$")
_WORD = re.compile(r"[^\W_]+")
_PIECE = re.compile(r"(?:;|\||(?<=[^\s.])\.)(?:\s+|$)")


class Field(NamedTuple):
    """A field with one value, or, without a value, the whole field."""

    label: str
    value: str = ""

    @property
    def text(self) -> str:
        """Return the first words of the field's index."""
        return f"{self.label}: {self.value}" if self.value else f"{self.label.replace('_', ' ')} of every page"

    def is_stated(self, text: str) -> bool:
        """Return True if a document states the value, or any value if there is none."""
        found = fields_of(text)
        return self in found if self.value else any(self.label == one.label for one in found)


@lru_cache(maxsize=65_536)
def fields_of(text: str) -> tuple[Field, ...]:
    """Return the fields a document states. A value that is a list of codes ("cli web") counts for each code too."""
    found: dict[Field, None] = {}
    for piece in _PIECE.split(split_title(text)[1]):
        path, _, value = piece.rpartition(": ")
        label = path.rpartition(": ")[2].strip()
        words = value.split()
        if not words or not _LABEL.fullmatch(label) or len(label.split()) > _MOST_LABEL or len(words) > _MOST_VALUE:
            continue
        found[Field(label, value.strip())] = None
        if len(words) > 1 and all(map(_CODE.fullmatch, words)):
            found.update(dict.fromkeys(Field(label, word) for word in words))
    return tuple(found)


def in_words(field: Field) -> frozenset[str]:
    """Return the words of a label and its value as a question may use them: "how_many" is two words."""
    return frozenset(content_words(" ".join(_WORD.findall(f"{field.label} {field.value}".replace("_", " ")))))


@lru_cache(maxsize=65_536)
def page_of(text: str) -> str:
    """Return the title of a document's page without the section, else its first name, else an empty text."""
    title = split_title(text)[0]
    return title.split(" > ")[0] if title else next(iter(names_in(text)), "")


@lru_cache(maxsize=65_536)
def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a text, without possessive endings."""
    return tuple(dict.fromkeys(_OWNED.sub("", name) for name in names(text)))


@lru_cache(maxsize=65_536)
def folded(text: str) -> str:
    """Return a text in lower case without accents, with single spaces."""
    letters = unicodedata.normalize("NFKD", text) if not text.isascii() else text
    return " ".join("".join(c for c in letters if not unicodedata.combining(c)).casefold().split())


def holds(text: str, words: str) -> bool:
    """Return True if a text has these words in this order; "7.2" is not found in "17.2" or "7.2.1"."""
    sought = folded(words).strip(" .,;:!?\"'")
    return bool(sought) and re.search(rf"(?<![\w.-]){re.escape(sought)}(?!\w|[.-]\w)", folded(text)) is not None


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a document's text, without its title."""
    yield from (part.strip() for part in re.split(r"(?<=[.!?])\s+", split_title(text)[1]) if part.strip())
