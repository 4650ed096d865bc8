"""A sentence with what stands around it, and what a rewriting of it may not do.

Whoever rewrites is a plain function here: passages in, a text or nothing for each out. What it may not do is add or
lose facts; of that, this checks what can be checked by words: numbers, dates and names that stand neither in the
sentence nor around it, numbers of the sentence that are gone, and sentences that say something else altogether.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from kbgym.corpus.sentences import MOST_TEXT, clean
from kbgym.corpus.standalone import POINTING

BEFORE, AFTER = 4, 1  # how many sentences around it are shown
LEAST_KEPT = 0.5

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_WRITTEN_OUT = frozenset(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen"
    " january february march april june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday".split()
)
_SMALL = POINTING | frozenset(
    "the a an of in on at to for is are was were has have had been be by with from as".split()
)


class Passage(msgspec.Struct, frozen=True):
    """One sentence of a file and its surroundings: the headings above it, what introduces it, its neighbours."""

    sentence: str
    heading: str = ""
    lead: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def everything(self) -> str:
        return "\n".join((self.heading, self.lead, *self.before, self.sentence, *self.after))


# For each passage the sentence as it can stand alone, the sentence itself where it already can, or None where nothing
# usable came of it.
Rewrite = Callable[[Sequence[Passage]], Sequence[str | None]]


def flaw(text: str, passage: Passage) -> str | None:
    """What is wrong with a rewriting, as one sentence; None when nothing is."""
    if not text.strip():
        return "it is empty."
    if clean(text) != text.strip():
        return "it is not one plain line."
    most = min(MOST_TEXT, 3 * (len(passage.heading) + len(passage.lead) + len(passage.sentence)) + 200)
    if len(text) > most:
        return f"it is too long: {len(text):,} characters, at most {most:,} are allowed."
    known, said = passage.everything, passage.sentence
    if new := _numbers(text) - _numbers(known):
        return f"it adds {_first(new)}, a number that stands neither in the sentence nor around it."
    if new := (_words(text) & _WRITTEN_OUT) - _words(known):
        return f"it adds {_first(new)!r}, a number or date that stands neither in the sentence nor around it."
    if new := _names(text) - _words(known):
        return f"it adds {_first(new)!r}, a name that stands neither in the sentence nor around it."
    if lost := _numbers(said) - _numbers(text):
        return f"it loses {_first(lost)}, a number of the sentence."
    telling = _words(said) - _SMALL
    if len(telling & _words(text)) < LEAST_KEPT * len(telling):
        return "it says something else: more than half of the sentence's words are gone."
    return None


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def _words(text: str) -> set[str]:
    return {_plain(word) for word in _WORD.findall(text)}


def _names(text: str) -> set[str]:
    """Words written large, other than the first."""
    return {_plain(word) for word in _WORD.findall(text)[1:] if word[0].isupper()}


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'").removesuffix("'s").rstrip("'")


def _first(words: set[str]) -> str:
    return min(words)
