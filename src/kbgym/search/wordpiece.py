"""The WordPiece tokenizer of uncased BERT models, from text to token ids.

It is implemented here because the reference library depends on a model-hub client; `tests/search/test_wordpiece.py`
compares the two for every code point.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kbgym.errors import BadInput

LONGEST_WORD = 100  # characters; a longer word is one unknown token
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_special = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")

# Blocks in which each character is a separate word, as in the training of the model.
_IDEOGRAPH = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f]"
)


class _Cleaner(dict[int, str]):
    """A lazy `str.translate` table of normalised characters, with spaces around those that are separate words."""

    def __missing__(self, point: int) -> str:
        result = self[point] = _clean(chr(point))
        return result


def _clean(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if character.isspace():
        return " "
    bare = (c for c in unicodedata.normalize("NFD", character) if unicodedata.category(c) != "Mn")
    lower = "".join(f" {c} " if _is_punctuation(c) else c for c in "".join(c.lower() for c in bare))
    return f" {lower} " if _IDEOGRAPH.match(character) else lower


def _is_punctuation(character: str) -> bool:
    if character.isascii():
        return not character.isalnum() and character > " "
    return unicodedata.category(character).startswith("P")


class WordPiece:
    """Greedy longest-match tokenizer that adds start and end tokens."""

    def __init__(self, vocabulary: Path, longest: int = 256) -> None:
        try:
            words = vocabulary.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"cannot read the vocabulary {vocabulary}: {error}.") from error
        self._numbers = {word: number for number, word in enumerate(words) if word}
        if missing := [word for word in SPECIAL if word not in self._numbers]:
            raise BadInput(f"{vocabulary} is not a BERT vocabulary: it has no {missing[0]}.")
        self._room = longest - 2
        self._unknown, self._start, self._end = (self._numbers[word] for word in ("[UNK]", "[CLS]", "[SEP]"))
        self._cleaner = _Cleaner()
        self._pieces = lru_cache(maxsize=65_536)(self._split)

    def encode(self, text: str) -> list[int]:
        """Return the start token, at most `longest` - 2 pieces and the end token."""
        pieces: list[int] = []
        for word in self._parts(text):
            pieces.extend((self._numbers[word],) if word in SPECIAL else self._pieces(word))
            if len(pieces) >= self._room:
                break
        return [self._start, *pieces[: self._room], self._end]

    def _parts(self, text: str) -> Iterator[str]:
        """Yield the special tokens and the words of a text; no word is spelt as a special token."""
        for part in _special.split(text):
            yield from (part,) if part in SPECIAL else self._words(part)

    def _words(self, text: str) -> Iterator[str]:
        # One block at a time, so that a huge text is not cleaned as a whole for its first words; a block ends
        # at a space of the text, because a word must not be split.
        start = 0
        while start < len(text):
            end = text.find(" ", start + 4096)
            end = len(text) if end < 0 else end
            yield from text[start:end].translate(self._cleaner).split()
            start = end

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(prefix + word[start:end])
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)
