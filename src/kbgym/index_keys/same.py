"""The meaning of "the same index" and "the same sentence", without knowing any value.

Two indexes of one key are the same index, however they are worded ("Interpreters", "People whose job is interpreter").
`RuleJudge` compares two sentences by rule.
"""

from __future__ import annotations

import re

from kbgym.index_keys.recognise import names, worded_key
from kbgym.index_keys.vocabulary import TABLES, tokens, words_of

_ABOUT = re.compile(
    r"\A(?:(?:(?:all|everything|documents?|facts?)(?: known)? )?about|(?:an? |the )?(?:index|list|profile) of)"
    r"(?: all)? ",
    re.I,
)


def same_key(one: str, other: str) -> bool:
    """Return True if two sentences are certainly indexes of one key. A bare value is not an index of its holders."""
    for text, twin in ((one, other), (other, one)):
        key = worded_key(text)
        if key is not None and words_of(twin) != words_of(key.value) and names(twin, key):
            return True
    bare = [words_of(_ABOUT.sub("", text.strip(), count=1)) for text in (one, other)]
    return bool(bare[0]) and bare[0] == bare[1] and words_of(one) != words_of(other)


class RuleJudge:
    """Duplicates have the same names and the same words, each in the same order, and the same polarity.

    Stop words do not count, and synonyms in index sentences are treated as one word. In doubt the answer is no: a
    redundant document costs little, but a wrong merge loses a fact.
    """

    name = "rule"

    async def duplicate(self, candidate: str, existing: str) -> bool:
        names, polarity, words = signature(candidate)
        return bool(names or words) and (names, polarity, words) == signature(existing)


_SMALL = frozenset(TABLES["comparison"]["small"].split())
_NEGATIONS = frozenset(TABLES["comparison"]["negations"].split())
_SYNONYMS = {word: row.split()[0] for row in TABLES["comparison"]["synonyms"] for word in row.split()}


def signature(text: str) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """Return the terms the rule compares: names and signs in order, negation, and other words with synonyms folded."""
    names: list[str] = []
    words: dict[str, None] = {}
    negations = 0
    for token in tokens(text):
        word = token.removesuffix("'s").removesuffix("’s")
        small = word.casefold()
        if small in _NEGATIONS:
            negations += 1
        elif small in _SMALL:
            continue
        elif small in _SYNONYMS:
            words[_SYNONYMS[small]] = None
        elif word[0].isupper() or not word[0].isalpha() or not (names or words):
            # The first word of a sentence may be capitalised anyway, so the first that counts is treated as a name.
            names.append(small)
        else:
            words[small] = None
    return tuple(names), negations % 2, tuple(words)
