"""What of the files is in no document: named, counted, with the reason; nothing is left out silently.

The readers say what they leave out on purpose (a comment, the target of a link). For whatever else, the words of a file
are compared with those of its documents: a word that is in neither is named too. So a fault of a reader shows up here,
and not only where somebody misses a fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape

import msgspec

REASONS = {
    "comment": "comments are for those who write the file",
    "link target": "a link is its words; with --links or --site also a link between documents",
    "image": "of an image there is only its description",
    "tag": "markup without words",
    "script or style": "code of a web page",
    "navigation or form": "the same on every page of a site",
    "code block": "left out by --code skip",
    "language of a code block": "markup without words",
    "heading": "there is no text under it",
    "column": "the column is empty in every row",
    "table of contents": "the headings of the page once more",
    "directive": "an instruction to whoever prints the file",
    "hidden character": "nobody sees it, and an agent might obey it",
    "other": "markup, or something no reader understood",
}
MOST_TEXTS = 1_000  # named of each kind
MOST_TEXT = 200  # characters shown of each
MOST_LOOKED_FOR = 200
BATCH = 1_000
_WORD = re.compile(r"[^\W_]+")
_LIST_NUMBER = re.compile(r"^[ \t>]*\d{1,9}[.)](?=\s)", re.MULTILINE)


class Loss(msgspec.Struct):
    """One kind of thing that was left out: how often, how many characters, and the first of them."""

    what: str
    why: str
    count: int = 0
    characters: int = 0
    texts: list[str] = []


class Losses:
    """Adds up over a corpus."""

    def __init__(self) -> None:
        self._kinds: dict[str, Loss] = {}

    def add_hidden(self, count: int) -> None:
        """Characters that do not show, which no document has."""
        if count:
            loss = self._kinds.setdefault("hidden character", Loss("hidden character", REASONS["hidden character"]))
            loss.count, loss.characters = loss.count + count, loss.characters + count

    def add(self, what: str, text: str) -> None:
        loss = self._kinds.setdefault(what, Loss(what, REASONS[what]))
        loss.count += 1
        loss.characters += len(text)
        if len(loss.texts) < MOST_TEXTS:
            shown = " ".join(text.split())
            loss.texts.append(shown if len(shown) <= MOST_TEXT else f"{shown[: MOST_TEXT - 1]}…")

    def account(self, text: str, documents: Sequence[str], lost: Iterable[str]) -> None:
        """Name every word of a file's text that is neither in its documents nor in what was left out."""
        missing = {word.lower(): word for word in _words(unescape(_LIST_NUMBER.sub("", text)).split("\n"))}
        for word in _words((*documents, *lost)):
            missing.pop(word.lower(), None)
        everything = "\n".join(documents) if missing else ""
        for number, word in enumerate(missing.values()):
            # A word may also stand inside another one, as where markup divided it: un*believ*able.
            if number > MOST_LOOKED_FOR or word not in everything:
                self.add("other", word)

    def listed(self) -> list[Loss]:
        return [self._kinds[what] for what in REASONS if what in self._kinds]


def _words(texts: Sequence[str]) -> Iterator[str]:
    """The words of many texts, each at most once in a while: so many at a time that neither time nor memory matters."""
    for start in range(0, len(texts), BATCH):
        yield from set(_WORD.findall("\n".join(texts[start : start + BATCH])))
