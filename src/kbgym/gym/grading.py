"""Grading: SQuAD normalisation, token F1, exact match, best over the accepted golds, and abstention.

Pure functions of an answer and its golds; nothing here knows a world, a store or a model.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kbgym.sanitize import number_in

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_ONES += "seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = _ONES + [ten if one == 0 else f"{ten}-{_ONES[one]}" for ten in _TENS for one in range(10)]

# An answer abstains if, normalised and without the framing around it, it is one of these.
ABSTENTIONS = frozenset(
    """
    unknown|not known|is unknown|unanswerable|no answer|no answer available|none|nobody|no one|nothing|na|not applicable
    not available|not stated|not specified|not mentioned|not documented|not given|not recorded|not found|no information
    no information available|no data|not enough information|insufficient information|insufficient data|undetermined
    indeterminate|undeterminable|cannot be determined|cant be determined|can not be determined|could not be determined
    cannot determine|cant determine|unable to determine|not determinable|cannot be answered|cant be answered
    cannot be known|cannot answer|cant answer|unable to answer|cannot tell|cant tell|cannot say|i dont know|dont know
    do not know|i do not know|does not exist|doesnt exist|no such person|there is none|there is no answer
    """.replace("\n", "|")
    .replace("    ", "")
    .split("|")
) - {""}
_LEAD = re.compile(r"^(sorry |i am sorry |im sorry )?(answer is |it is |its |this is |that is |answer |it |this |i )")
_TAIL = re.compile(
    r" (from|in|by|with|based on|given|using) (any |all )?(these |this |provided |given |available |stored ){0,5}"
    r"(documents?|information|facts?|store|knowledge base|context|sources?|data)$"
)
# "Edda Calder has no brother", "there is no known sister"
_DENIAL = re.compile(
    r"^(there is|(\w+ ){1,3}has) no ((known|documented|recorded|listed) )?\w+( (known|documented|recorded|listed))?$"
)


class Grade(NamedTuple):
    f1: float
    em: float


def normalise(text: str) -> str:
    """Lower case, no punctuation, no articles, white space folded: in that order, as SQuAD does."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def f1(answer: str, gold: str) -> float:
    """Token F1 of normalised texts; where one of them has no token left, 1 if both have none."""
    given, wanted = normalise(answer).split(), normalise(gold).split()
    same = sum((Counter(given) & Counter(wanted)).values())
    if not same:
        return float(given == wanted)
    precision, recall = same / len(given), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def set_f1(answer: str, gold: str) -> float:
    """PhantomWiki's F1: both sides are sets of what stands between commas, case and outer white space aside."""
    given, wanted = _members(answer), _members(gold)
    same = len(given & wanted)
    return 2 * same / (len(given) + len(wanted))


def _members(text: str) -> set[str]:
    return {part.strip().lower() for part in text.split(",")}


def exact(answer: str, gold: str) -> float:
    return float(normalise(answer) == normalise(gold))


def abstains(answer: str) -> bool:
    """Whether an answer says, in one of the usual ways, that there is no answer. An empty one says nothing."""
    said = _TAIL.sub("", normalise(answer))
    return said in ABSTENTIONS or _LEAD.sub("", said) in ABSTENTIONS or _DENIAL.search(said) is not None


def grade(answer: str, golds: Sequence[str], unanswerable: bool) -> Grade:
    """The best score over the golds; for an unanswerable question 1 for abstaining and 0 for anything else."""
    if unanswerable:
        right = abstains(answer) or any(normalise(gold) and exact(answer, gold) for gold in golds)
        return Grade(float(right), float(right))
    accepted = [spelling for gold in golds for spelling in _spellings(gold)]
    return Grade(
        max((f1(answer, gold) for gold in accepted), default=0.0),
        max((exact(answer, gold) for gold in accepted), default=0.0),
    )


def score(answer: str | None, golds: Sequence[str], unanswerable: bool) -> Grade:
    """The grade of a pass: one that ended without an answer scores 0."""
    return Grade(0.0, 0.0) if answer is None else grade(answer, golds, unanswerable)


def _spellings(gold: str) -> list[str]:
    """A gold, and if it is a number below a hundred the same number as a digit or a word."""
    text = gold.strip().lower()
    if text in _WORDS:
        return [gold, str(_WORDS.index(text))]
    if (number := number_in(text)) is not None and number < len(_WORDS):
        word = _WORDS[number]
        return [gold, word, word.replace("-", " ")] if "-" in word else [gold, word]
    return [gold]
