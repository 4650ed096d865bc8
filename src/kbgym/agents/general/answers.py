"""Answer extraction without a grammar: a span of the best documents that fits the kind of question, or "unknown".

Answers are extracted, never composed, and are never a heading or words of the question. Their score is reported beside
the evidence; it does not measure reading ability.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kbgym.agents.general.fields import Field, fields_of, in_words, page_of, sentences
from kbgym.agents.general.text import content_words, look_at, split_title, stem

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(?:\d\d? (?:{_MONTH}) \d{{4}}|(?:{_MONTH}) \d\d?, \d{{4}}|\d{{4}}-\d\d-\d\d|(?:{_MONTH}) \d{{4}})\b"
)
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d{2}\b")
_NUMBER = re.compile(r"\b\d[\d,.]*\b")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_YES_NO = ("is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will")
_KINDS = (  # kinds of question, with the spans that answer them
    (re.compile(r"\bhow (?:many|much|old)\b"), (_NUMBER,)),
    (re.compile(r"\bwhen\b|\b(?:date|day)\b|\bdeadline\b|\buntil what\b"), (_DATE, _YEAR)),
    (re.compile(r"\byear\b"), (_YEAR,)),
    (re.compile(r"\bhow (?:far|long)\b"), (_NUMBER, _DATE)),
)
_COUNTS = re.compile(r"\bhow many\b|\bnumber of\b")
UNKNOWN = "unknown"
_DOCUMENTS = 5
_LEAST = 0.4  # share of the question's words that a sentence and its page must hold


def best_answer(question: str, ranked: Sequence[str], listed: int = 0) -> str:
    """Return the likeliest answer span of the texts, or `unknown` if none states an answer.

    Args:
        listed: the number of documents of an index that match the question; the answer to "how many" if several do
            and no sentence gives a number.
    """
    lowered = question.lower()
    asked = frozenset(content_words(question))
    told = ranked[:_DOCUMENTS]
    if counted := re.match(r"(?:in )?how many (\w+)", lowered):
        stated = (_number_of(counted[1], split_title(text)[1]) for text in told)
        seen = max(listed, _counted(asked, ranked))
        if number := next(filter(None, stated), str(seen) if seen > 1 else ""):
            return number
    if value := field_value(question, told):
        return value
    kinds = _kinds_of(lowered)
    for page, sentence in _speaking(asked, told):
        if lowered.split()[0] in _YES_NO:
            return "yes"
        if kinds:
            if found := next((match[0] for pattern in kinds if (match := pattern.search(sentence))), ""):
                return found.rstrip(".,")
            continue
        own = asked | {*content_words(page)}
        if fresh := [name for name in look_at(f"{page}: {sentence}").names if not {*content_words(name)} <= own]:
            return fresh[0]
    return UNKNOWN


def field_value(question: str, texts: Sequence[str]) -> str:
    """Return the value of a field whose label and page the question names; empty if there is none."""
    asked = frozenset(content_words(question))
    for text in texts[:_DOCUMENTS]:
        named = frozenset(content_words(page_of(text)))
        if not named <= asked:
            continue
        for label, value in fields_of(text) if named else ():
            words = {*content_words(label.replace("_", " "))}
            if words and words <= asked - named and not {*content_words(value)} <= asked:
                return value.rstrip(".")
    return ""


def _kinds_of(lowered: str) -> tuple[re.Pattern[str], ...]:
    return next((patterns for kind, patterns in _KINDS if kind.search(lowered)), ())


def asks_for(question: str, value: str, heading: str) -> bool:
    """Return True if a value learnt from another question is of the kind asked for, and of no other version or unit."""
    asked, known = ({*_VERSION.findall(_DATE.sub("", _YEAR.sub("", text)))} for text in (question, heading))
    if asked and known and not asked & known:
        return False
    unit = re.search(r"\bhow many (\w+)", question.lower())
    if unit and re.search(r"[^\W\d]", value) and stem(unit[1]) not in content_words(value):
        return False
    kinds, dated = _kinds_of(question.lower()), _DATE.fullmatch(value) is not None
    return any(kind.search(value) for kind in kinds) and (_DATE in kinds or not dated) if kinds else not dated


def listed_answer(question: str, value: str, texts: Sequence[str]) -> str:
    """Return the pages that state a value, or their number, if the question names that value; otherwise empty.

    Numbers of the question that are not the value's, as in "since 2025", narrow the pages down.
    """
    asked, named = frozenset(content_words(question)), frozenset(content_words(value))
    if not texts or not named <= asked:
        return ""
    others = [word for word in asked - named if word.isdigit() and re.search(rf"\b{word}\b", "\n".join(texts))]
    pages = dict.fromkeys(page_of(text) for text in texts if all(re.search(rf"\b{word}\b", text) for word in others))
    return str(len(pages)) if _COUNTS.search(question.lower()) else ", ".join(pages)


def _speaking(asked: frozenset[str], texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield sentences that match the question, with their page, best match first."""
    found = []
    for text in texts:
        page = page_of(text) if split_title(text)[0] else ""
        for sentence in sentences(text):
            share = len(asked & {*content_words(page), *content_words(sentence)}) / max(1, len(asked))
            if share >= _LEAST:
                found.append((share, page, sentence))
    yield from ((page, sentence) for _, page, sentence in sorted(found, key=lambda one: -one[0]))


def _counted(asked: frozenset[str], texts: Sequence[str]) -> int:
    """Return the number of pages seen that state a field and value of the question."""
    pages: dict[Field, set[str]] = {}
    for text in texts:
        for field in fields_of(text):
            if in_words(Field(field.label)) and in_words(field) <= asked:
                pages.setdefault(field, set()).add(page_of(text))
    return max(map(len, pages.values()), default=0)


def _number_of(counted: str, body: str) -> str:
    """Return the number a text states of something ("140 turns", "cost_crowns: 18,000"), or an empty text."""
    for sentence in re.split(r"(?<=[.;!?])\s", body):
        words = [word for word in re.split(r"[\W\d_]+", sentence.lower()) if len(word) > 2]
        said = any(word.startswith(counted) or counted.startswith(word) for word in words)
        if said and (found := _NUMBER.search(_DATE.sub("", _YEAR.sub("", sentence)))):
            return found[0].rstrip(".,")
    return ""
