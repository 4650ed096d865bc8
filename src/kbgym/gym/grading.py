"""Answer grading: SQuAD normalisation, token F1, exact match, the best over all accepted golds, and abstention.

Questions about imported text (those with a group) accept any usual form of dates and numbers, and set answers are
compared member by member.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kbgym.sanitize import number_in

if TYPE_CHECKING:
    from kbgym.worlds.world import Question

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_ONES += "seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = _ONES + [ten if one == 0 else f"{ten}-{_ONES[one]}" for ten in _TENS for one in range(10)]

# An answer abstains if it equals one of these after normalisation and removal of framing words.
ABSTENTIONS = frozenset(Path(__file__).with_name("abstentions.txt").read_text(encoding="utf-8").splitlines())
_LEAD = re.compile(r"^(sorry |i am sorry |im sorry )?(answer is |it is |its |this is |that is |answer |it |this |i )")
_TAIL = re.compile(
    r" (from|in|by|with|based on|given|using) (any |all )?(these |this |provided |given |available |stored ){0,5}"
    r"(documents?|information|facts?|store|knowledge base|context|sources?|data)$"
)
# "Edda Calder has no brother", "there is no known sister"
_DENIAL = re.compile(
    r"^(there is|(\w+ ){1,3}has) no ((known|documented|recorded|listed) )?\w+( (known|documented|recorded|listed))?$"
)


_MONTHS = dict(zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True))
_NAME = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})"
_DAY_FIRST = re.compile(rf"\b(?:the )?{_DAY} (?:of )?{_NAME},? {_YEAR}\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b{_NAME} {_DAY},? {_YEAR}\b", re.IGNORECASE)
_MONTH = re.compile(rf"\b{_NAME},? {_YEAR}\b", re.IGNORECASE)
_ISO = re.compile(r"\b(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})\b")
_ISO_MONTH = re.compile(r"\b(\d{4})-(\d{2})\b(?!-)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER_WORDS = re.compile(
    r"\b(?:" + "|".join(word.replace("-", "[- ]") for word in sorted(_WORDS, key=len, reverse=True)) + r")\b",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[,;|\n•]|\s[-*/&]\s|^[-*]\s")
_BETWEEN = re.compile(r"\||\b(?:and|or|as well as)\b")
_FRAME = re.compile(r"^[^:\n]{0,120}:\s")
_JOINING = frozenset("are is they these also only".split())


class Grade(NamedTuple):
    f1: float
    em: float


def normalise(text: str) -> str:
    """Return a text in lower case, without punctuation and articles and with white space folded, as SQuAD does."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def f1(answer: str, gold: str) -> float:
    """Return the token F1 of normalised texts; without tokens in either, 1 if both have none, else 0."""
    given, wanted = normalise(answer).split(), normalise(gold).split()
    same = sum((Counter(given) & Counter(wanted)).values())
    if not same:
        return float(given == wanted)
    precision, recall = same / len(given), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def set_f1(answer: str, gold: str) -> float:
    """Return PhantomWiki's F1 over the sets of parts between commas, without case and outer white space."""
    given, wanted = ({part.strip().lower() for part in text.split(",")} for text in (answer, gold))
    same = len(given & wanted)
    return 2 * same / (len(given) + len(wanted))


def exact(answer: str, gold: str) -> float:
    return float(normalise(answer) == normalise(gold))


def abstains(answer: str) -> bool:
    """Return True if an answer states in a usual wording that there is no answer; an empty answer does not."""
    said = _TAIL.sub("", normalise(answer))
    return said in ABSTENTIONS or _LEAD.sub("", said) in ABSTENTIONS or _DENIAL.search(said) is not None


def grade(answer: str, golds: Sequence[str], unanswerable: bool) -> Grade:
    """Return the best score over the golds; an unanswerable question scores 1 for abstention, else 0."""
    if unanswerable:
        abstained = abstains(answer) or any(normalise(gold) and exact(answer, gold) for gold in golds)
        return Grade(float(abstained), float(abstained))
    accepted = [spelling for gold in golds for spelling in _spellings(gold)]
    whole = max((exact(answer, gold) for gold in accepted), default=0.0)
    # The other spellings of a number match only as a whole: "one" is no part of "thirty-one".
    return Grade(max([whole, *(f1(answer, gold) for gold in golds)]), whole)


def grade_question(answer: str | None, question: Question) -> Grade:
    """Grade the answer to a question. No answer scores 0."""
    if answer is None:
        return Grade(0.0, 0.0)
    if question.members and not question.unanswerable:
        whole = grade_any_form(answer, question.golds)
        return whole if whole.em else grade_members(answer, question.members)
    if question.group and not question.unanswerable:
        return grade_any_form(answer, question.golds)
    return grade(answer, question.golds, question.unanswerable)


def score(answer: str | None, golds: Sequence[str], unanswerable: bool) -> Grade:
    """Grade an answer as `grade` does. No answer scores 0."""
    return Grade(0.0, 0.0) if answer is None else grade(answer, golds, unanswerable)


def grade_any_form(answer: str, golds: Sequence[str]) -> Grade:
    """Grade an answer whose dates and numbers may differ in form from those of the golds."""
    return grade(usual_form(answer), [usual_form(gold) for gold in golds], False)


def grade_members(answer: str, members: Sequence[str]) -> Grade:
    """Grade a list regardless of its order and separators.

    Members are searched in the answer, the longest first. Each remaining element between separators or members is one
    wrong member.
    """
    left, wanted = _FRAME.sub("", usual_form(answer)), {usual_form(member) for member in members}
    for member in wanted:
        if _SEPARATORS.search(member):
            left = re.sub(re.escape(member), normalise(member), left, flags=re.IGNORECASE)
    wanted = {normal for member in wanted if (normal := normalise(member))}
    left = " | ".join(map(normalise, _SEPARATORS.split(left)))
    found = 0
    for member in sorted(wanted, key=len, reverse=True):
        left, times = re.subn(rf"(?<!\w){re.escape(member)}(?!\w)", "|", left)
        found += times > 0
    others = {rest for part in _BETWEEN.split(left) if (rest := part.strip()) and rest not in _JOINING}
    f1 = 2 * found / (found + len(others) + len(wanted)) if found else 0.0
    return Grade(f1, float(found == len(wanted) and not others))


def usual_form(text: str) -> str:
    """Return a text with dates and numbers in canonical form."""
    text = _MONTH_FIRST.sub(_date, _DAY_FIRST.sub(_date, text))
    text = _MONTH.sub(lambda said: f"{said['year']}{_MONTHS[said['month'][:3].lower()]:02}", text)
    text = _ISO.sub(_date, text)
    text = _ISO_MONTH.sub(r"\1\2", text)
    text = _THOUSANDS.sub("", text)
    return _NUMBER_WORDS.sub(lambda said: str(_WORDS.index(said[0].lower().replace(" ", "-"))), text)


def _date(said: re.Match[str]) -> str:
    """Return a date as eight digits, or unchanged if it is not a valid date."""
    month = said["month"]
    try:
        number = int(month) if month.isdecimal() else _MONTHS[month[:3].lower()]
        return date(int(said["year"]), number, int(said["day"])).strftime("%Y%m%d")
    except ValueError:
        return said[0]


def _spellings(gold: str) -> list[str]:
    """Return a gold and, for a number below 100, its other spellings."""
    text = gold.strip().lower()
    if text in _WORDS:
        return [gold, str(_WORDS.index(text))]
    if (number := number_in(text)) is not None and number < len(_WORDS):
        word = _WORDS[number]
        return [gold, word, word.replace("-", " ")] if "-" in word else [gold, word]
    return [gold]
